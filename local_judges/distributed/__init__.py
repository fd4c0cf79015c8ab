"""Many processes: ranks of one launcher, and Ray."""

"""Runs on several processes or machines: ranks of one launcher, and Ray."""

"""Judges that run a model on this machine, with transformers or vLLM."""

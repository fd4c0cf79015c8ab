"""Models that run here: transformers with one packed forward, and vLLM."""

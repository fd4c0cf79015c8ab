"""Judges behind an OpenAI-compatible endpoint, and batch files for it."""

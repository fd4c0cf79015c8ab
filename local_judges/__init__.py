"""Prompts in, decisions out: engines, scoring, parsing and the runner."""

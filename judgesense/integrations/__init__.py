"""Adapters for Inspect, pytest, GitHub, promptfoo, DeepEval and MLflow, one file each."""

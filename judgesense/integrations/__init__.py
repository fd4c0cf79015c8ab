"""Adapters for GitHub, Inspect, MLflow and pytest, one file each."""

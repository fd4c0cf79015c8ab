"""What the six `evaluate` modules in `metrics/` share."""

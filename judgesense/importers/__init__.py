"""Foreign logs to the decision log, one file a format."""

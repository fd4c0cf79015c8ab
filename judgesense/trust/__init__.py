"""What a person may conclude from the figures: checks, advice, thresholds and plans."""

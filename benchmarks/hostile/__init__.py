"""Wrong input for every reader; see ``hostile_input.py``."""

"""The folder of a run: its files, and the one reader and writer of each."""

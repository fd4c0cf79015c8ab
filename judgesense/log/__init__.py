"""The decision log: its schema, its rows, the folder of a run, and the view of it."""

"""The decision log: its schema (`log`) and `view.view`, the start of every measurement."""

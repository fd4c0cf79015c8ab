"""Items and templates to validated pairs to a Hub dataset folder."""

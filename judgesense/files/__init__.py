"""The one door for files: CSV, JSON lines, JSON, YAML and Parquet, each error with its place."""

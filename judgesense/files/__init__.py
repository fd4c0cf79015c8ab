"""Read CSV, JSON lines, JSON, YAML and Parquet files; every error names its place."""

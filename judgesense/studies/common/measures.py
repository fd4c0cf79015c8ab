"""The old place of the tables that a run's report fills."""

from judgesense.reporting.run_tables import cost_table

__all__ = ["cost_table"]

"""What the studies share: results and tables, figures, question sets, tables of any log."""

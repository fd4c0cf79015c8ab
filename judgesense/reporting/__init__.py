"""Decisions and pairs to report.json; from there to terminal, Markdown, LaTeX, HTML and figures."""

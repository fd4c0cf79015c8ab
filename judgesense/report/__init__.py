"""Decisions and pairs to report.json, and from there to terminal, Markdown, LaTeX, HTML and figures."""

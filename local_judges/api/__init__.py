"""Judges at an OpenAI-compatible endpoint.

To add a provider, add an entry under ``endpoints`` in ``local_judges/data/judges.yaml``, or in your
own judge file: its URL, the variable of its key, and how its requests differ (``style``).
"""

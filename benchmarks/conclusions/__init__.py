"""Sections of ``benchmarks/conclusions.py``.

A section is a module with ``cells(runs, quick, jobs)`` that yields `frame.Cell`.
"""

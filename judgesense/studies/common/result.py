"""The old place of a study's result, its declaration and its figures from a paper."""

from judgesense.reporting.result import Column, Picture, Record, Result, Table, Value
from judgesense.studies.common.study import Published, judged, need_judges, published

RESULT_FILE = "study.json"

__all__ = [
    "RESULT_FILE", "Column", "Picture", "Published", "Record", "Result", "Table", "Value",
    "judged", "need_judges", "published",
]  # fmt: skip

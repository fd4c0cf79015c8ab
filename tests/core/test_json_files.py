"""JSON from elsewhere: one error for whatever is wrong, with its place."""

from __future__ import annotations

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.files.json import parse_json


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON .Expecting value, column 1"),
        ('{\n"a": }', "line 2, column 6"),
        (b"\xff{}", "not UTF-8 at byte 0"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 100_000 + "}", "an integer that is too long"),
        ('{"id": "\\ud83d"}', "half a surrogate pair"),
        (b'{"\\udc00": 1}', "half a surrogate pair"),
        ('{"a": {"b": 1, "c": 2, "b": 1}}', "the key 'b' appears twice"),
    ],
)
def test_what_cannot_be_read_is_one_error_that_names_its_place(
    text: str | bytes, said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=f"log.jsonl, line 3: .*{said}"):
        parse_json(text, "log.jsonl, line 3")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_a_number_that_is_not_finite_is_refused_where_none_may_be(number: str) -> None:
    with pytest.raises(JudgeSenseError, match=f"run.json: holds {number}, which is not a finite"):
        parse_json(f'{{"a": [{number}]}}', "run.json", finite=True)
    assert list(parse_json(f'{{"a": {number}}}', "run.json")) == ["a"]


def test_what_can_be_read_is_unchanged() -> None:
    text = '{"a": [1, 2.5, null, "\\ud83d\\ude00 \\u00e9"]}'
    assert parse_json(text, "x") == {"a": [1, 2.5, None, "😀 é"]}
    assert parse_json(text.encode(), "x") == parse_json(text, "x")

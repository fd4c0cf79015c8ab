"""Variants in `check` and in a study of your own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.studies.custom import run_study
from local_judges.callable_judge import CallableJudge

TEMPLATES = """
tasks:
  polite:
    labels: [YES, NO]
    layout: "{instruction}\\n\\nAnswer: {answer}"
    templates:
      - {id: a, text: "Is the answer polite? YES or NO."}
      - {id: b, text: "A polite answer? YES or NO."}
"""
STUDY = """
items: items.jsonl
templates: templates.yaml
judges: [gpt-4o]
variants: [rewording, json, opposite-item, mine.yaml]
measures: [jss, wordings, flips]
"""
OWN = 'variants:\n  inverted-polite: {class: contrast, texts: {polite: {text: "Is it rude? YES or NO.", label_map: {YES: NO, NO: YES}}}}\n'  # noqa: E501


def polite(messages: list[str]) -> list[str]:
    """Follows the question; reads only whether the item pleads."""
    return ["NO" if ("please" in text) == ("rude" in text) else "YES" for text in messages]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    items = [
        {
            "item_id": f"i{n}",
            "answer": f"{'please' if n % 3 else 'now'}, number {n}",
            "gold": "YES" if n % 3 else "NO",
        }
        for n in range(12)
    ]
    texts = {
        "items.jsonl": "\n".join(json.dumps(item) for item in items),
        "templates.yaml": TEMPLATES,
        "mine.yaml": OWN,
        "study.yaml": STUDY,
        "rubric.txt": "Is the answer polite? Answer YES or NO.\n\nAnswer: {answer}",
        "wordings.txt": "A polite answer? Answer YES or NO.",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_a_study_of_your_own_asks_variants_of_a_file_beside_it(folder: Path) -> None:
    run_study(folder / "study.yaml", folder / "out", str, [CallableJudge(polite)])
    report = json.loads((folder / "out" / "run" / "report.json").read_text("utf-8"))
    rows = {row["variant"]: row for row in report["variants"]}
    assert rows["json"]["jss"] == rows["inverted-polite"]["follows"] == 1
    assert rows["opposite-item"]["follows"] == 1
    asked = report["runs"][0]["asked"]["data"]
    assert asked["variants"][:3] == ["rewording", "json", "opposite-item"]
    assert len(asked["variant_files"]) == 1
    text = STUDY.replace("json,", "jsno,")
    (folder / "study.yaml").write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=r"study\.yaml, variants: unknown variant 'jsno'"):
        run_study(folder / "study.yaml", folder / "out")


def test_check_asks_variants_of_the_rubric(folder: Path) -> None:
    found = judgesense.check(
        folder / "rubric.txt",
        folder / "items.jsonl",
        polite,
        wordings=folder / "wordings.txt",
        variants=["rewording", "structure", "few-shot"],
        out=folder / "check",
        note=str,
        repeats=1,
    )
    report = json.loads((folder / "check" / "report.json").read_text("utf-8"))
    rows = {row["variant"]: row for row in report["variants"]}
    assert set(rows) == {"rewording", None, "role", "system-message", "json", "few-shot"}
    assert found.jss == rows[None]["jss"] == 1
    assert rows["few-shot"]["n_pairs"] == 12

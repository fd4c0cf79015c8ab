"""Template and item files: the paper's wordings to the letter, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Task
from judgesense_dataset.embedded import TEMPLATES
from judgesense_dataset.templates import load_items, load_templates

GOOD = """\
tasks:
  tone:
    labels: [POLITE, RUDE]
    layout: "{instruction}\\n\\nMessage: {message}"
    templates:
      - id: tone-1
        text: Is this message polite or rude? Answer POLITE or RUDE.
      - id: tone-2
        text: Judge the tone. POLITE or RUDE.
"""

SECOND = "Judge the tone. POLITE or RUDE."
TONE = Task("tone", ("POLITE", "RUDE"))


def test_the_twenty_templates_are_those_of_appendix_a(shared: Path) -> None:
    paper = (shared / "papers" / "judgesense.txt").read_text(encoding="utf-8")
    appendix = paper[paper.index("## Appendix A") : paper.index("## Appendix B")]
    printed = [
        line.strip().removeprefix("“").removesuffix("”")
        for line in appendix.splitlines()
        if line.strip().startswith("“")
    ]
    ours = [t.text for entry in load_templates(TEMPLATES).values() for t in entry.templates]
    assert len(printed) == 20
    assert ours == printed


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("layout:", "layuot:", 4, "unknown key 'layuot'"),
        ("tasks:", "task:", 1, "unknown key 'task'"),
        ("{instruction}", "", 4, "the layout lacks {instruction}"),
        ("{message}", "{the message}", 4, "{the message} is not a placeholder"),
        ("[POLITE, RUDE]", "[POLITE]", 2, "at least two different strings"),
        ("[POLITE, RUDE]", "[POLITE, ERROR]", 2, "reserved words"),
        ("[POLITE, RUDE]", "POLITE", 3, "valid list"),
        ("id: tone-2", "id: tone-1", 8, "'tone-1' is already used at"),
        (SECOND, "''", 9, "must not be empty"),
        (f"        text: {SECOND}\n", "", 8, "missing key 'text'"),
        (SECOND, f"{SECOND}\n        label_map: {{POLITE: KIND, RUDE: RUDE}}", 10, "to 'KIND'"),
        (SECOND, f"{SECOND}\n        label_map: {{POLITE: RUDE, RUDE: RUDE}}", 10, "'POLITE'"),
        (
            SECOND,
            f"{SECOND}\n        label_map: {{POLITE: POLITE, RUDE: RUDE, ERROR: RUDE}}",
            10,
            "'ERROR' is a reserved word",
        ),
        ("RUDE.\n      - id", "RUDE.\n        text: again\n      - id", 8, "'text' appears twice"),
        ("labels:", "labels: [:", 3, "invalid YAML"),
        ("    labels:", "    ordinal: maybe\n    labels:", 3, "valid boolean"),
        ("    labels:", "    options: {POLITE: message}\n    labels:", 2, "options must name"),
        (
            "    labels:",
            "    options: {POLITE: message, RUDE: other}\n    labels:",
            7,
            "never shows the option {other}",
        ),
    ],
)
def test_an_error_in_a_template_file_names_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, says: str
) -> None:
    path = tmp_path / "mine.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(JudgeSenseError) as raised:
        load_templates(path)
    assert str(raised.value).startswith(f"{path}, line {line}: ")
    assert says in str(raised.value)


def test_a_file_without_items_of_the_task_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"message": "x", "task": "other"}', encoding="utf-8")
    with pytest.raises(JudgeSenseError, match="no row is an item of task 'tone'"):
        load_items(path, TONE)


def test_ids_default_to_the_row_and_a_number_may_be_a_gold_label(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"summary": "s", "gold": 4}\n{"summary": "t"}\n', encoding="utf-8")
    task = Task("coherence", ("1", "2", "3", "4", "5"), ordinal=True)
    first, second = load_items(path, task)
    assert (first.item_id, first.gold, first.cluster_id) == ("coherence-1", "4", "coherence-1")
    assert (second.item_id, second.gold) == ("coherence-2", None)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"message": ""}', "line 2, fields.message: must not be empty"),
        ('{"message": 5}', "line 2, fields.message: input should be a valid string"),
        ('{"text": "x"}', "line 2: missing column 'message'"),
        ('{"message": "x", "gold": "MEAN"}', "line 2, column gold: 'MEAN' is not a label"),
        ('{"message": "x", "gold": true}', "line 2, gold: input should be a valid string"),
        ('{"message": "x", "item_id": "tone-1"}', "line 2, column item_id: 'tone-1' is already"),
        ('{"message": "x"', "line 2: not JSON"),
        ('["message"]', "line 2: expected a JSON object"),
        ('{"message": "\\ud800"}', "line 2: holds half a surrogate"),
    ],
)
def test_an_error_in_an_item_file_names_file_row_and_column(
    tmp_path: Path, line: str, says: str
) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(f'{{"message": "hello"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(JudgeSenseError) as raised:
        load_items(path, TONE, ["message"])
    assert str(raised.value).startswith(str(path))
    assert says in str(raised.value)

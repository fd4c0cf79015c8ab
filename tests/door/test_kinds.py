"""Small files of the kinds that people bring, one a kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from door.cases import checked, readable
from typer.testing import CliRunner

import judgesense
from judgesense.answers import parse
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.tasks import UNCLEAR

Row = dict[str, Any]
SAID = ["yes", "no", "yes", "yes", "no", "yes"]
TRUE = ["yes", "no", "no", "yes", "no", "no"]


def mlflow() -> list[Row]:
    def given(kind: str, value: str, when: str) -> Row:
        return {
            "assessment_name": "tone",
            "source": {"source_type": kind, "source_id": kind.lower()},
            "feedback": {"value": value},
            "create_time": when,
        }

    return [
        {
            "info": {
                "trace_id": f"t{n}",
                "assessments": [
                    given("LLM_JUDGE", "no" if said == "yes" else "yes", "2026-01-01"),
                    given("LLM_JUDGE", said, "2026-01-02"),
                    given("HUMAN", label, "2026-01-01"),
                    given("HUMAN", label, "2026-01-01"),
                    given("CODE", "yes", "2026-01-01"),
                ],
            },
            "data": {"spans": []},
        }
        for n, (said, label) in enumerate(zip(SAID, TRUE, strict=True))
    ]


def opik() -> list[Row]:
    return [
        {
            "id": f"t{n}",
            "input": {"q": n},
            "feedback_scores": [
                {"name": "tone", "category_name": said, "value": 1.0, "source": "online_scoring"},
                {"name": "tone", "category_name": label, "value": 1.0, "source": "ui"},
            ],
        }
        for n, (said, label) in enumerate(zip(SAID, TRUE, strict=True))
    ]


def label_studio() -> list[Row]:
    def result(value: str) -> list[Row]:
        return [{"from_name": "tone", "type": "choices", "value": {"choices": [value]}}]

    return [
        {
            "id": n,
            "data": {"text": f"text {n}"},
            "annotations": [{"completed_by": 7, "result": result(label)}],
            "predictions": [{"model_version": "gpt-4o", "result": result(said)}],
        }
        for n, (said, label) in enumerate(zip(SAID, TRUE, strict=True))
    ]


def phoenix() -> list[Row]:
    return [
        {
            "span_id": f"s{n}",
            "annotation_name": "tone",
            "annotator_kind": kind,
            # The rows that name no model are of the one that others name.
            "metadata": {"model": "gpt-4o"} if kind == "LLM" and n % 2 else {},
            "source": "API",
            "result.label": value,
            "result.score": 1.0,
        }
        for n, pair in enumerate(zip(SAID, TRUE, strict=True))
        for kind, value in zip(("LLM", "HUMAN"), pair, strict=True)
    ]


def langfuse() -> list[Row]:
    return [
        {"traceId": f"t{n}", "name": "tone", "source": source, "stringValue": value}
        for n, pair in enumerate(zip(SAID, TRUE, strict=True))
        for source, value in zip(("EVAL", "ANNOTATION"), pair, strict=True)
    ]


def weave() -> list[Row]:
    return [
        {
            "call_id": f"c{n}",
            "feedback_type": f"wandb.{kind}.tone",
            "payload": {field: value},
            "creator": "me",
        }
        for n, pair in enumerate(zip(SAID, TRUE, strict=True))
        for (kind, field), value in zip(
            (("runnable", "output"), ("annotation", "value")), pair, strict=True
        )
    ]


def otlp(event: Callable[[str, str, str], Row], place: tuple[str, str, str]) -> list[Row]:
    """Lines of OTLP's files, with one event by a judge and one by a person."""
    return [
        {
            place[0]: [
                {place[1]: [{place[2]: [{"traceId": f"t{n}", **event("tone", said, "llm")}]}]},
                {place[1]: [{place[2]: [{"traceId": f"t{n}", **event("tone", label, "human")}]}]},
            ]
        }
        for n, (said, label) in enumerate(zip(SAID, TRUE, strict=True))
    ]


def attributes(values: Row) -> list[Row]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def otlp_log(name: str, value: str, who: str) -> Row:
    parts = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": value}
    return {
        "eventName": "gen_ai.evaluation.result",
        "attributes": attributes({**parts, "app.evaluator.type": who}),
    }


def otlp_span(name: str, value: str, who: str) -> Row:
    name = f"{name}.human_review" if who == "human" else name
    parts = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": value}
    event = {"name": "gen_ai.evaluation.result", "attributes": attributes(parts)}
    return {"name": "chat", "attributes": [], "events": [event, {"name": "other"}]}


TOOLS = {
    "otlp logs": lambda: otlp(otlp_log, ("resourceLogs", "scopeLogs", "logRecords")),
    "otlp spans": lambda: otlp(otlp_span, ("resourceSpans", "scopeSpans", "spans")),
    "mlflow": mlflow,
    "opik": opik,
    "label studio": label_studio,
    "phoenix": phoenix,
    "langfuse": langfuse,
    "weave": weave,
}


@pytest.mark.parametrize("tool", TOOLS)
def test_scores_of_tools_are_read_wherever_they_are(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(map(json.dumps, TOOLS[tool]())), "utf-8")
    found, result = checked(path, tmp_path)
    ((task, _),) = found
    (entry,) = found.values()
    assert task == "tone"
    assert (entry["n"], entry["accuracy"]) == (6, pytest.approx(4 / 6))
    assert readable(result) == (1.0, 6)


def test_people_and_evaluators_pair_only_where_one_pair_fits(tmp_path: Path) -> None:
    def scores(n: int, names: dict[str, tuple[str, float]]) -> list[Row]:
        return [{"name": name, "value": value, "source": by} for name, (by, value) in names.items()]

    def accuracy(**more: tuple[str, float]) -> float | None:
        rows = []
        for n, (said, label) in enumerate(zip(SAID, TRUE, strict=True)):
            judge, person = (float(word == "yes") for word in (said, label))
            given = {"answer_relevance": ("online_scoring", judge), "sme_relevant": ("ui", person)}
            given |= {name: (by, value + n % 2) for name, (by, value) in more.items()}
            rows.append({"id": f"t{n}", "feedback_scores": scores(n, given)})
        file = tmp_path / f"{len(more)}{'-'.join(more)}.json"
        file.write_text(json.dumps({"content": rows}), "utf-8")
        result = judgesense.check(file, out=tmp_path / file.stem, note=str)
        return result.people[0]["accuracy"] if result.people else None

    assert accuracy() == pytest.approx(4 / 6)
    # Another score of the same words does not take the label's place, nor do times.
    assert accuracy(kind=("ui", 0.0), latency=("sdk", 1.25)) == pytest.approx(4 / 6)
    # Two that are as near are none.
    assert accuracy(expert_relevance=("ui", 0.0)) is None
    # What an application's users click is no label.
    assert accuracy(user_thumb=("api", 0.0)) == pytest.approx(4 / 6)


def test_a_requirement_on_a_group_of_items(tmp_path: Path) -> None:
    rows = [
        {"id": n, "lang": "de" if n % 2 else "en", "verdict": "yes", "human": "yes"}
        for n in range(60)
    ]
    for row in rows[1:50:2]:
        row["human"] = "no"
    for required, code in (("en", 0), ("lang=de", 1)):
        out = tmp_path / required
        result = judgesense.check(rows, require=f"right[{required}]=0.8", out=out, note=str)
        assert result.exit_code == code
    with pytest.raises(JudgeSenseError, match="no group 'fr' of items"):
        judgesense.check(rows, require="right[fr]=0.8", out=tmp_path / "fr", note=str)


def test_most_cells_unread_is_a_question(tmp_path: Path) -> None:
    said = ["yes", "no", "7", "7", "7", "8", "8", "8"]
    rows = [
        {"id": n, "verdict": word, "human": ("yes", "no")[n % 2]} for n, word in enumerate(said)
    ]
    with pytest.raises(JudgeSenseError, match=r"6 unread cells.* --answers"):
        judgesense.check(rows, human="human", out=tmp_path / "out", note=str)


def test_the_judge_is_compared_with_people_as_they_are_with_each_other(tmp_path: Path) -> None:
    rows = [
        {
            "id": n,
            "verdict": "yes" if n % 3 else "no",
            "human_1": "yes" if n % 3 else "no",
            "human_2": "yes" if n % 3 and n % 5 else "no",
        }
        for n in range(60)
    ]
    result = judgesense.check(rows, out=tmp_path / "out", note=str)
    between = result.people[0]["between_people"]
    # The judge is the first person's double: its pairs are one perfect, one as theirs.
    assert between["kappa_with_judge"] == pytest.approx((1 + between["kappa"]) / 2)
    assert between["gap"] == pytest.approx((1 - between["kappa"]) / 2)
    assert 0 < between["gap_ci_low"] < between["gap"] < between["gap_ci_high"]


def test_events_as_otlp_writes_them(tmp_path: Path) -> None:
    rows = [
        {
            "eventName": "gen_ai.evaluation.result",
            "traceId": f"t{n}",
            "attributes": [
                {"key": "gen_ai.evaluation.name", "value": {"stringValue": "tone"}},
                {"key": "gen_ai.evaluation.score.label", "value": {"stringValue": said}},
            ],
        }
        for n, said in enumerate(SAID)
    ]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(rows), "utf-8")
    found, result = checked(path, tmp_path)
    assert found == {}
    assert readable(result) == (1.0, 6)


def test_scores_by_name_are_tasks_with_their_own_labels(tmp_path: Path) -> None:
    rows = [
        {"id": n, "input": n, "scores": {"tone": said, "length": {"passed": n % 2 == 0}}}
        for n, said in enumerate(SAID)
    ]
    path = tmp_path / "experiment.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    _, result = checked(path, tmp_path)
    record = json.loads((result.out / "run.json").read_text("utf-8"))
    assert {name: task["labels"] for name, task in record["tasks"].items()} == {
        "tone": ["no", "yes"],
        "length": ["False", "True"],
    }


def test_a_judges_own_label_is_not_peoples(tmp_path: Path) -> None:
    rows = [
        {"question": n, "label": said, "score": int(said == "yes"), "explanation": "because"}
        for n, said in enumerate(SAID)
    ]
    notes: list[str] = []
    result = judgesense.check(rows, out=tmp_path / "out", note=notes.append)
    assert result.people == []
    assert "--human label" in " ".join(notes)
    assert judgesense.check(
        rows, human="label", verdict="score", out=tmp_path / "o", note=str
    ).people


def test_runs_are_repeats_and_not_items(tmp_path: Path) -> None:
    rows = [
        {"test_case": f"c{n}", "run": f"run-{r}", "verdict": SAID[(n + r) % 6], "human": TRUE[n]}
        for n in range(6)
        for r in range(3)
    ]
    found, result = checked(rows, tmp_path)
    (entry,) = found.values()
    assert entry["n"] == 6
    assert readable(result)[1] == 6
    assert json.loads((result.out / "run.json").read_text("utf-8"))["repeats"] == 3


def test_more_verdicts_on_the_same_input_are_repeats(tmp_path: Path) -> None:
    rows = [
        {"id": n, "reply": f"r{n}", "verdict": said, "human": TRUE[n]}
        for n in range(6)
        for said in (SAID[n], "no")
    ]
    found, result = checked(rows, tmp_path)
    (entry,) = found.values()
    assert entry["n"] == 6
    assert json.loads((result.out / "run.json").read_text("utf-8"))["repeats"] == 2


def test_letters_are_read_as_people_say(tmp_path: Path) -> None:
    """A judge that is nearly always right in the item's own order, under letters."""
    own = ["A", "B", "A", "A", "B", "A", "B", "B", "A", "B"]
    rows = [
        {"q": f"q{n}", "id": n, "order": order, "verdict": label, "human_winner": label}
        for n, label in enumerate(own)
        for order in ("AB", "BA")
    ]
    found, _ = checked(rows, tmp_path / "own")
    assert next(iter(found.values()))["accuracy"] == 1.0
    swap = {"A": "B", "B": "A"}
    shown = [
        {**row, "verdict": swap[row["verdict"]] if row["order"] == "BA" else row["verdict"]}
        for row in rows
    ]
    found, _ = checked(shown, tmp_path / "shown")
    assert next(iter(found.values()))["accuracy"] == 1.0


@pytest.mark.parametrize("form", ["{}/5", "Rating: {}", "**{}**", "{}.0", "{} out of 5"])
def test_ratings_are_read_in_any_form(form: str, tmp_path: Path) -> None:
    rows = [
        {"id": n, "verdict": form.format(3 + (n % 2)), "human": 3 + (n % 3 == 0)} for n in range(12)
    ]
    found, _ = checked(rows, tmp_path)
    (entry,) = found.values()
    assert (entry["n"], entry["accuracy"]) == (12, 0.5)


def test_scores_become_labels_at_a_round_cut(tmp_path: Path) -> None:
    rows = [{"id": n, "judge_score": 41 + 3 * n, "human_score": 44 + 2 * n % 31} for n in range(16)]
    found, result = checked(rows, tmp_path)
    (entry,) = found.values()
    record = json.loads((result.out / "run.json").read_text("utf-8"))
    (task,) = record["tasks"].values()
    assert task["labels"] == ["at least 60", "below 60"]
    same = [(row["judge_score"] >= 60) == (row["human_score"] >= 60) for row in rows]
    assert (entry["n"], entry["accuracy"]) == (16, pytest.approx(sum(same) / 16))
    (scores,) = result.scores
    gaps = [row["judge_score"] - row["human_score"] for row in rows]
    assert scores["bias"] == pytest.approx(sum(gaps) / 16)


def test_a_judge_and_a_person_in_objects(tmp_path: Path) -> None:
    rows = [
        {"id": n, "judge": {"verdict": said, "reason": "so"}, "human": {"verdict": TRUE[n]}}
        for n, said in enumerate(SAID)
    ]
    found, _ = checked(rows, tmp_path)
    (entry,) = found.values()
    assert (entry["n"], entry["accuracy"]) == (6, pytest.approx(4 / 6))


def test_two_games_are_two_orders(tmp_path: Path) -> None:
    rows = [
        {"question_id": n, "g1_winner": f"model_{1 + n % 2}", "g2_winner": g2}
        for n, g2 in enumerate(["model_1", "tie", "model_1", "model_1"])
    ]
    _, result = checked(rows, tmp_path)
    fair = result.trust[0]["checks"]["fair"]
    assert (fair["estimate"], fair["n_items"]) == (0.5, 4)
    odd = [
        {**row, "g1_winner": "red", "g2_winner": "red" if n else "blue"}
        for n, row in enumerate(rows)
    ]
    with pytest.raises(JudgeSenseError, match="--map"):
        checked(odd, tmp_path / "odd")


def test_alpaca_evals_preferences_are_choices(tmp_path: Path) -> None:
    rows = [
        {
            "instruction": f"say {n}",
            "generator_1": "reference",
            "generator_2": "mine",
            "annotator": "gpt-4",
            "preference": preference,
        }
        for n, preference in enumerate([1.0, 1.9, 1.5, 2.0, 1.2])
    ]
    _, result = checked(rows, tmp_path)
    record = json.loads((result.out / "run.json").read_text("utf-8"))
    (task,) = record["tasks"].values()
    assert task["labels"] == ["mine", "reference", "tie"]


@pytest.mark.parametrize(
    ("required", "code"),
    [("right=0.2", 0), ("x:right=0.99", 1), ("right=0.66", 3), ("wright=1", 2), ("y:right=1", 2)],
)
def test_a_requirement_is_a_gate(required: str, code: int, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    lines = [
        f"{n},{said},{true}" for n, (said, true) in enumerate(zip(SAID * 5, TRUE * 5, strict=True))
    ]
    file.write_text("\n".join(["id,verdict,human", *lines]), "utf-8")
    done = CliRunner().invoke(
        app, ["check", str(file), "--require", required, "--out", str(tmp_path / "out")]
    )
    found = done.exit_code
    if isinstance(done.exception, JudgeSenseError):
        found = 2
    assert found == code
    if code != 2:
        result = judgesense.check(file, require=required, out=tmp_path / "py", note=str)
        assert (result.exit_code, result.passed) == (code, code == 0)


def test_a_dry_run_prints_the_reading_only(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("id,verdict,human\n1,PASS,pass\n2,FAIL.,pass\n3,**PASS**,fail\n", "utf-8")
    done = CliRunner().invoke(
        app, ["check", str(file), "--dry-run", "--out", str(tmp_path / "out")]
    )
    assert done.stdout.splitlines() == [
        "Read 3 rows of x.csv",
        "Verdicts: verdict",
        "People's labels: human",
        "Items: id",
        "Possible labels: fail, pass",
    ]
    assert not (tmp_path / "out").exists()


def test_a_page_of_opiks_traces_pairs_names_that_say_who_scored(tmp_path: Path) -> None:
    traces = opik()
    for trace in traces:
        trace["feedback_scores"][0]["name"] = "Tone"
        trace["feedback_scores"][1]["name"] = "tone_human"
        trace["feedback_scores"].append(
            {"name": "thumbs", "value": 1.0, "category_name": "up", "source": "ui"}
        )
    file = tmp_path / "traces.json"
    file.write_text(json.dumps({"page": 1, "content": traces}), "utf-8")
    notes: list[str] = []
    result = judgesense.check(file, out=tmp_path / "out", note=notes.append)
    report = json.loads((result.out / "report.json").read_text("utf-8"))
    (found,) = report["people"]
    assert (found["task"], found["accuracy"]) == ("Tone", sum(map(str.__eq__, SAID, TRUE)) / 6)
    assert any("6 scores 'thumbs' by people" in note for note in notes)


def test_objects_in_objects_are_read_and_may_lack_a_reason(tmp_path: Path) -> None:
    rows = [
        {"eval": {"judge": {"verdict": said, "reasoning": "so"}, "human": {"label": true}}}
        for said, true in zip(SAID, TRUE, strict=True)
    ]
    rows[2]["eval"]["judge"] = {"verdict": None, "error": "timeout"}
    _, result = checked(rows, tmp_path)
    (found,) = json.loads((result.out / "report.json").read_text("utf-8"))["people"]
    assert (found["n"], found["accuracy"]) == (5, 0.8)


def test_a_workbook_has_one_sheet_with_a_table(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Ratings of March"])
    sheet.append([])
    sheet.append(["id", "reply", "verdict", "human"])
    for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True)):
        sheet.append([n, f"reply {n}", said, true])
    notes = book.create_sheet("notes")
    notes.append(["Written by", "Ann"])
    file = tmp_path / "x.xlsx"
    book.save(file)
    result = judgesense.check(file, out=tmp_path / "out", note=str)
    (found,) = json.loads((result.out / "report.json").read_text("utf-8"))["people"]
    assert (found["n"], found["accuracy"]) == (6, pytest.approx(4 / 6))
    notes.append(["a", "b"])
    for row in ([1, 2], [3, 4]):
        notes.append(row)
    sheet.delete_cols(3, 2)
    book.save(file)
    with pytest.raises(JudgeSenseError, match="several sheets with a table"):
        judgesense.check(file, out=tmp_path / "again", note=str)
    file.write_bytes(b"x")
    with pytest.raises(JudgeSenseError, match="cannot be read as an Excel workbook"):
        judgesense.check(file, out=tmp_path / "again", note=str)


def test_a_judges_text_may_be_json_without_a_value() -> None:
    assert parse('{"reason": ""}', ("yes", "no")) == UNCLEAR

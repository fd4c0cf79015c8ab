"""Sheets and exports as people bring them: twelve items each, with the figures or the question."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from door.cases import checked, readable

import judgesense
from judgesense.errors import JudgeSenseError

Row = dict[str, Any]
TRUE = [True, True, False, True, False, True, True, True, False, True, True, False]
SAID = [True, False, False, True, True, True, True, True, False, False, True, True]
RIGHT = 8 / 12


def words(yes: str, no: str, flags: Sequence[bool] = TRUE) -> list[str]:
    return [yes if flag else no for flag in flags]


def lines(header: str, *columns: Sequence[str], sep: str = ";") -> str:
    rows = [sep.join((f"i{n}", *cells)) for n, cells in enumerate(zip(*columns, strict=True))]
    return "\n".join([header, *rows]) + "\n"


def jsonl(rows: Sequence[Row]) -> str:
    return "\n".join(map(json.dumps, rows)) + "\n"


def sheet_under_a_title() -> str:
    one, judge = words("i.O.", "n.i.O."), words("i. O.", "n.i.O.", SAID)
    body = lines("Nr;KM;TB;KI-Prüfer;Sicherheit KI", one, one, judge, ["0,9"] * 12)
    extra = "i12;i.O.;i.O.;nicht beurteilbar;0,5\n;Summe;8;8;\n"
    return f"Prüfung, Woche 41, Stand 24.10.;;;;\n;;;;\n{body}{extra}KM = Kerstin, TB = Tom;;;;\n"


def marks_that_look_alike() -> str:
    people, judge = words("○", "△"), words("○", "△", SAID)
    people[0], people[3], judge[8], people[8] = "〇", "◯", "✕", "×"
    return lines("番号,評価者A,評価者B,GPT判定", people, people, judge, sep=",")


def arbiter() -> str:
    first, second = words("合格", "不合格"), words("合格", "不合格")
    final = [""] * 12
    second[1], final[1], second[4], final[4] = "不合格", "合格", "合格", "不合格"
    judge = words("【合格】", "判定：不合格", SAID)
    return lines("序号,标注员甲,标注员乙,仲裁,裁判模型", first, second, final, judge, sep=",")


def settled_label() -> str:
    final, judge = words("4", "2"), words("4/5", "2 / 5", SAID)
    final[0], judge[0] = "5", "5/5"
    one, other = ["4", "5", "3", "2"] * 3, ["2", "3", "3", "4"] * 3
    return lines("Réf;Note Anna;Note Léo;Note retenue;Note LLM;Temps LLM (s)", one, other, final,
                 judge, [f"{n},5" for n in range(12)])  # fmt: skip


def systems_of_each_row() -> str:
    systems = [("DeepL", "GPT-4.1"), ("Tower-70B", "DeepL"), ("GPT-4.1", "Tower-70B")] * 4
    people = [pair[not true] for pair, true in zip(systems, TRUE, strict=True)]
    judge = [pair[not said] for pair, said in zip(systems, SAID, strict=True)]
    people[0], judge[0], people[1] = "both fine", "No preference", "Tower"
    first, second = zip(*systems, strict=True)
    return lines("Nr\tSystem 1\tSystem 2\tIngrid\tWes\tClaude says", first, second, people,
                 people, judge, sep="\t")  # fmt: skip


def arena() -> str:
    votes, said = words("model_a", "tie (bothbad)"), words("A>>B", "A=B", SAID)
    return jsonl(
        [
            {"question_id": f"q{n}", "model_a": "m", "model_b": "k", "winner": vote,
             "judge": f"user_{n % 5}", "autojudge": {"model": "gpt-4.1", "verdict": verdict}}
            for n, (vote, verdict) in enumerate(zip(votes, said, strict=True))
        ]
    )  # fmt: skip


def pairs_in_both_orders_and_turns() -> str:
    rows = []
    for n, flags in enumerate(zip(SAID, TRUE, TRUE, strict=True)):
        for judge, flag in zip(("gpt4_pair", "expert_1", "author_2"), flags, strict=True):
            pair = ["claude", "llama"] if judge == "expert_1" else ["llama", "claude"]
            winner = "model_a" if (pair[0] == "llama") == flag else "model_b"
            row = {"model_a": pair[0], "model_b": pair[1], "winner": winner, "judge": judge}
            rows.append({"question_id": n // 2, **row, "turn": 1 + n % 2})
    return jsonl(rows)


def judge_among_raters() -> str:
    raters = {"Marina": TRUE, "Paulo": TRUE, "GPT-4o": SAID}
    rows = [
        f"R{n};{name};{'sim' if flag else 'não'};{'faltou, ver' if n == 3 else ''}"
        for name, flags in raters.items()
        for n, flag in enumerate(flags)
    ]
    return "\n".join(["id_resposta;avaliador;resolve?;obs", *rows]) + "\n"


def mean_of_several_people() -> str:
    def by(author: str, value: bool) -> Row:
        return {author: {"value": int(value), "source": "ui"}}

    return jsonl(
        [
            {"id": f"t{n}", "feedback_scores": [
                {"name": "lies", "value": float(said), "source": "online_scoring"},
                {"name": "lies_human", "value": (1 + true) / 3, "source": "ui",
                 "value_by_author": {**by("a", true), **by("b", not true), **by("c", true)}},
            ]}
            for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
        ]
    )  # fmt: skip


def index_of_a_category() -> str:
    rows = []
    for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True)):
        person = {"dataType": "CATEGORICAL", "value": int(not true), "source": "ANNOTATION"}
        word = {"name": "review", "stringValue": "helpful" if true else "not helpful"}
        rows.append({"traceId": f"t{n}", "observationId": None, **word, **person})
        judge = {"name": "Helpful", "value": int(said), "source": "EVAL", "stringValue": None}
        rows.append({"traceId": f"t{n}", "observationId": f"o{n}", **judge})
    return jsonl(rows)


def labelbox() -> str:
    def label(true: bool) -> Row:
        chosen = {"value": "yes_send" if true else "no_rewrite"}
        asked = {"name": "Would you send it?", "value": "send_it", "radio_answer": chosen}
        return {
            "label_details": {"created_by": "a@b.org"},
            "annotations": {"classifications": [asked]},
        }

    return jsonl(
        [
            {"data_row": {"id": f"d{n}"}, "projects": {"p": {"labels": [label(true)]}},
             "metadata_fields": [
                 {"schema_name": "llm_judge", "value": "send" if said else "rewrite"},
                 {"schema_name": "llm_judge_model", "value": "gemini"}]}
            for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
        ]
    )  # fmt: skip


def columns_of_argilla() -> str:
    return jsonl(
        [
            {"id": n, "ok.responses": [words("no", "yes")[n], words("yes", "no")[n]],
             "ok.responses.users": ["u1", "u2"], "ok.responses.status": ["draft", "submitted"],
             "ok.suggestion": words("yes", "no", SAID)[n], "ok.suggestion.score": 0.5 + n / 99,
             "ok.suggestion.agent": "gpt-4.1"}
            for n in range(12)
        ]
    )  # fmt: skip


def manifest() -> str:
    def labelled(n: int, true: bool, by: str) -> Row:
        told = {"class-name": "good" if true else "bad", "human-annotated": by}
        row = {"source": f"s{n}", "llm-verdict": words("good", "bad", SAID)[n % 12]}
        return {**row, "audit": int(not true), "audit-metadata": told}

    people = [labelled(n, true, "yes") for n, true in enumerate(TRUE)]
    return jsonl(people + [labelled(n + 12, said, "no") for n, said in enumerate(SAID)])


def braintrust() -> str:
    def row(n: int) -> Row:
        scores = {"Factuality": int(SAID[n]), "ExactMatch": 0.5, "Dana": int(TRUE[n])}
        path = {"action": "merge", "path": ["scores", "Dana"]}
        audit = [{"source": "api", "audit_data": {"action": "upsert"}}]
        audit += [{"source": "app", "audit_data": path}]
        return {"id": f"s{n}", "input": f"q {n}", "scores": scores, "audit_data": audit}

    return json.dumps([row(n) for n in range(12)])


def scores_of_a_person() -> str:
    names = {"Factuality": SAID, "Human: acceptable": TRUE}
    return jsonl(
        [
            {"id": f"s{n}", "input": f"q {n}", "scores": {k: int(v[n]) for k, v in names.items()}}
            for n in range(12)
        ]
    )


def models_beside_sides() -> str:
    sides = [("v12", "v13") if n % 2 else ("v13", "v12") for n in range(12)]
    people = [pair[not true].upper() for pair, true in zip(sides, TRUE, strict=True)]
    judge = words("Left", "Right", SAID)
    people[2], judge[0] = "tie", "Left"
    people[0], judge[2] = sides[0][0] + " ", "Same"
    left, right = zip(*sides, strict=True)
    return lines("#,Left,Right,Left answer,Gemini prefers,Hanna,Wei", left, right,
                 [f"Answer {n}" for n in range(12)], judge, people, people, sep=",")  # fmt: skip


def marks_of_winners() -> str:
    marks = [("1", "0", "0") if true else ("0", "1", "0") for true in TRUE]
    judge = words("[[A]]", "[[B]]", SAID)
    marks[0], judge[0] = ("0", "0", "1"), "[[C]]"
    names = "winner_model_a,winner_model_b,winner_tie,gpt4_verdict"
    return lines(f"id,model_a,model_b,{names}",
                 ["m", "k"] * 6, ["n", "l"] * 6, *zip(*marks, strict=True),
                 judge, sep=",")  # fmt: skip


def marks_of_people_who_name_no_model() -> str:
    systems = [("DeepL", "GPT-4.1"), ("Tower-70B", "DeepL"), ("GPT-4.1", "Tower-70B")] * 4
    judge = [pair[not said] for pair, said in zip(systems, SAID, strict=True)]
    marks = [("x", "", "") if true else ("", "x", "") for true in TRUE]
    marks[0], judge[0] = ("", "", "x"), "tie"
    names = "Human prefers A,Human prefers B,Human prefers tie,Claude judge winner"
    return lines(f"Query,Model A,Model B,{names}", *zip(*systems, strict=True),
                 *zip(*marks, strict=True), judge, sep=",")  # fmt: skip


def scores_of_both_sides() -> str:
    a, b = words("8", "4", SAID), ["6"] * 12
    people = words("A", "b")
    people[0], a[0] = "tie", "6"
    return lines("ID;Prompt;GPT-4o score A;GPT-4o score B;My preference;Sure?",
                 [f"p{n}" for n in range(12)], a, b, people, ["2", "1"] * 6)  # fmt: skip


@pytest.mark.parametrize(
    ("export", "suffix"),
    [
        (sheet_under_a_title, "csv"),
        (marks_that_look_alike, "csv"),
        (arbiter, "csv"),
        (settled_label, "csv"),
        (systems_of_each_row, "tsv"),
        (arena, "jsonl"),
        (pairs_in_both_orders_and_turns, "jsonl"),
        (judge_among_raters, "csv"),
        (mean_of_several_people, "jsonl"),
        (index_of_a_category, "jsonl"),
        (labelbox, "ndjson"),
        (columns_of_argilla, "jsonl"),
        (manifest, "manifest"),
        (braintrust, "json"),
        (scores_of_a_person, "jsonl"),
        (models_beside_sides, "csv"),
        (marks_of_winners, "csv"),
        (scores_of_both_sides, "csv"),
        (marks_of_people_who_name_no_model, "csv"),
    ],
)
def test_people_and_judge_are_who_they_are(
    export: Callable[[], str], suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"file.{suffix}"
    path.write_text(export(), "utf-8")
    result = judgesense.check(path, out=tmp_path / "out", runs=tmp_path, note=str)
    entry = result.people[0]
    assert (entry["n"], entry["accuracy"]) == (12, pytest.approx(RIGHT))


def test_a_verdict_with_its_reason_and_no_people(tmp_path: Path) -> None:
    said = [*words("PASS - covers it", "FAIL - key fact wrong", SAID), "Cannot assess this page"]
    rows = [
        {"Q": f"q{n}", "Expected": f"Section {n}", "LLM judge": text, "Human": None}
        for n, text in enumerate(said)
    ]
    found, result = checked(rows, tmp_path)
    assert found == {}
    assert readable(result) == (pytest.approx(12 / 13), 13)


def test_the_letter_of_a_system_is_the_order(tmp_path: Path) -> None:
    letters = [("[[A]]", "[[B]]"), ("[[A]]", "[[A]]"), ("[[C]]", "[[C]]"), ("[[B]]", "[[A]]")] * 3
    rows = [
        {"id": n, "judge_run1 (old=A)": one, "judge_run2 (old=B)": two}
        for n, (one, two) in enumerate(letters)
    ]
    _, result = checked(rows, tmp_path)
    assert result.trust[0]["checks"]["fair"]["estimate"] == pytest.approx(0.75)


def corrected(n: int) -> Row:
    correction = {"score": 1 - SAID[n]} if n < 3 else None
    row = {"run_id": f"r{n}", "key": "quality", "score": int(SAID[n]), "correction": correction}
    return row | {"feedback_source": {"type": "auto_eval"}}


@pytest.mark.parametrize(
    ("row", "asked", "settled", "right"),
    [
        (corrected, "--human corrected", {"human": "corrected"}, 9 / 12),
        (
            lambda n: {"id": n, "V7_code": 9 if n == 5 else 2 - TRUE[n], "LLM_V7": int(SAID[n])},
            "--map 0=2,9=n/a",
            {"human": "V7_code", "map": {"0": "2", "9": "n/a"}},
            7 / 11,
        ),
        (
            lambda n: {"id": n, "flipped": n % 3 == 0, "human": 1 + TRUE[n], "judge": 1 + SAID[n]},
            "--map 1=model_a,2=model_b",
            {"map": {"1": "model_a", "2": "model_b"}},
            RIGHT,
        ),
        (lambda n: {"id": n, "panel": "A > C = B", "judge": "A>C=B"}, "rank answers", {}, None),
        (
            lambda n: {
                "id": n,
                "label": int(TRUE[n]),
                "judge": ["FAITHFUL", "HALLUCINATED"][SAID[n]],
            },
            "--map 0=HALLUCINATED,1=FAITHFUL",
            {"positive": "hallucinated"},
            RIGHT,
        ),
        (
            lambda n: {"id": n, "moderator": ["clean", "spam"][TRUE[n]], "llm_label": int(SAID[n])},
            "--map 0=clean,1=spam or --map 0=spam,1=clean",
            {"map": {"1": "spam", "0": "clean"}},
            RIGHT,
        ),
    ],
)
def test_what_changes_a_figure_is_asked(
    row: Callable[[int], Row], asked: str, settled: Row, right: float | None, tmp_path: Path
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(jsonl([row(n) for n in range(12)]), "utf-8")
    with pytest.raises(JudgeSenseError, match=asked):
        judgesense.check(path, out=tmp_path / "out", runs=tmp_path, note=str)
    if settled:
        result = judgesense.check(path, out=tmp_path / "o", runs=tmp_path, note=str, **settled)
        assert result.people[0]["accuracy"] == pytest.approx(right)


@pytest.mark.parametrize(
    ("person", "yes", "no"),
    [
        ("human_hallucination", "HALLUCINATED", "FAITHFUL"),
        ("human_faithfulness", "FAITHFUL", "HALLUCINATED"),
        ("human label (1 = unsafe)", "unsafe", "safe"),
        ("human_not_toxic", "ok", "toxic"),
    ],
)
def test_what_a_one_counts_is_in_the_name(person: str, yes: str, no: str, tmp_path: Path) -> None:
    rows = [
        {"id": n, person: int(TRUE[n]), "judge_verdict": yes if SAID[n] else no} for n in range(12)
    ]
    found, _ = checked(rows, tmp_path)
    assert found.popitem()[1]["accuracy"] == pytest.approx(RIGHT)


@pytest.mark.parametrize(
    ("people", "judge"),
    [
        (("Evet", "Hayır"), ("EVET", "HAYIR")),
        (("İyi", "Kötü"), ("iyi", "KÖTÜ")),
        (("Ναι", "Όχι"), ("ΝΑΙ", "ΟΧΙ")),
        (("Σωστός", "Λάθος"), ("ΣΩΣΤΌΣ", "ΛΆΘΟΣ")),
        (("Größe", "Maß"), ("GRÖSSE", "MASS")),
        (("Accepté", "Refusé"), ("ACCEPTE", "Refuse\u0301")),
    ],
)
def test_spelling_makes_no_class(
    people: tuple[str, str], judge: tuple[str, str], tmp_path: Path
) -> None:
    rows = [
        {"id": n, "human": people[not true], "judge": (judge if n % 2 else people)[not said]}
        for n, (true, said) in enumerate(zip(TRUE, SAID, strict=True))
    ]
    found, _ = checked(rows, tmp_path)
    entry = found.popitem()[1]
    assert (entry["n"], entry["accuracy"]) == (12, pytest.approx(RIGHT))
    assert {*entry["confusion"]} == {*people}


@pytest.mark.parametrize(
    "null", ["\\N", "\\\\N", "(null)", "NULL", "None", "#N/D", "#NV", "#BEZUG!", "NaN", "<NA>",
             "undefined", "—"]
)  # fmt: skip
@pytest.mark.parametrize(("yes", "no"), [("t", "f"), ("True", "False"), ("ja", "nein")])
def test_words_for_null_say_nothing(null: str, yes: str, no: str, tmp_path: Path) -> None:
    judge, people = words(yes, no, SAID), words(yes, no)
    path = tmp_path / "dump.tsv"
    path.write_text(
        lines("id\treviewer_passed\tjudge_passed", [*people, null, null, null, yes, null],
              [*judge, yes, null, no, null, yes], sep="\t"), "utf-8"
    )  # fmt: skip
    result = judgesense.check(path, out=tmp_path / "out", runs=tmp_path, note=str)
    (entry,) = result.people
    assert (entry["n"], entry["accuracy"]) == (12, pytest.approx(RIGHT))
    assert {*entry["confusion"]} == {yes, no}
    assert readable(result) == (pytest.approx(15 / 17), 17)


def test_a_scale_in_words_is_ordered(tmp_path: Path) -> None:
    levels = ["Strongly disagree", "DISAGREE", "Neutral", "Agree", "strongly agree", "Agree"]
    codes = ["strongly_disagree", "neutral", "neutral", "agree", "agree", "strongly_agree"]
    rows = [{"id": n, "Rater": levels[n % 6], "judge": codes[n % 6]} for n in range(24)]
    rows[2]["Rater"] = "Neither agree nor disagree"
    rows += [{"id": 24, "Rater": "Agree", "judge": "not_applicable"}]
    found, _ = checked(rows, tmp_path)
    entry = found.popitem()[1]
    assert (entry["n"], entry["accuracy"]) == (24, 0.5)
    # Quadratic: half of the verdicts are one level off.
    assert entry["kappa"] == pytest.approx(0.8525, abs=1e-4)


def test_scores_of_azure_have_two_names_and_no_people(tmp_path: Path) -> None:
    def score(name: str, value: float) -> Row:
        last = {name: value, f"gpt_{name}": value, f"{name}_result": "pass", f"{name}_threshold": 3}
        return {f"outputs.{name}.{key}": said for key, said in last.items()}

    rows = [
        {"inputs.query": f"q {n}", **score("tone", n % 3 + 3.0), **score("relevance", 5 - n % 2)}
        | {"outputs.f1_score.f1_score": 0.25, "outputs.f1_score.f1_result": "fail"}
        for n in range(12)
    ]
    rows[3]["outputs.tone.tone"] = rows[3]["outputs.tone.gpt_tone"] = None
    found, result = checked(rows, tmp_path)
    assert found == {}
    shares = {c["task"]: c["checks"]["readable"]["estimate"] for c in result.trust}
    assert shares == {"tone": pytest.approx(11 / 12), "relevance": 1.0}


def test_a_label_goes_before_its_score(tmp_path: Path) -> None:
    def said(prefix: str, flags: list[bool], n: int) -> Row:
        held = {"label": words("correct", "incorrect", flags)[n], "score": float(flags[n])}
        tone = {"label": words("polite", "rude", flags)[n], "score": float(flags[n])}
        parts = {"QA Correctness": held, "Tone": tone}
        return {f"{prefix}.{k}.{at}": v for k, each in parts.items() for at, v in each.items()}

    rows = [
        {"context.span_id": f"s{n}", "attributes.llm.model_name": "gpt-4o"}
        | said("eval", SAID, n)
        | said("annotation", TRUE, n)
        for n in range(12)
    ]
    found, _ = checked(rows, tmp_path)
    right = {task: each["accuracy"] for (task, _), each in found.items()}
    assert right == {"correctness": pytest.approx(RIGHT), "tone": pytest.approx(RIGHT)}


def test_evaluators_of_langsmith_are_criteria(tmp_path: Path) -> None:
    rows = [
        {"id": n, "feedback.correctness": float(SAID[n]), "feedback.brevity": float(n % 2)}
        | {"feedback.human_correctness": float(TRUE[n]) if n else None}
        for n in range(12)
    ]
    found, result = checked(rows, tmp_path)
    ((task, _), entry) = found.popitem()
    assert (task, entry["n"], entry["accuracy"]) == ("correctness", 11, pytest.approx(7 / 11))
    assert {card["task"] for card in result.trust} == {"correctness", "brevity"}


def test_a_judge_is_named_by_its_model(tmp_path: Path) -> None:
    rows = [
        {"id": n, "meta": {"judge_model": "gpt-4.1"}, "llm_verdict": "yn"[SAID[n]], "human": "y"}
        for n in range(12)
    ]
    _, result = checked(rows, tmp_path)
    assert [card["judge"] for card in result.trust] == ["gpt-4.1"]


def test_a_constant_is_no_label(tmp_path: Path) -> None:
    rows = [{"id": n, "human": "yn"[TRUE[n]], "judge": "yn"[SAID[n]]} for n in range(12)]
    with pytest.raises(JudgeSenseError, match="constant"):
        checked(rows, tmp_path, columns={"gold": ":"})
    with pytest.raises(JudgeSenseError, match="none of the labels"):
        checked(rows, tmp_path, positive="good")


def test_who_decides_among_people_is_said(tmp_path: Path) -> None:
    rows = [
        {"id": n, "FINAL": "yn"[n > 5], "a": "yn"[TRUE[n]], "b": "y", "judge": "yn"[SAID[n]]}
        for n in range(12)
    ]
    notes: list[str] = []
    judgesense.check(
        rows, human=["FINAL", "a", "b"], out=tmp_path / "out", runs=tmp_path, note=notes.append
    )
    assert "FINAL' decides" in "\n".join(notes)


def test_labels_only_where_they_differ_are_corrections(tmp_path: Path) -> None:
    said = ["pass", "fail", "pass"] * 8
    rows = [
        {
            "id": n,
            "llm_verdict": word,
            "human_override": {"pass": "fail"}.get(word) if n < 9 else "",
        }
        for n, word in enumerate(said)
    ]
    with pytest.raises(JudgeSenseError, match="all of which differ"):
        judgesense.check(rows, out=tmp_path / "out", runs=tmp_path, note=str)
    rows[9]["human_override"] = said[9]
    assert judgesense.check(rows, out=tmp_path / "out", runs=tmp_path, note=str).people


def test_one_word_of_another_kind_is_no_label(tmp_path: Path) -> None:
    """A column ``labels`` of objects is no decision space, and its constant word no verdict."""
    rows = [
        {"id": n, "judge_verdict": word, "labels": [{"author": "a@b.org", "type": "DEFAULT"}]}
        for n, word in enumerate(words("accept", "reject"))
    ]
    with pytest.raises(JudgeSenseError, match="no word in common"):
        judgesense.check(rows, out=tmp_path / "out", runs=tmp_path, note=str)

"""Files of public bug reports and of jobs tried: every figure, or the question with its flag."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from door.cases import case, checked, readable
from sklearn.metrics import accuracy_score, cohen_kappa_score

import judgesense
from judgesense.errors import JudgeSenseError

Rows = list[dict[str, str]]


def rows_of(path: Path, delimiter: str = ",") -> Rows:
    with path.open(encoding="utf-8-sig", newline="") as source:
        return list(csv.DictReader(source, delimiter=delimiter))


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def agree(entry: dict[str, float], pairs: list[tuple[str, str]]) -> None:
    """The entry has the accuracy and κ of scikit-learn on some pairs."""
    said, truth = zip(*pairs, strict=True)
    assert entry["n"] == len(pairs)
    assert entry["accuracy"] == pytest.approx(accuracy_score(truth, said))
    assert entry["kappa"] == pytest.approx(cohen_kappa_score(said, truth))


def first_word(words: dict[str, str]) -> Callable[[str], str | None]:
    def read(text: str) -> str | None:
        found = re.search("|".join(words), text.casefold())
        return words[found[0]] if found else None

    return read


@pytest.mark.parametrize(
    ("name", "delimiter", "columns", "words"),
    [
        ("job_09/english.csv", ";", ("verdict", "human"), {"pass": "PASS", "fail": "FAIL"}),
        ("job_09/deutsch.csv", ";", ("Urteil", "Mensch"), {"ja": "Ja", "nein": "Nein"}),
        ("job_09/zh.csv", ",", ("裁判", "人工标注"), {"不是": "否", "否": "否", "是": "是"}),
        (
            "07_*/longmem.csv",
            ",",
            ("autoeval_label", "human"),
            {"incorrect": "INCORRECT", "correct": "CORRECT"},
        ),
        ("job_02/before.csv", ",", ("verdict", "human_label"), {"pass": "PASS", "fail": "FAIL"}),
    ],
)
def test_spelling_makes_no_class(
    name: str, delimiter: str, columns: tuple[str, str], words: dict[str, str], tmp_path: Path
) -> None:
    path, read = case(name), first_word(words)
    pairs = [
        (str(read(row[columns[0]])), str(read(row[columns[1]])))
        for row in rows_of(path, delimiter)
        if row[columns[1]]
    ]
    people, result = checked(path, tmp_path)
    agree(people[path.stem, columns[1]], pairs)
    assert readable(result)[0] == 1.0


def test_misspelt_classes_are_unread_and_listed(tmp_path: Path) -> None:
    rows = rows_of(case("job_08/classes.csv"))
    labels = {row["agent_label"].casefold() for row in rows}
    # "refund request" states a label; "complaints" and misspellings do not.
    said = [
        row["llm_label"].strip(".*").casefold().removesuffix(" request").strip() for row in rows
    ]
    pairs = [
        (one, row["agent_label"].casefold())
        for one, row in zip(said, rows, strict=True)
        if one in labels
    ]
    notes: list[str] = []
    result = judgesense.check(case("job_08/classes.csv"), out=tmp_path / "out", note=notes.append)
    agree(result.people[0], pairs)
    assert readable(result) == (len(pairs) / len(rows), len(rows))
    assert "'complaints' 2" in " ".join(notes)
    assert "3 rows without a verdict" in " ".join(notes)


def test_a_failed_call_is_no_verdict_whatever_score_stands_beside_it(tmp_path: Path) -> None:
    rows = lines_of(case("05_*/samples.jsonl"))
    failed = re.compile(r"error|exception|Error code", re.IGNORECASE)
    pairs = [
        (str(row["score"]), str(row["gold"]))
        for row in rows
        if not failed.search(str(row["judge_response"]))
    ]
    people, result = checked(case("05_*/samples.jsonl"), tmp_path)
    agree(people["samples", "gold"], pairs)
    assert readable(result) == (len(pairs) / len(rows), len(rows))


def test_a_pass_that_its_score_contradicts_is_no_verdict_until_picked(tmp_path: Path) -> None:
    file = json.loads(case("01_*/results.json").read_text("utf-8"))
    both: list[tuple[bool, float, str, bool]] = []
    for result in file["results"]["results"]:
        (part,) = result["gradingResult"]["componentResults"]
        failed = bool((part.get("metadata") or {}).get("graderError"))
        both.append((part["pass"], part["score"], result["testCase"]["metadata"]["human"], failed))
    words = {True: "PASS", False: "FAIL"}
    graded = [each for each in both if not each[3]]
    sure = [(words[p], human) for p, score, human, _ in graded if p == (score > 0.5)]
    agree(next(iter(checked(case("01_*/results.json"), tmp_path)[0].values())), sure)
    for pick in ("pass", "score"):
        pairs = [
            (words[p if pick == "pass" else score >= 0.5], human) for p, score, human, _ in graded
        ]
        people, _ = checked(case("01_*/results.json"), tmp_path / pick, pick=pick)
        agree(next(iter(people.values())), pairs)


def test_grades_in_texts_are_read_or_asked_for(tmp_path: Path) -> None:
    path = case("02_*/grader.jsonl")
    with pytest.raises(JudgeSenseError, match="--answers"):
        checked(path, tmp_path)
    people, _ = checked(
        path,
        tmp_path,
        verdict="grader_output",
        human="stated",
        answers=["C", "I"],
    )
    (entry,) = people.values()
    assert entry["n"] == sum(row["stated"] != "NONE" for row in lines_of(path))
    assert {*entry["confusion"]} <= {"C", "I", "UNCLEAR"}
    assert entry["confusion"]["C"]["I"] == entry["confusion"]["I"]["C"] == 0


def test_a_judge_on_another_scale_is_named_with_its_factor(tmp_path: Path) -> None:
    path, notes = case("04_*/scores.csv"), list[str]()
    result = judgesense.check(path, out=tmp_path / "out", note=notes.append)
    rows = rows_of(path)
    by_judge = {scores["judge"]: scores for scores in result.scores}
    other = by_judge["gpt-4.1-mini_score"]
    ratio = sum(float(row["gpt-4.1-mini_score"]) for row in rows)
    ratio /= sum(float(row["human_score"]) for row in rows)
    assert (other["scale"], other["factor"]) == (0.1, pytest.approx(ratio))
    assert other["spearman"] > 0.8
    assert "about 0.1 times people's" in " ".join(notes)
    own = "gpt-4o-mini_score"
    gaps = [float(row[own]) - float(row["human_score"]) for row in rows]
    assert by_judge[own]["mae"] == pytest.approx(sum(map(abs, gaps)) / len(gaps))
    assert by_judge[own]["bias"] == pytest.approx(sum(gaps) / len(gaps))
    assert [card["judge"] for card in result.trust] == [own]
    cut = {True: "at least 0.5", False: "below 0.5"}
    pairs = [(cut[float(row[own]) >= 0.5], cut[float(row["human_score"]) >= 0.5]) for row in rows]
    agree(result.people[0], pairs)


@pytest.mark.parametrize("mapping", [None, {">=0.5": "1", "<0.5": "0"}])
def test_shares_beside_yes_and_no_are_cut_in_the_middle(
    mapping: dict[str, str] | None, tmp_path: Path
) -> None:
    path = case("08_*/ragas.csv")
    people, result = checked(path, tmp_path, map=mapping)
    rows = rows_of(path)
    pairs = [
        (str(int(float(row["faithfulness"]) >= 0.5)), row["human_faithful"])
        for row in rows
        if row["faithfulness"]
    ]
    ((task, _),) = people
    agree(people["faithfulness", "label of a person"], pairs)
    assert task == "faithfulness"
    check = next(card for card in result.trust if card["task"] == task)["checks"]["readable"]
    assert check["estimate"] == pytest.approx(len(pairs) / len(rows))


def test_assessments_of_mlflow_are_by_people_or_by_a_judge(tmp_path: Path) -> None:
    judge: dict[str, str] = {}
    people: dict[str, list[str]] = defaultdict(list)
    failed = 0
    for trace in lines_of(case("10_*/traces.jsonl")):
        for one in trace["info"]["assessments"]:  # type: ignore[index]
            value = one["feedback"].get("value")
            failed += value is None
            if value is not None and one["source"]["source_type"] == "HUMAN":
                people[one["trace_id"]].append(value)
            elif value is not None:
                judge[one["trace_id"]] = value
    pairs = []
    for item, labels in people.items():
        (top, n), *rest = Counter(labels).most_common()
        if item in judge and not (rest and rest[0][1] == n):
            pairs.append((judge[item], top))
    found, result = checked(case("10_*/traces.jsonl"), tmp_path)
    agree(found["politeness", "majority"], pairs)
    assert {card["judge"] for card in result.trust} == {
        "openai:/gpt-4o-mini",
        "ollama:/llama3.2:3b",
    }
    record = json.loads((result.out / "run.json").read_text("utf-8"))
    assert record["no_verdict"]["failed"] == failed


def test_annotations_of_phoenix_are_by_kind(tmp_path: Path) -> None:
    by_kind: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows_of(case("11_*/annotations.csv")):
        by_kind[row["annotator_kind"]][row["span_id"]] = row["result.label"]
    llm, human = by_kind["LLM"], by_kind["HUMAN"]
    found, result = checked(case("11_*/annotations.csv"), tmp_path)
    agree(found["correctness", "majority"], [(llm[i], human[i]) for i in human if i in llm])
    assert readable(result) == (1.0, len(llm))


def test_events_of_opentelemetry_are_verdicts_without_people(tmp_path: Path) -> None:
    found, result = checked(case("21_*/events.jsonl"), tmp_path)
    assert found == {}
    assert result.trust[0]["task"] == "Relevance"
    assert readable(result) == (1.0, 20)


TIES = {"tie", "tie (bothbad)"}


@pytest.mark.parametrize("name", ["arena_long", "arena_long2", "arena_wide"])
def test_choices_in_both_orders_with_ties(name: str, tmp_path: Path) -> None:
    own = {"model_a": "A", "model_b": "B", "A": "A", "B": "B", **dict.fromkeys(TIES, "tie")}
    swap = {"A": "B", "B": "A", "tie": "tie"}
    pairs, by_item = [], defaultdict(list)
    for row in rows_of(case(f"job_04/{name}.csv")):
        if name == "arena_wide":
            said = [own[row["judge_ab"]], own[row["judge_ba"]]]
        else:
            verdict = own[row["judge_verdict"]]
            said = [verdict if row["order"] == "AB" else swap[verdict]]
        truth = own[row.get("winner") or row["winner_ab"]]
        pairs += [(one, truth) for one in said]
        by_item[row["question_id"]] += said
    found, result = checked(case(f"job_04/{name}.csv"), tmp_path)
    (entry,) = found.values()
    assert entry["n"] == len(pairs)
    assert entry["accuracy"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    same = sum(one == two for one, two in by_item.values()) / len(by_item)
    assert result.trust[0]["checks"]["fair"]["estimate"] == pytest.approx(same)


def test_what_is_shown_first_says_the_order(tmp_path: Path) -> None:
    by_item, pairs = defaultdict(list), []
    for row in rows_of(case("14_*/pairs.csv")):
        first, second = ("A", "B") if row["shown_first"] == "A" else ("B", "A")
        said = {"first": first, "second": second, "tie": "tie"}[row["verdict"]]
        assert row["verdict_swapped_back"] in (said, "")
        by_item[row["pair_id"]].append(said)
        pairs.append((said, row["human_winner"]))
    found, result = checked(case("14_*/pairs.csv"), tmp_path)
    (entry,) = found.values()
    assert entry["accuracy"] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    fair = result.trust[0]["checks"]["fair"]
    assert fair["estimate"] == pytest.approx(
        sum(one == two for one, two in by_item.values()) / len(by_item)
    )
    assert fair["n_items"] == len(by_item)


@pytest.mark.parametrize("name", ["multi.csv", "multi.jsonl"])
def test_criteria_are_tasks(name: str, tmp_path: Path) -> None:
    found, _ = checked(case(f"job_07/{name}"), tmp_path)
    rows = rows_of(case("job_07/multi.csv"))
    assert len(found) == 4
    for (task, _), entry in found.items():
        agree(entry, [(row[f"judge_{task}"], row[f"human_{task}"]) for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["job1.csv", "job1d.csv"])
def test_an_index_column_is_nothing(name: str, tmp_path: Path) -> None:
    path, notes = case(f"job_01/{name}"), list[str]()
    result = judgesense.check(path, out=tmp_path / "none", note=notes.append)
    assert result.people == []
    assert "--human anna,ben" in " ".join(notes)
    found, result = checked(path, tmp_path, human=["anna", "ben"])
    rows = [row for row in rows_of(path) if row["judge_score"]]
    for name in ("anna", "ben"):
        pairs = [(int(float(r["judge_score"])), int(r[name])) for r in rows if r[name]]
        ours, theirs = zip(*pairs, strict=True)
        entry = found[path.stem, name]
        assert entry["n"] == len(pairs)
        assert entry["kappa"] == pytest.approx(
            cohen_kappa_score(ours, theirs, weights="quadratic", labels=[1, 2, 3, 4, 5])
        )
    assert readable(result) == (len(rows) / 150, 150)


def test_estimate_and_check_read_the_same_shares(tmp_path: Path) -> None:
    path = case("job_05b/before.csv")
    rows = rows_of(path)
    found = judgesense.estimate(path, positive="PASS")
    alone = sum(row["verdict"].casefold() == "pass" for row in rows) / len(rows)
    (system,) = found.systems
    assert system["naive"] == pytest.approx(alone)
    assert system["corrected"] == pytest.approx(0.64, abs=0.03)


@pytest.mark.parametrize("name", ["arena_long", "arena_wide"])
def test_a_win_rate_is_over_both_orders(name: str) -> None:
    path = case(f"job_04/{name}.csv")
    share = {"model_a": 1.0, "model_b": 0.0, "A": 1.0, "B": 0.0, **dict.fromkeys(TIES, 0.5)}
    own = []
    for row in rows_of(path):
        if name == "arena_wide":
            own += [share[row["judge_ab"]], share[row["judge_ba"]]]
        else:
            first = share[row["judge_verdict"]]
            own.append(first if row["order"] == "AB" else 1 - first)
    (system,) = judgesense.estimate(path).systems
    assert system["naive"] == pytest.approx(sum(own) / len(own))
    people = [share[row["winner"]] for row in rows_of(path)]
    assert system["corrected"] == pytest.approx(sum(people) / len(people), abs=0.01)


def test_a_changed_judge_is_named_first(tmp_path: Path) -> None:
    notes: list[str] = []
    judgesense.check(
        case("16_*/run_v2.jsonl"),
        baseline=case("16_*/run_v1.jsonl"),
        out=tmp_path / "out",
        runs=tmp_path,
        note=notes.append,
    )
    assert "judge.model was claude-sonnet-5-20260401 and is claude-sonnet-5-20260701" in notes[-1]


def test_a_judges_verdict_is_not_the_one_that_it_quotes(tmp_path: Path) -> None:
    found, _ = checked(case("06_*/replies.jsonl"), tmp_path)
    (entry,) = found.values()
    assert entry["accuracy"] == 1.0


def test_runs_without_people_and_several_people_on_a_policy(tmp_path: Path) -> None:
    found, result = checked(case("15_*/run_a.csv"), tmp_path / "a")
    assert found == {}
    assert result.trust[0]["judge"] == "gpt-5.5"
    path = case("19_*/labels.csv")
    people, _ = checked(path, tmp_path / "b", verdict="judge_v1_unstated")
    for name in ("labels_strict", "labels_permissive"):
        pairs = [(row["judge_v1_unstated"], row[name]) for row in rows_of(path)]
        agree(people["labels", name], pairs)

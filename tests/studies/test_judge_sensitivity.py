"""The judge-sensitivity study: known logs, what is refused, and real judges."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipes import import_llmbar
from study_logs import decision, write_log

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.published import paper_judges, published_data
from judgesense.reporting.study_result import Result
from judgesense.studies.judge_sensitivity import judge_sensitivity
from judgesense.studies.judge_sensitivity.flip_tables import WITH, WITHOUT, orders
from judgesense.studies.judge_sensitivity.runs import read_judged
from judgesense.studies.judge_sensitivity.tables import Sensitivity, v1_figures

WORDINGS = """
tasks:
  fact:
    labels: [YES, NO]
    layout: "{instruction}\\n\\n{text}"
    templates:
      - {id: plain, text: "True? YES or NO."}
      - {id: other, text: "Is it so? YES or NO."}
      - {id: turned, text: "Is it false? YES or NO.", label_map: {YES: NO, NO: YES}}
"""


def right(prompt: str) -> str:
    """Always right: 'true' stands in true items, and the third wording asks for falsehood."""
    return "YES" if ("true fact" in prompt) != ("false?" in prompt) else "NO"


def says_yes(prompt: str) -> str:
    return "YES"


def unreadable(prompt: str) -> str:
    return "perhaps"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three rules on six items, three true and three false, with an inverted wording."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "w.yaml").write_text(WORDINGS)
    items = [
        {
            "item_id": f"i{n}",
            "text": f"{'true' if n % 2 else 'wrong'} fact {n}",
            "gold": "YES" if n % 2 else "NO",
        }
        for n in range(6)
    ]
    (folder / "i.jsonl").write_text("\n".join(map(json.dumps, items)))

    def answering(rule: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
        def judge(prompts: list[str]) -> list[str]:
            return [rule(prompt) for prompt in prompts]

        judge.__name__ = rule.__name__
        return judge

    judges = [answering(rule) for rule in (right, says_yes, unreadable)]
    own = {"templates": folder / "w.yaml", "items": folder / "i.jsonl", "out": folder / "run"}
    with pytest.raises(JudgeSenseError, match="none of the first 3 replies of unreadable"):
        judgesense.run(judges, **own)
    judgesense.run(judges, **own)
    return folder / "run"


@pytest.fixture(scope="module")
def measured(known: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return judge_sensitivity(log=known, out=tmp_path_factory.mktemp("measured"))


def test_three_rules_on_six_items(measured: Result, golden: Callable[[Result, str], None]) -> None:
    golden(measured, "judge-sensitivity-rules")
    # Of three wording pairs two hold the inverted one: raw, a right judge agrees on the third.
    rows = {row["judge"]: row for row in measured.table("table_3").rows}
    assert rows["right"]["jss_raw"] == pytest.approx(1 / 3)
    assert rows["right"]["jss"] == rows["right"]["jss_with_t4"] == 1.0
    assert rows["says_yes"]["jss_raw"] == rows["says_yes"]["jss_without_t4"] == 1.0
    # Two judges on the same 18 prompts: alike where the right answer is what YES means.
    across = {(row["judge"], row["other"]): row for row in measured.table("across_judges").rows}
    assert across["says_yes", "right"]["jss"] == pytest.approx(9 / 18)
    assert across["says_yes", "right"]["jss_itself"] == pytest.approx(1 / 3)
    assert across["right", "unreadable"]["n_pairs"] == 0
    # Flips that all judges share lie in inverted pairs.
    rows = measured.table("flip_overlap").rows
    raw = {row["n_judges_flipped"]: row for row in rows if row["decisions"] == "raw"}
    assert {count: row["n_pairs"] for count, row in raw.items()} == {0: 6, 1: 12}
    assert raw[1]["n_pairs_inverted"] == 12


def test_findings_name_judges(measured: Result) -> None:
    under = next(text for text in measured.findings if "below 0.8" in text)
    assert "says_yes (0.333" in under
    assert "unreadable" not in under
    for part in (
        "in 0 of 1 cases, two judges",
        "unreadable (100%)",
        "is the same: says_yes",
        "right (−0.333)",
    ):
        assert any(part in text for text in measured.findings)


def test_published_figures_are_those_of_the_papers_nine_judges() -> None:
    assert len(paper_judges()) == 9
    leaders = [figure.judge for figure in v1_figures("coherence")]
    assert (leaders[0], leaders[-1]) == ("claude-sonnet-4-5", "gemini-2.5-flash")


@pytest.fixture(scope="module")
def on_published_pairs(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """An oracle on the published factuality pairs: it is told what is true."""
    folder = tmp_path_factory.mktemp("published")
    lines = (published / "factuality.jsonl").read_text("utf-8").splitlines()
    (folder / "factuality.jsonl").write_text("\n".join(lines), "utf-8")
    rows = [json.loads(line) for line in lines]
    facts = {row["response_being_judged"]: row["ground_truth_label"] for row in rows}

    def oracle(prompts: list[str]) -> list[str]:
        found = []
        for prompt in prompts:
            right = facts[prompt.partition("Response: ")[2]] == "accurate"
            found.append("YES" if right != ("contain factual errors" in prompt) else "NO")
        return found

    judgesense.run([oracle], dataset=str(folder), out=folder / "run")
    return judge_sensitivity(log=folder / "run", out=folder / "study")


def test_the_published_pairs_are_compared_with_the_papers_figures(
    on_published_pairs: Result,
) -> None:
    tables = on_published_pairs
    here, paper = tables.table("exclusion").rows
    assert (here["n_pairs"], here["n_pairs_validated"]) == (125, 119)
    assert here["jss"] == pytest.approx(75 / 125)
    assert here["jss_validated"] == pytest.approx(75 / 119)
    assert (paper["jss"], paper["jss_validated"]) == (0.6, 0.63)
    # Every other table leaves out what the paper leaves out.
    assert tables.table("table_1").rows[0]["n_pairs"] == 119
    split = next(row for row in tables.table("table_3").rows if row["measured"] == "here")
    assert (split["n_pairs_without_t4"], split["n_pairs_with_t4"]) == (75, 44)
    counts = [r for r in tables.table("flip_overlap").rows if r["measured"] == "here"]
    assert sum(r["n_pairs"] for r in counts if r["decisions"] == "raw") == 119
    for name in ("table_1", "table_3", "parse_failures"):
        kinds = [row["measured"] for row in tables.table(name).rows]
        assert list(dict.fromkeys(kinds)) == ["here", "published v2", "published v1 (withdrawn)"]
        assert "advise against using it" in tables.table(name).note
    second, _, first = tables.table("table_1").note.partition("`published v1 (withdrawn)` rows")
    assert "other wordings" in second
    assert "same pairs" in first


def test_flips_by_pair_of_wordings_are_those_of_the_shared_file(
    on_published_pairs: Result, published: Path
) -> None:
    rows = on_published_pairs.table("template_pairs").rows
    here, paper = (
        {row["wordings"]: row for row in rows if (row["measured"] == "here") == ours}
        for ours in (True, False)
    )
    assert {name: row["flips"] for name, row in here.items()} == {
        "T1-T2": 0,
        "T1-T5": 0,
        "T2-T3": 0,
        "T3-T4": 1,
        "T4-T5": 1,
        WITH: 1,
        WITHOUT: 0,
    }
    nine = {published_data()["judges"][judge] for judge in paper_judges()}
    names = ("T4-T5", "T1-T2", "T3-T4", "T1-T5", "T2-T3")  # the pairs take turns
    flips: dict[str, list[int]] = {name: [] for name in names}
    with (published / "factuality_pair_flip_overlap.csv").open() as file:
        for row in csv.DictReader(file):
            name = names[int(row["pair_id"].removeprefix("fact_")) % 5]
            flips[name].append(len(nine & set(row["flipping_models"].split(","))))
    jss: dict[str, list[float]] = {name: [] for name in names}
    with (published / "factuality_per_template_pair_JSS.csv").open() as file:
        for row in csv.DictReader(file):
            if row["model"] in nine:
                jss[row["template_pair"]].append(float(row["JSS"]))
    for name in names:
        known = (len(flips[name]), sum(flips[name]), pytest.approx(np.mean(jss[name]), abs=5e-5))
        assert tuple(published_data()["template_pairs"][name]) == known
        assert paper[name]["flips"] == np.mean(flips[name])
    # Section 5.3: about 97% of T3-T4, and about 8.7 flips on the pairs of T4, raw.
    assert 1 - paper["T3-T4"]["jss_raw"] == pytest.approx(0.97, abs=0.005)
    assert paper[WITH]["flips"] == pytest.approx(8.727, abs=5e-4)


JUDGES = ("steady", "moved", "contrary")


def follows(judge: str, question: int, template: str, repeat: int) -> bool:
    """`moved` follows the wording on all questions but the first, and once its mood."""
    if judge == "moved" and question:
        return template == "plain" or (repeat == 1 and question == 2)
    return judge != "contrary" or question != 1


def questions_of(twins: int, shared: bool) -> Iterable[dict[str, Any]]:
    """Three questions of so many items each."""
    places = (("fact", "-"), ("better", "AB"), ("better", "BA"))
    cells = product(JUDGES, places, range(3), range(twins), ("plain", "other"), range(2))
    for judge, (task, order), question, twin, template, repeat in cells:
        first = follows(judge, question, template, repeat)
        labels = ("YES", "NO") if task == "fact" else ("A", "B")
        if order == "BA" and judge != "contrary" and question != 1:
            first = not first  # else the verdict follows the place
        item = f"{task} {question} {twin}"
        yield decision(
            judge,
            item,
            template,
            labels[not first],
            gold=labels[order == "BA"],
            task=task,
            order=order,
            repeat=repeat,
            cluster_id=f"{task} {question}" if shared else item,
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Sensitivity]:
    """Three questions of one item; two items on each; and the same, said to be independent."""
    folder = tmp_path_factory.mktemp("logs")

    def study(name: str, twins: int, shared: bool) -> Sensitivity:
        rows = sorted(questions_of(twins, shared), key=lambda row: JUDGES.index(row["judge"]))
        return Sensitivity(read_judged(write_log(folder / name, rows)))

    return [study("alone", 1, False), study("shared", 2, True), study("apart", 2, False)]


def test_a_log_in_both_orders(tmp_path: Path, golden: Callable[[Result, str], None]) -> None:
    log = write_log(tmp_path / "log", questions_of(2, shared=True))
    golden(judge_sensitivity(log=log, out=tmp_path / "out"), "judge-sensitivity-orders")


def test_a_second_item_on_a_question_adds_nothing_to_what_is_known(
    runs: list[Sensitivity],
) -> None:
    alone, shared, apart = (
        next(row for row in orders(study).rows if row["judge"] == "moved") for study in runs
    )
    columns = [f"{p}_{end}" for p in ("wording", "position") for end in ("ci_low", "ci_high")]
    for column in columns:
        assert alone[column] is not None
        assert shared[column] == pytest.approx(alone[column]), column
    # Of an interval one end may be cut off, at 0 or 1.
    for one, two in zip(columns[::2], columns[1::2], strict=False):
        assert (apart[one], apart[two]) != pytest.approx((alone[one], alone[two])), one


def test_flips_when_reworded_count_items_alike_and_are_not_one_less_jss(tmp_path: Path) -> None:
    rows = []
    for item, order, name in product((0, 1), ("AB", "BA"), ("t1", "t2", "t3")):
        # The same option in both orders; t3 chooses the other on item 0, nothing on item 1.
        label = "A" if (order == "AB") != (name == "t3") else "B"
        label = "UNCLEAR" if name == "t3" and item else label
        status = "unclear" if label == "UNCLEAR" else "ok"
        given = {"task": "preference", "order": order, "gold": "A", "status": status}
        rows.append(decision("j", f"i{item}", name, label, **given))
    log = write_log(tmp_path / "log", rows)
    result = judge_sensitivity(log=log, out=tmp_path / "out")
    (row,) = result.table("orders").rows
    assert row["jss"] == result.table("table_1").rows[0]["jss"] == pytest.approx(0.5)
    # Two of three pairs of item 0, none of item 1.
    assert row["flips_reworded"] == pytest.approx((2 / 3 + 0) / 2)


def test_repeats_measure_the_flips_of_the_same_prompt(tmp_path: Path) -> None:
    turns = count()

    def fickle(prompts: list[str]) -> list[str]:
        return ["AAB"[next(turns) % 3] for _ in prompts]

    result = judge_sensitivity(
        [fickle], out=tmp_path, tasks=["relevance"], limit=4, repeats=4, note=str
    )
    (row,) = result.table("orders").rows
    assert 0 < row["asked_again"] < 1


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({}, "at least 1 judge"),
    ({"judges": ["smollm2-135"]}, "did you mean smollm2-135m"),
    ({"judges": ["smollm2-135m"], "tasks": ["fluency"]}, "unknown task 'fluency'"),
    ({"log": "nowhere"}, "no folder nowhere"),
    ({"log": ".", "judges": ["smollm2-135m"]}, "leave out --log"),
]


@pytest.mark.parametrize(("asked", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_input_is_refused_before_anything_is_judged(
    asked: Mapping[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JudgeSenseError, match=said):
        judge_sensitivity(**asked, out=tmp_path / "out")
    assert not list(tmp_path.rglob("part-*.parquet"))


def test_a_folder_that_is_no_log_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    (tmp_path / "judgments.csv").write_text("a\n")
    with pytest.raises(JudgeSenseError, match=r"judgesense import .*judgments\.csv --format"):
        judge_sensitivity(log=tmp_path, out=tmp_path / "out")


QUICK = ("--limit", "2", "--scoring", "options")
MODELS = ("-j", "smollm2-135m", "-j", "gemma3-270m")


@pytest.mark.slow
def test_two_real_judges_and_again_without_a_model(tmp_path: Path, command_line: Any) -> None:
    first = command_line("study", "judge-sensitivity", *MODELS, *QUICK, "--out", tmp_path)
    assert first.returncode == 0, first.stderr
    tables = json.loads((tmp_path / "study.json").read_text("utf-8"))["tables"]
    assert {"table_1", "table_2", "table_3", "orders"} <= set(tables)
    parts = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("part-*.parquet")}
    # A model that cannot be loaded any more: measuring again must not need one.
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'transformers'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from judgesense.cli import main\nmain()"
    )
    again = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "study",
            "judge-sensitivity",
            *MODELS,
            *QUICK,
            "--out",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("part-*.parquet")} == parts


@pytest.mark.slow
def test_llmbars_log_gives_a_page(shared: Path, tmp_path: Path) -> None:
    source = shared / "logs" / "llmbar" / "judgments.csv"
    import_llmbar(source, tmp_path / "log")
    result = judge_sensitivity(log=tmp_path / "log", out=tmp_path / "out")
    rows = {row["judge"]: row for row in result.table("table_1").rows}
    assert next(iter(rows)) == "GPT-4"
    assert rows["GPT-4"]["jss"] == pytest.approx(0.903, abs=5e-4)
    assert rows["LLaMA2"]["jss"] == pytest.approx(0.768, abs=5e-4)
    orders = {row["judge"]: row for row in result.table("orders").rows}
    assert orders["Falcon"]["flips_swapped"] > 0.5 > orders["GPT-4"]["flips_swapped"]
    assert any("strategies" in text for text in result.limits)
    assert any(text.startswith("in 14 of 15 cases, two judges") for text in result.findings)

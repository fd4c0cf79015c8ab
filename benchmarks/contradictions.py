"""Random logs through import and report: does any page say two things about one judge?

Each log has a random task, judge, set of wordings (good, noisy, inverted, in camps, unreadable),
option orders, gold labels (all, some, none, one label, foreign) and share without a verdict. The
checker reads ``report.json`` and the printed texts, and counts contradictions between any two of
trust, text, remedies, recommendation, next step, plan, gate and badge, two figures for one
quantity, and commands that the command line does not take.

    python benchmarks/contradictions.py --logs 1000
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import re
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import finish, machine

from judgesense import cli
from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.importers.log import import_log
from judgesense.log.schema import SCHEMA
from judgesense.measure.assessment import Assessment, NextStep, ReportContents, Subject
from judgesense.measure.card import CHECKS, LEADS, TRUST, TrustCard
from judgesense.measure.gate import gate
from judgesense.measure.next import KINDS
from judgesense.measure.report_file import load_report
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.documents import render_badge
from judgesense.reporting.html import render_html
from judgesense.reporting.report import write_report
from judgesense.reporting.summary import first_screen
from judgesense.reporting.terminal import render_terminal

LABELS = {"factuality": ("YES", "NO"), "relevance": ("A", "B"), "coherence": tuple("12345")}


def random_log(rng: np.random.Generator) -> tuple[pa.Table, dict[str, Any]]:
    """A decision log of one to three judges on one task, and what it was drawn with."""
    task = str(rng.choice(list(LABELS)))
    size = len(labels := LABELS[task])
    sizes, shares = [1, 2, 5, 12, 30, 60, 120, 300], [0.06, 0.04, 0.05, 0.1, 0.2, 0.25, 0.2, 0.1]
    n = int(rng.choice(sizes, p=shares))
    wordings = int(rng.choice([1, 2, 3, 5, 8, 12], p=[0.1, 0.15, 0.2, 0.3, 0.15, 0.1]))
    orders = ["-"] if task != "relevance" else [["AB"], ["AB", "BA"]][int(rng.random() < 0.7)]
    base = rng.dirichlet(np.full(size, rng.choice([0.5, 2.0, 20.0])))
    truth = rng.choice(size, n, p=base)
    kinds_of_gold = ["all", "some", "none", "one", "foreign"]
    golds = str(rng.choice(kinds_of_gold, p=[0.55, 0.2, 0.15, 0.05, 0.05]))
    shown = truth if golds != "one" else np.zeros(n, int)
    has_gold = rng.random(n) < (0.4 if golds == "some" else 0.0 if golds == "none" else 1.0)
    probabilities = bool(rng.random() < 0.5)
    contrast, rows = bool(rng.random() < 0.5), []
    for judge in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        skill = float(
            rng.choice([-1.0, 0.0, 0.7, 1.5, 3.0, 5.0], p=[0.05, 0.1, 0.15, 0.2, 0.3, 0.2])
        )
        follows = float(rng.choice([0.15, 0.95]))
        noise = float(rng.choice([0.05, 0.3, 0.8, 2.0], p=[0.3, 0.3, 0.3, 0.1]))
        first = float(rng.choice([0.0, 0.0, 1.5, 4.0])) if len(orders) > 1 else 0.0
        lost = float(rng.choice([0.0, 0.05, 0.4, 1.0], p=[0.8, 0.12, 0.06, 0.02]))
        own = skill * np.eye(size)[truth] + rng.normal(0, 1, (n, size)) * rng.choice([0.3, 1.0])
        lean = rng.normal(0, rng.choice([0.0, 0.0, 1.5]), size)
        kinds = rng.choice(
            ["good", "noisy", "inverted", "camp", "silent"],
            wordings,
            p=[0.86, 0.04, 0.04, 0.04, 0.02],
        )
        repeats = int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))
        if contrast:
            kinds = np.append(kinds, "contrast")
        for w, kind in enumerate(kinds):
            shift = rng.normal(0, 0.5, size) if rng.random() < 0.3 else 0.0
            for order in orders:
                score = own + lean + shift + rng.normal(0, noise, (n, size))
                if kind == "noisy":
                    score = score + rng.normal(0, 4, (n, size))
                if kind == "inverted":
                    score = score[:, ::-1]
                if kind == "contrast":
                    turned = rng.random((n, 1)) < follows
                    score = np.where(turned, score[:, ::-1], score)
                if kind == "camp":
                    score = score + 4 * np.eye(size)[0]
                if order == "BA":
                    score = score.copy()
                    score[:, :2] = score[:, 1::-1]
                score[:, 0] += first
                for repeat in range(repeats):
                    again = score + rng.normal(0, 0.3 if judge else 0.0, (n, size))
                    share = np.exp(again) / np.exp(again).sum(axis=1, keepdims=True)
                    hard = np.abs(score[:, 0] - score[:, 1])
                    silent = rng.random(n) < (lost if kind != "silent" else 0.8)
                    silent |= (hard < np.quantile(hard, lost)) if lost < 1 else True
                    for i in range(n):
                        gold = None
                        if has_gold[i]:
                            code = int(shown[i])
                            if order == "BA" and code < 2:
                                code = 1 - code
                            gold = f"class {code}" if golds == "foreign" else labels[code]
                        verdict = labels[int(again[i].argmax())]
                        row = {
                            "judge": f"judge-{judge}",
                            "task": task,
                            "item_id": f"i{i}",
                            "scoring": "options" if probabilities else "generate",
                            "cluster_id": f"i{i}",
                            "template_id": f"w{w}",
                            "order": order,
                            "repeat": repeat,
                            "gold": None if kind == "contrast" else gold,
                            "prompt_id": f"{i}-{w}-{order}",
                            "variant": "opposite" if kind == "contrast" else None,
                            "variant_class": "contrast" if kind == "contrast" else None,
                            "raw_decision": "UNCLEAR" if silent[i] else verdict,
                            "decision": "UNCLEAR" if silent[i] else verdict,
                            "status": "unclear" if silent[i] else "ok",
                        }
                        if probabilities and not silent[i]:
                            row["option_logprobs"] = [
                                {"option": label, "logprob": math.log(max(1e-9, p))}
                                for label, p in zip(labels, share[i], strict=True)
                            ]
                        rows.append(row)
    drawn = {"task": task, "n": n, "wordings": wordings, "orders": orders, "gold": golds}
    return pa.Table.from_pylist(rows, schema=SCHEMA), drawn


def contradictions(report: ReportContents, texts: list[str]) -> Iterator[str]:
    """What a report says twice, and differently."""
    steps = [entry.next_step for entry in report.assessments]
    by_subject: dict[Subject, list[str]] = {}
    for finding in report.findings:
        by_subject.setdefault(finding.subject, []).append(finding.text)
    for entry in report.assessments:
        if (step := entry.next_step) is None:
            yield "not one next step a card"
            continue
        sentences = by_subject.get(entry.subject, [])
        for text in _of_card(entry, step):
            yield f"{text} [{entry.card.trust}, {step.kind}]"
        yield from _figures(entry, [*sentences, step.text])
        yield from _words(entry.card, step, sentences)
    trust = {entry.subject: entry.card.trust for entry in report.assessments}
    screen = first_screen(report)
    for row in (*screen.rows, *screen.others):
        if row.trust != trust[row.subject]:
            yield "the screen's trust is not the card's"
    if screen.next_step is not None and screen.next_step not in steps:
        yield "the screen's next step is not the report's"
    for row in screen.rows:
        remedy = row.remedy and row.remedy.remedy
        changed = f"(only with the remedy {remedy!r}"
        other = "avoid it" if row.trust == "avoid" else "its trust value is unknown"
        as_asked = f"{changed}; otherwise {other})"
        if changed in screen.title and as_asked not in screen.title:
            yield "the title's trust is not the card's"
    badge = render_badge(report)
    for entry in report.assessments:
        if f"({entry.scoring}): {entry.card.trust}" not in badge:
            yield "the badge lacks a card's trust"
    for step in steps:
        for name, text in zip(("terminal", "markdown", "page"), texts, strict=True):
            words = re.findall(r"[\w.]+", step.text if step else "")
            if " ".join(words) not in " ".join(re.findall(r"[\w.]+", _plain(text))):
                yield f"the {name} lacks the next step"


def _plain(text: str) -> str:
    import html

    return html.unescape(text).replace("\\", "")


def _of_card(entry: Assessment, step: NextStep) -> Iterator[str]:
    card, kind, checks = entry.card, step.kind, entry.card.checks
    trust, advised, remedies = card.trust, entry.recommendation, entry.remedies
    planned = entry.outlook.settles if entry.outlook else None
    states = {name: checks[name].state for name in CHECKS if checks[name].applies}
    if kind not in KINDS or trust not in TRUST:
        yield "an unknown kind"
    if not card.text.startswith(f"{LEADS[trust]}: "):
        yield "the text does not begin with the trust"
    if (kind == "use") != (trust == "use"):
        yield "use beside another trust"
    if kind == "another_judge" and trust != "avoid":
        yield "another judge for one that is not to be avoided"
    if kind == "use_changed":
        row = next((row for row in remedies if row.remedy == card.remedy), None)
        if row is None or TRUST.index(row.trust or "avoid") >= TRUST.index(trust):
            yield "a change that does not help"
    if kind == "another_judge" and card.remedy not in (None, AS_ASKED):
        yield "another judge beside a remedy that passes"
    for row in remedies:
        if row.remedy == AS_ASKED and row.trust not in (None, trust):
            yield "as asked has another trust than the card"
        if row.remedy == AS_ASKED and row.jss != checks["steady"].estimate:
            yield "as asked has another JSS than the card"
    wordings = {row.template: row for row in entry.wordings}
    if advised.template is not None and wordings[advised.template].flag != "fine":
        yield "a flagged wording is recommended"
    accuracies = [row.accuracy for row in entry.wordings if row.accuracy is not None]
    if kind == "correct_wording":
        named = [name for name in wordings if re.search(rf"\b{re.escape(name)}\b", step.text)]
        if not named:
            yield "no wording is named to be corrected"
        for name in named:
            if wordings[name].flag == "fine" or name == advised.template:
                yield "a fine or recommended wording is to be corrected"
            if accuracies and wordings[name].accuracy == max(accuracies):
                yield "the most accurate wording is to be corrected"
            if advised.measure == "gold" and name in advised.best_set:
                yield "one of the best wordings is to be corrected"
    if planned is not None and trust != "avoid":
        if kind == "nothing_settles" and planned.items_needed is not None:
            yield "nothing settles it beside a number of items that does"
        number = re.search(r"(\d+) (?:(?:labels|items) in all|items, which)", step.text)
        if number and int(number[1]) not in (planned.items_needed, planned.labels_needed):
            yield "the step's number is not the plan's"
        for chance in planned.chances:
            if not 0 <= chance.passes <= chance.chance <= 1:
                yield "a chance outside its range"
        if set(planned.open) != {name for name, state in states.items() if state == "open"}:
            yield "the plan is about other checks than the open ones"
    if kind == "add_orders" and states.get("fair") != "unmeasured":
        yield "orders that were asked"
    if kind == "add_contrast" and states["responsive"] != "unmeasured":
        yield "a contrast that was asked"
    # A judge that attacks sway can be used with care, one that was not attacked without.
    extra = {states.pop("resistant", "pass"), notices := states.pop("notices", "pass")}
    if notices == "fail" and states["right"] == "unmeasured":
        states["notices"] = notices
    if trust == "use" and (set(states.values()) != {"pass"} or extra & {"fail", "open"}):
        yield "use with a check that does not pass"
    if (trust == "avoid") != ("fail" in states.values()):
        yield "avoid and no failed check, or the other way round"
    decided = gate(card)
    if decided.cause in CHECKS and decided.decision == "FAIL" and trust != "avoid":
        yield "the gate fails a judge that is not to be avoided"
    if decided.decision == "PASS" and trust not in ("use", "care"):
        yield "the gate passes a judge that is not to be used"
    for name, check in checks.items():
        ends = (check.ci_low, check.estimate, check.ci_high)
        if None not in ends and list(ends) != sorted(ends):
            yield f"the interval of {name} does not include it"
    if step.command is not None and (wrong := not_taken(step.command)) is not None:
        yield f"a command that does not parse: {wrong}"


def _figures(entry: Assessment, sentences: list[str]) -> Iterator[str]:
    """Two values, or two intervals, of JSS or kappa as asked."""
    checks = entry.card.checks
    for name, figure in (("steady", "JSS"), ("right", "κ")):
        pattern = rf"{figure} (\S+) \[(\S+), (\S+)\]"
        found = set()
        for text in sentences:
            for parts in re.findall(pattern, text):
                found.add(tuple(part.rstrip(",]").replace("−", "-") for part in parts))
        if len(found) > 1:
            yield f"several intervals for {name}: {sorted(found)}"
        for value, *_ in found:
            estimate = checks[name].estimate
            if estimate is None or abs(float(value) - estimate) > 0.006:
                yield f"another value for {name}"
    for row in entry.remedies:
        if row.jss_before not in (checks["steady"].estimate, None):
            yield "remedies start from another JSS"


def _words(card: TrustCard, step: NextStep, sentences: list[str]) -> Iterator[str]:
    """Sentences beside each other that cannot both hold."""
    text = " ".join(sentences).casefold()
    if step.kind == "nothing_settles" and re.search(
        r"add (more )?items(?! with other gold)|more items", text
    ):
        yield "add items beside nothing settles it"
    if "no number of items" in text:
        yield "a second place says what no number of items settles"
    if card.trust == "avoid" and re.search(r"\buse with\b|not known yet", text):
        yield "avoid beside use or not known"
    if card.trust in ("use", "care") and re.search(r"^avoid|not known yet", text):
        yield "use beside avoid or not known"
    if "{" in text or "none prompts" in text or " nan" in text or "none]" in text:
        yield "a hole in a sentence"
    if "wording alone" in text and card.checks["steady"].estimate == 1.0:
        yield "flips from wording alone where nothing flips"


def not_taken(command: str) -> str | None:
    """Why the command line does not take a command; None if it does."""
    import typer.main

    words = shlex.split(command)
    found: Any = typer.main.get_command(cli.app)
    if words[0] != "judgesense":
        return f"{words[0]} is no command"
    rest = words[1:]
    try:
        while hasattr(found, "commands"):
            found = found.commands[rest[0]]
            rest = rest[1:]
        found.make_context(found.name, rest)
    except KeyError as error:
        return f"no command {error}"
    except (opt.UsageError, JudgeSenseError) as error:
        return f"{type(error).__name__}: {error} in {command}"
    return None


def trial(seed: int) -> tuple[list[str], int, dict[str, Any]]:
    """The contradictions of one log, its cards and what it was drawn with."""
    rng = np.random.default_rng([7, seed])
    log, drawn = random_log(rng)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "log.parquet", Path(folder) / "out"
        pq.write_table(log, path)
        labels = None if drawn["gold"] == "foreign" else LABELS[drawn["task"]]
        import_log(path, "table", out, labels=labels)
        if rng.random() < 0.5:
            _as_run(out, drawn, rng)
        report = write_report(out).contents
        markdown = (out / "report.md").read_text("utf-8")
        texts = [render_terminal(report), markdown, render_html(report)]
        saved = load_report(out)
    if saved != report:
        return ["the file is not the report"], len(report.assessments), drawn
    kinds = Counter(entry.next_step.kind for entry in saved.assessments if entry.next_step)
    drawn |= {"kinds": kinds, "trust": Counter(e.card.trust for e in saved.assessments)}
    return list(contradictions(saved, texts)), len(saved.assessments), drawn


def _as_run(out: Path, drawn: dict[str, Any], rng: np.random.Generator) -> None:
    """Make the record that of a run of ours, so that commands may repeat it."""
    record = json.loads((out / "run.json").read_text("utf-8"))
    del record["imported"]
    names = [judge["name"] for judge in record["judges"]]
    options = {"judge": names, "out": [str(out)], "tasks": [drawn["task"]]}
    options |= {"set": ["dtype=bfloat16"]}
    if own := rng.random() < 0.5:
        options |= {"templates": ["my wordings.yaml"], "items": ["my items.jsonl"]}
    limit = None if own else 50
    record["asked"] = {
        "judges": [{"judge": name, "engine": "transformers", "model": name} for name in names],
        "data": {},
        "settings": {"scorings": ["generate"], "limit": limit, "repeats": 1},
    }
    record["invocation"] = {"command": "run", "arguments": [], "options": options}
    write_text(out / "run.json", json.dumps(record))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=None)
    given = parser.parse_args()
    start, found, n_cards, wrong = time.monotonic(), Counter(), 0, 0
    kinds: Counter[str] = Counter()
    trust: Counter[str] = Counter()
    seeds = range(given.first, given.first + given.logs)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for seed, (texts, cards, drawn) in zip(seeds, pool.imap(trial, seeds), strict=True):
            n_cards, wrong = n_cards + cards, wrong + bool(texts)
            kinds += drawn.pop("kinds")
            trust += drawn.pop("trust")
            for text in texts:
                found[text.split(":")[0]] += 1
                if found[text.split(":")[0]] <= 3:
                    print(f"log {seed} {drawn}: {text}", flush=True)
    for text, count in found.most_common():
        print(f"{count:5}  {text}")
    print(f"{dict(trust)}; {dict(kinds)}; {time.monotonic() - start:.0f} s")
    finish(
        [
            {
                "name": "contradictions within a report",
                "ours": wrong,
                "theirs": None,
                "peer": None,
                "ratio": None,
                "unit": "random logs with a contradiction",
                "n": given.logs,
                "cards": n_cards,
                "machine": machine("numpy"),
            }
        ]
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

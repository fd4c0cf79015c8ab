"""The next step: the one thing to do about a judge on a task, with a command that runs as printed.

One function decides it for the report, its pages, the terminal, ``check``, GitHub and Python.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.log.invocation import another_folder, command_line
from judgesense.measure.card import TRUST
from judgesense.measure.planning import chances_text, plan
from judgesense.measure.thresholds import FEW_CLUSTERS, MANY_CUT_OFF
from judgesense.recipes.recipe import AS_ASKED
from judgesense.text import join, number, percent, quoted, s

Entry = Mapping[str, Any]
Step = dict[str, Any]

KINDS = (
    "use",
    "use_changed",
    "finish_run",
    "raise_cap",
    "read_options",
    "correct_wording",
    "add_wordings",
    "add_orders",
    "add_contrast",
    "add_defences",
    "label_more",
    "add_items",
    "improve",
    "another_judge",
    "nothing_settles",
)
"""Every kind of a next step."""

MORE_TOKENS = 2048
"""Enough for the reasons that a judge writes before its verdict."""

_PLANNED = 5
"""Ways of asking whose plans are drawn, the best first."""

_LABELS = 20
"""Labelled items from which on another way of asking can be looked for."""

FIRST_LABELS = 50
"""Labels to begin with: a judge with kappa 0.6 passes the threshold of 0.4 from about 60 on."""


class _Commands:
    """The commands that a run's record allows; each is None where none would run as printed."""

    def __init__(self, record: Entry, folder: str | Path | None, card: Entry) -> None:
        self.card, self.folder = card, None if folder is None else str(folder)
        self.started: Entry | None = record.get("invocation")
        self.settings: Entry = (record.get("asked") or {}).get("settings") or {}
        self.format = (record.get("imported") or {}).get("format")
        judges = (record.get("asked") or {}).get("judges") or []
        named, own = record.get("judges") or [], dict[str, Any]()
        for judge, asked in zip(named, judges, strict=False):
            if len(named) == len(judges) and judge["name"] == card["judge"]:
                own = own or asked
        self.writable = bool(own) and "stabilised" not in own
        """Whether the judge can be written to a file with another way of asking."""
        self.named = None
        """The judge as it was named, where the run has several."""
        given = (self.started or {}).get("options", {}).get("judge") or []
        if len(given) == len(judges) > 1 and own:
            self.named = [given[judges.index(own)]]
        self.texts_known = "data" in (record.get("asked") or {})

    def given(self, *names: str) -> str | None:
        """The first value of the first of these options that the command has."""
        options = (self.started or {}).get("options", {})
        return next((str(options[name][0]) for name in names if name in options), None)

    @property
    def data(self) -> str | None:
        """The user's own file of items, to which labels and items are added."""
        if self.started is None:
            return None
        options = self.started["options"]
        for name in ("items", "data"):
            if name in options:
                return str(options[name][0])
        arguments = self.started["arguments"]
        return str(arguments[0]) if arguments and self.started["command"] != "run" else None

    @property
    def wordings(self) -> str | None:
        """The user's own file of wordings."""
        if self.started is None:
            return None
        given, arguments = self.given("wordings", "templates"), self.started["arguments"]
        if given or self.started["command"] != "check" or not (self.given("data") and arguments):
            return given
        return str(Path(arguments[0]).with_suffix(".wordings.yaml"))

    def again(self) -> str | None:
        """The same command, which finishes the run."""
        return None if self.started is None else command_line(self.started)

    def changed(self, **changes: Any) -> str | None:
        """The command with changes, into another folder."""
        if self.started is None:
            return None
        if (out := self.started["options"].get("out")) and "out" not in changes:
            changes["out"] = [another_folder(out[0])]
        if self.named:
            changes["judge"] = self.named
        if "set" in changes:
            new = {each.partition("=")[0] for each in changes["set"]}
            given = self.started["options"].get("set", [])
            kept = [each for each in given if each.partition("=")[0] not in new]
            changes["set"] = [*kept, *changes["set"]]
        if "variants" in changes:
            given = self.started["options"].get("variants", ["rewording"])[0].split(",")
            changes["variants"] = [",".join(dict.fromkeys([*given, *changes["variants"]]))]
        return command_line(self.started, **changes)

    def label(self) -> str | None:
        """The page on which people label the data."""
        if self.started is None or self.started["command"] != "check":
            return self.changed()
        options = {k: v for k, v in self.started["options"].items() if k == "verdict"}
        return command_line({**self.started, "command": "label", "options": options})

    def improve(self) -> str | None:
        """The search for another way to ask the judge of a rubric."""
        if self.started is None or self.started["command"] != "check" or not self.writable:
            return None
        given = self.started["options"]
        if "data" not in given or len(given.get("judge", [])) != 1:
            return None
        words = ["judgesense", "improve", *self.started["arguments"], "--data", *given["data"]]
        words += ["--judge", *given["judge"]]
        for name, form in (("human", "{}"), ("answers", "[{}]"), ("options", "{{{}}}")):
            if name in given:
                value = given[name][0].replace("=", ": ").replace(",", ", ")
                words += ["--set", f"{name}={form.format(value)}"]
        for each in given.get("set", []):
            words += ["--set", each]
        return shlex.join([*words, "--out", f"{self.file_name()}.yaml"])

    def file_name(self) -> str:
        """A file's name for the judge on its task, without a suffix."""
        judge, task = self.card["judge"].partition("@")[0], self.card["task"]
        return re.sub(r"[^\w.-]+", "-", f"{judge}-{task}").strip("-.")

    def write(self, remedy: str | None) -> str | None:
        """The command that writes the judge to a file; without a remedy, the cheapest that passes.

        Only a judge of a run has a name and wordings that a file can hold.
        """
        if self.folder is None or not self.writable or not self.texts_known:
            return None
        judge = self.card["judge"]
        words = ["judgesense", "improve", "--log", self.folder, "--judge", judge]
        for key, value in (
            ("task", self.card["task"]),
            ("scoring", self.card["scoring"]),
            ("remedy", remedy),
        ):
            words += ["--set", f"{key}={value}"] if value else []
        return shlex.join([*words, "--out", f"{self.file_name()}.yaml"])


def next_step(
    card: Entry,
    *,
    remedies: Sequence[Entry] = (),
    wordings: Sequence[Entry] = (),
    diagnostics: Entry,
    planned: Entry | None,
    record: Entry,
    folder: str | Path | None = None,
) -> Step:
    """What to do next about a judge on a task: ``kind``, ``text`` and ``command`` or None.

    Args:
        card: an entry of ``trust`` in ``report.json``; the other lists hold the same case.
        remedies: its rows of ``remedies``.
        wordings: its rows of ``wordings``.
        diagnostics: its row of ``diagnostics``.
        planned: `judgesense.measure.planning.plan` of its checks.
        record: the run's ``run.json``, whose ``invocation`` the command repeats.
        folder: the run's folder, for commands that read it.
    """
    commands, checks = _Commands(record, folder, card), card["checks"]
    missing = diagnostics["n_planned"] - diagnostics["n_judged"]
    failed = 0
    for judge in record.get("judges") or ():
        if judge["name"] == card["judge"]:
            failed += len(judge.get("failed") or ())
    if missing > 0 or failed or ("asked" in record and not record.get("finished")):
        what = f"{failed} prompts have no answer" if failed else "Some prompts are not judged yet"
        return _step(
            "finish_run", f"{what}. Rerun the command to finish the run.", commands.again()
        )
    if card["trust"] == "use":
        return _step("use", "Use the judge as it is.", commands.write(AS_ASKED))
    best = None
    for row in remedies:
        if row["remedy"] == card.get("remedy") != AS_ASKED:
            best = best or row
    if best is not None and TRUST.index(best["trust"]) < TRUST.index(card["trust"]):
        lead = "Use the judge" if best["trust"] == "use" else "Use the judge with care, and"
        text = f"{lead} only with the remedy {best['remedy']!r}. {_gain(best, card)}"
        return _step("use_changed", text, commands.write(None))
    if wrong := _wrong_wordings(card, wordings):
        names, file = join([row["template"] for row in wrong]), commands.wordings
        what = join(sorted({_WRONG[row["flag"]] for row in wrong}), "or")
        each = "It" if len(wrong) == 1 else "Each"
        text = f"Correct {names}{_where('in', file)}. {each} {what}. Then measure again."
        return _step("correct_wording", text, commands.changed() if file else None)
    if card["trust"] == "avoid":
        return _instead(card, remedies, diagnostics, commands)
    return _missing(checks, planned, diagnostics, commands)


def _where(word: str, file: str | None) -> str:
    return f" {word} {file}" if file else ""


def _step(kind: str, text: str, command: str | None) -> Step:
    return {"kind": kind, "text": text, "command": command}


_WRONG = {
    "inverted": "asks the opposite or has a wrong label map",
    "unreadable": "gets answers that cannot be read",
    "outlier": "gets other verdicts than the other wordings",
}


def _wrong_wordings(card: Entry, wordings: Sequence[Entry]) -> list[Entry]:
    """The wordings to correct before the judge is blamed; never the one that is most often right.

    An outlier is one of them where the judge would be steady without it. What no wording explains
    (it is wrong, or unfair, on all of them) is no reason to correct one.
    """
    if card["trust"] not in ("avoid", "unknown"):
        return []
    if not set(card["because"]) <= {"steady", "readable"}:
        return []
    best = max((row["accuracy"] for row in wordings if row["accuracy"] is not None), default=None)
    steady, found = card["checks"]["steady"], []
    for row in wordings:
        if row["flag"] == "fine" or (best is not None and row["accuracy"] == best):
            continue
        without = row["jss_without"]
        helps = "steady" in card["because"] and without is not None
        if row["flag"] != "outlier" or (helps and without > steady["threshold"]):
            found.append(row)
    # Where most wordings stand out, the fault is not in them.
    return found if 2 * len(found) < len(wordings) else []


def _gain(row: Entry, card: Entry) -> str:
    """What a remedy brings: ``With it, the judge is right on 75% of items instead of 65%, ...``."""
    parts = []
    if row["accuracy"] is not None:
        parts.append(f"is right on {percent(row['accuracy'])} of items")
        if row["gain"] is not None:
            parts[0] += f" instead of {percent(row['accuracy_before'])}"
    if row["same_choice"] is not None and "fair" in card["because"]:
        same = percent(row["same_choice"])
        parts.append(f"makes the same choice in both orders on {same}")
    lead = f"{join(parts)}. It " if parts else ""
    cost = f"needs {row['prompts_per_item']} prompt{s(row['prompts_per_item'])} per item"
    if row["jss"] is not None:
        cost = f"has a JSS of {number(row['jss'], 2)} and {cost}"
    return f"With it, the judge {lead}{cost}."


def _instead(
    card: Entry, remedies: Sequence[Entry], diagnostics: Entry, commands: _Commands
) -> Step:
    """What is left for a judge that fails: a way of asking that may pass yet, or another judge."""
    able, rows = [], []
    for row in remedies:
        if row["trust"] in ("unknown", "care") and row["remedy"] != AS_ASKED:
            rows.append(row)
    for row in sorted(rows, key=lambda row: -(row["gain"] or 0.0))[:_PLANNED]:
        found = plan(row["checks"])
        if found is not None and (row["gain"] or 0.0) > 0 and found["items_needed"]:
            able.append((row, found))
    if able:
        row, found = min(able, key=lambda one: (one[1]["items_needed"], -one[0]["accuracy"]))
        lead = f"The most promising remedy is {row['remedy']!r}. {_gain(row, card)} "
        return _more(found, commands, lead)
    failed = card["because"]
    cut_off = diagnostics["n_cut_off"] / max(1, diagnostics["n_prompts"])
    if "readable" in failed and cut_off >= MANY_CUT_OFF:
        text = f"Raise the token cap, because {percent(cut_off)} of the answers reached it."
        return _step("raise_cap", text, commands.changed(set=[f"max_tokens={MORE_TOKENS}"]))
    if card["checks"]["right"]["n_items"] >= _LABELS and (command := commands.improve()):
        text = f"Look for a better way to ask this judge. It fails {quoted(failed)}."
        return _step("improve", text, command)
    asked = commands.settings.get("scorings") or ("options",)
    if "readable" in failed and commands.writable and "options" not in asked:
        text = "Score option probabilities instead of text. Then every answer has a verdict."
        return _step("read_options", text, commands.changed(scoring=["options"]))
    text = f"Try another judge. This one fails {quoted(failed)}"
    listed = "judgesense judges list" if commands.started and commands.format is None else None
    if any(row["n_items"] and row["remedy"] != AS_ASKED for row in remedies):
        text += ", and no measured remedy helps"
    return _step("another_judge", f"{text}.", listed)


def _more(found: Entry, commands: _Commands, lead: str = "") -> Step:
    """More labels, items or wordings, as many as a plan says; or that nothing settles it."""
    what, data = quoted(found["open"]), commands.data
    where = _where("in", data)
    if (labels := found["labels_needed"]) is not None:
        more = max(1, labels - found["n_labels"])
        text = (
            f"{lead}Label {more} more items{where}. {labels} labels in all would decide {what} "
            "with 80% probability."
        )
        return _step("label_more", text, commands.changed() if data else None)
    if (items := found["items_needed"]) is not None:
        more = items - found["n_items"]
        limit = commands.settings.get("limit")
        likely = f"would decide {what} with 80% probability. {chances_text(found)}"
        if limit is not None:
            text = f"{lead}Judge {items} items, which {likely}"
            return _step("add_items", text, commands.changed(limit=[str(items)]))
        if found["open"] == ["right"] and found["n_labels"] < found["n_items"]:
            labels = math.ceil(items * found["n_labels"] / found["n_items"])
            text = (
                f"{lead}Get a label, or a majority, for the other "
                f"{found['n_items'] - found['n_labels']} items{where} and add "
                f"{labels - found['n_items']} labelled ones. {labels} labels would decide {what} "
                "with 80% probability. Then measure again."
            )
            return _step("label_more", text, commands.changed() if data else None)
        text = f"{lead}Add {more} item{s(more)}{_where('to', data)}. {items} items in all {likely}"
        return _step("add_items", text, commands.changed() if data else None)
    if (wordings := found["wordings_needed"]) is not None:
        file = commands.wordings
        text = f"Add wordings{_where('to', file)} until there are {wordings}. "
        text += "The present ones differ too much for more items to show whether the judge is "
        text += "steady."
        return _step("add_wordings", text, commands.changed() if file else None)
    largest = found["chances"][-1]["items"]
    text = (
        f"{lead}Even {largest} items are unlikely to decide {what}, because the estimates are too "
        "close to the thresholds. Treat an undecided check as not passed."
    )
    return _step("nothing_settles", text, None)


def _missing(checks: Entry, planned: Entry | None, diagnostics: Entry, commands: _Commands) -> Step:
    """What a judge that is not known well enough lacks, the check that decides first."""
    states = {name: each["state"] for name, each in checks.items() if each["applies"]}
    ran = commands.started is not None and commands.started["command"] == "run"
    varied = (commands.started or {}).get("options", {}).get("variants", [""])[0]
    if states["steady"] == "pass" and states.get("resistant") == "fail" and "defence" not in varied:
        text = "The judged text can manipulate the judge. Measure which defence prevents this."
        return _step("add_defences", text, commands.changed(variants=["defence"]))
    unlabelled = states["right"] == "unmeasured" and not checks["right"]["n_items"]
    if commands.format in ("table", "scores") and commands.data and unlabelled:
        # What is right is known from a few labels; other wordings have to be judged elsewhere.
        n = min(FIRST_LABELS, diagnostics["n_items"])
        text = f"Label {n} items in {commands.data} to see whether the judge is right. If the file "
        text += "has people's labels already, name their columns with --human."
        return _step("label_more", text, commands.label())
    if states["steady"] == "unmeasured":
        file = commands.wordings
        if file is None and not ran and planned is not None:
            # Verdicts under one wording: what can be settled is whether they are right.
            return _more(planned, commands)
        if file is None and ran:
            text = "Judge the items under other formats, too."
            return _step("add_wordings", text, commands.changed(variants=["format"]))
        text = f"Add another wording of the question{_where('to', file)} "
        text += "to see whether the judge is steady."
        if commands.format:
            text = "See whether rewording changes the judge's verdicts. Save its prompt as "
            text += "RUBRIC.txt, then run: judgesense check RUBRIC.txt --data ITEMS --judge JUDGE"
        return _step("add_wordings", text, commands.changed() if file else None)
    few = diagnostics["n_items"] < FEW_CLUSTERS
    if states["steady"] == "open" and planned is not None and not few:
        return _more(planned, commands)
    right = checks["right"]
    if states["right"] == "unmeasured" and right["n_items"]:
        # There are labels, but of another vocabulary, or one label alone.
        text = f"{right['text'][:1].upper()}{right['text'][1:]}{_where('in', commands.data)}."
        return _step("label_more", text, commands.changed() if commands.data else None)
    if states.get("fair") == "unmeasured":
        text = "Judge the items in both orders of the options."
        return _step("add_orders", text, commands.changed(orders=["AB,BA"]) if ran else None)
    if few or (planned is None and "open" in states.values()):
        n = diagnostics["n_items"]
        more = max(n, FIRST_LABELS - n)
        few_text = f"{n} are too few for a conclusion."
        if commands.settings.get("limit") is not None:
            text = f"Judge {n + more} items. {few_text}"
            return _step("add_items", text, commands.changed(limit=[str(n + more)]))
        text = f"Add {more} items{_where('to', commands.data)}. {few_text}"
        return _step("add_items", text, commands.changed() if commands.data else None)
    if planned is not None:
        return _more(planned, commands)
    if states["right"] == "unmeasured":
        data, n = commands.data, min(FIRST_LABELS, diagnostics["n_items"])
        text = f"Label {n} items{_where('in', data)} to see whether the judge is right."
        return _step("label_more", text, commands.changed() if data else None)
    if states["responsive"] == "unmeasured":
        command = commands.changed(variants=["contrast"]) if ran else None
        text = "Also ask the opposite question to see whether the judge follows it."
        return _step("add_contrast", text, command)
    return _step(
        "nothing_settles", "Use the judge with care. Nothing more can be measured here.", None
    )

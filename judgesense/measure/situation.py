"""What a judge's next step depends on: its assessment, and the commands that its run allows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from judgesense.log.invocation import another_folder, command_line
from judgesense.measure.assessment import Assessment, Plan, RemedyFigures, Subject
from judgesense.measure.card import TRUST
from judgesense.measure.disagreements import WRONG
from judgesense.measure.figures import WordingRow
from judgesense.measure.planning import plan
from judgesense.measure.thresholds import FEW_CLUSTERS
from judgesense.recipes.recipe import AS_ASKED

FIRST_LABELS = 50
"""Labels to begin with: a judge with kappa 0.6 passes the threshold of 0.4 from about 60 on."""

OFTEN, _FEWEST_WRONG = 0.1, 5
"""The share of items, and how many, from which on a judge is often wrong: its errors are read
first."""

_PLANNED = 5
"""Ways of asking whose plans are drawn, the best first."""


class Commands:
    """The commands that a run's record allows; each is None where none would run as printed."""

    def __init__(
        self, record: Mapping[str, Any], folder: str | Path | None, subject: Subject
    ) -> None:
        self.subject, self.folder = subject, None if folder is None else str(folder)
        self.started: Mapping[str, Any] | None = record.get("invocation")
        self.settings: Mapping[str, Any] = (record.get("asked") or {}).get("settings") or {}
        self.format = (record.get("imported") or {}).get("format")
        judges = (record.get("asked") or {}).get("judges") or []
        names, identity_of_judge = record.get("judges") or [], dict[str, Any]()
        for judge, identity in zip(names, judges, strict=False):
            if len(names) == len(judges) and judge["name"] == subject.judge:
                identity_of_judge = identity_of_judge or identity
        self.writable = bool(identity_of_judge) and "stabilised" not in identity_of_judge
        """Whether the judge can be written to a file with another way of asking."""
        self.as_named = None
        """The judge as the command named it, where the run has several."""
        named_judges = (self.started or {}).get("options", {}).get("judge") or []
        if len(named_judges) == len(judges) > 1 and identity_of_judge:
            self.as_named = [named_judges[judges.index(identity_of_judge)]]
        self.texts_known = "data" in (record.get("asked") or {})
        data = (record.get("asked") or {}).get("data") or {}
        self.lacks_wordings = data.get("wordings", "") is None
        """Whether a rubric has no file of wordings: none that was proposed could be used."""

    def option(self, *names: str) -> str | None:
        """The first value of the first of these options that the command has."""
        options = (self.started or {}).get("options", {})
        return next((str(options[name][0]) for name in names if name in options), None)

    @property
    def data(self) -> str | None:
        """The user's own file of items, to which labels and items are added."""
        if self.started is None:
            return None
        if (file := self.option("items", "data")) is not None:
            return file
        arguments = self.started["arguments"]
        return str(arguments[0]) if arguments and self.started["command"] != "run" else None

    @property
    def wordings(self) -> str | None:
        """The user's own file of wordings."""
        if self.started is None:
            return None
        file, arguments = self.option("wordings", "templates"), self.started["arguments"]
        if file or self.started["command"] != "check" or not (self.option("data") and arguments):
            return file
        if self.lacks_wordings:
            return None
        return str(Path(arguments[0]).with_suffix(".wordings.yaml"))

    @property
    def sends(self) -> bool:
        """Whether the command sends prompts, so that it can send others."""
        if self.started is None:
            return False
        return self.started["command"] == "run" or self.option("data") is not None

    def again(self) -> str | None:
        """The same command, which finishes the run."""
        return None if self.started is None else command_line(self.started)

    def changed(self, **changes: Any) -> str | None:
        """The command with changes, into another folder."""
        if self.started is None:
            return None
        options = self.started["options"]
        if (out := options.get("out")) and "out" not in changes:
            changes["out"] = [another_folder(out[0])]
        if self.as_named:
            changes["judge"] = self.as_named
        if "set" in changes:
            new = {setting.partition("=")[0] for setting in changes["set"]}
            others = [one for one in options.get("set", []) if one.partition("=")[0] not in new]
            changes["set"] = [*others, *changes["set"]]
        if "variants" in changes:
            variants = options.get("variants", ["rewording"])[0].split(",")
            changes["variants"] = [",".join(dict.fromkeys([*variants, *changes["variants"]]))]
        return command_line(self.started, **changes)

    def with_data(self) -> str | None:
        """The command, once the user's file has more items or labels."""
        return self.changed() if self.data else None

    def with_wordings(self) -> str | None:
        """The command, once the user's file has other wordings."""
        return self.changed() if self.wordings else None

    def read(self) -> str | None:
        """The report of the run's folder, whose page opens."""
        return (
            None
            if self.folder is None
            else shlex.join(["judgesense", "report", self.folder, "--open"])
        )

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
        options = self.started["options"]
        if "data" not in options or len(options.get("judge", [])) != 1:
            return None
        words = ["judgesense", "improve", *self.started["arguments"], "--data", *options["data"]]
        words += ["--judge", *options["judge"]]
        for name in ("human", "columns", "answers", "map", "positive", "options", "set"):
            for value in options.get(name, []):
                words += [f"--{name}", value]
        return shlex.join([*words, "--out", f"{self.file_name()}.yaml"])

    def file_name(self) -> str:
        """A file's name for the judge on its task, without a suffix."""
        judge = self.subject.judge.partition("@")[0]
        return re.sub(r"[^\w.-]+", "-", f"{judge}-{self.subject.task}").strip("-.")

    def write(self, remedy: str | None) -> str | None:
        """The command that writes the judge to a file; without a remedy, the cheapest that passes.

        Only a judge of a run has a name and wordings that a file can hold.
        """
        if self.folder is None or not self.writable or not self.texts_known:
            return None
        _, judge, task, scoring = self.subject
        words = ["judgesense", "improve", "--log", self.folder, "--judge", judge]
        for key, value in (("task", task), ("scoring", scoring), ("remedy", remedy)):
            words += ["--set", f"{key}={value}"] if value else []
        return shlex.join([*words, "--out", f"{self.file_name()}.yaml"])


class Situation:
    """What the rules ask about a judge and its run."""

    def __init__(
        self, assessment: Assessment, record: Mapping[str, Any], commands: Commands
    ) -> None:
        self.assessment, self.commands = assessment, commands
        self.card, self.checks = assessment.card, assessment.card.checks
        self.states = {name: check.state for name, check in self.checks.items() if check.applies}
        self.avoid = self.card.trust == "avoid"
        self.unreadable = self.avoid and "readable" in self.card.because
        self.one_wording = self.states["steady"] == "unmeasured"
        self.n_labels = self.checks["right"].n_items
        about = assessment.diagnostics
        self.n_items, self.few = about.n_items, about.n_items < FEW_CLUSTERS
        self.cut_off = about.n_cut_off / max(1, about.n_prompts)
        self.unanswered = 0
        for judge in record.get("judges") or ():
            if judge["name"] == assessment.judge:
                self.unanswered += len(judge.get("failed") or ())
        stopped = "asked" in record and not record.get("finished")
        self.unfinished = stopped or self.unanswered > 0 or about.n_planned > about.n_judged
        self.by_run = commands.started is not None and commands.started["command"] == "run"
        self.own_file = bool(commands.format in ("table", "scores") and commands.data)
        self.limited = commands.settings.get("limit") is not None
        self.first_labels = min(FIRST_LABELS, about.n_items)
        self.more_items = max(about.n_items, FIRST_LABELS - about.n_items)
        self.reads_text = "options" not in (commands.settings.get("scorings") or ("options",))
        self.defended = "defence" in (commands.option("variants") or "")

    @cached_property
    def better_remedy(self) -> RemedyFigures | None:
        """The card's remedy, if the judge deserves more trust with it."""
        for row in self.assessment.remedies:
            if row.remedy == self.card.remedy != AS_ASKED and row.trust is not None:
                better = TRUST.index(row.trust) < TRUST.index(self.card.trust)
                return row if better else None
        return None

    @cached_property
    def often_wrong(self) -> int:
        """The wrong verdicts that a page lists, of a judge that is often wrong; otherwise 0.

        The errors of a judge that is no better than chance teach nothing.
        """
        found, least = self.assessment.where_wrong, self.checks["right"].ci_low
        if found is None or self.commands.folder is None or least is None or least <= 0:
            return 0
        n = found.kinds.get(WRONG, 0)
        return n if n >= max(_FEWEST_WRONG, OFTEN * found.n_judged) else 0

    @property
    def undecidable(self) -> bool:
        """Whether no number of items, labels or wordings is likely to settle what is open."""
        plan = self.plan
        return not (plan and (plan.items_needed or plan.labels_needed or plan.wordings_needed))

    @cached_property
    def wrong_wordings(self) -> list[WordingRow]:
        """The wordings to correct before the judge is blamed; never the one most often right.

        An outlier is one of them where the judge would be steady without it. What no wording
        explains (it is wrong, or unfair, on all of them) is no reason to correct one.
        """
        because, wordings = self.card.because, self.assessment.wordings
        if self.card.trust not in ("avoid", "unknown") or not {*because} <= {"steady", "readable"}:
            return []
        best = max((row.accuracy for row in wordings if row.accuracy is not None), default=None)
        wrong = []
        for row in wordings:
            without = row.jss_without
            if row.flag == "fine" or (best is not None and row.accuracy == best):
                continue
            steadier = without is not None and without > self.checks["steady"].threshold
            if row.flag != "outlier" or ("steady" in because and steadier):
                wrong.append(row)
        # Where most wordings stand out, the fault is not in them.
        return wrong if 2 * len(wrong) < len(wordings) else []

    @cached_property
    def promising(self) -> tuple[RemedyFigures, Plan] | None:
        """The remedy that may pass on more items, and how many that takes."""
        rows = []
        for row in self.assessment.remedies:
            if row.trust in ("unknown", "care") and row.remedy != AS_ASKED:
                rows.append(row)
        planned_rows = []
        for row in sorted(rows, key=lambda row: -(row.gain or 0.0))[:_PLANNED]:
            planned = plan(row.checks or {})
            if planned is not None and planned.items_needed and (row.gain or 0.0) > 0:
                planned_rows.append((row, planned))
        planned_rows.sort(key=lambda pair: (pair[1].items_needed, -(pair[0].accuracy or 0.0)))
        return planned_rows[0] if planned_rows else None

    @property
    def plan(self) -> Plan | None:
        """What settles the open checks; of a judge that fails, those with the promising remedy."""
        if self.avoid:
            return None if self.promising is None else self.promising[1]
        outlook = self.assessment.outlook
        return None if outlook is None else outlook.settles

    @property
    def too_few(self) -> bool:
        """Whether there are too few items for a conclusion, or for a plan."""
        return self.few or (self.plan is None and "open" in self.states.values())

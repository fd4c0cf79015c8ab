"""``judgesense check``: does rewording your rubric change its judge's verdicts?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.decisions import SCORINGS, read_log
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.pipeline import Settings, identity_of, resolve_all, to_stderr
from judgesense.reporting.build import write_report
from judgesense.reporting.report import Report
from judgesense.run_folder import read_record, save_run, sha256_of
from judgesense.statistics.result import ResultMapping
from judgesense.studies.common.check_command import CheckCommand
from judgesense.studies.common.measures import (
    cases,
    cost_table,
    flips_table,
    jss_table,
    ranking_finding,
    sensitivity,
    systems_table,
    wordings_table,
)
from judgesense.studies.common.pace import TimedSpec
from judgesense.studies.common.result import Record, Result, Table, judged
from judgesense.trust.gate import Gate, gate
from judgesense.trust.thresholds import STEADY_JSS, Thresholds
from local_judges.plan import Requests
from local_judges.protocol import Request
from local_judges.registry import JudgeSpec

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]

PARAPHRASES = 4
"""The default number of proposed wordings."""


@dataclass(frozen=True, eq=False)
class CheckResult(ResultMapping):
    """The outcome of a check: the gate's decision, its figures and tables, and the run's folder.

    ``jss`` with ``ci_low`` and ``ci_high`` is that of the trust card's check `steady`: over
    equivalent wordings of one polarity; from four wordings on, the interval is for wordings like
    these.
    """

    result: Result
    report: Report
    out: Path
    jss: float | None
    ci_low: float | None
    ci_high: float | None
    threshold: float
    degenerate: bool
    """Whether the judge gave one label throughout, or always the option shown first."""
    coverage: float
    """The share of the pairs that got two verdicts."""
    failed: int
    """Prompts without an answer."""
    gate: Gate
    """The decision, PASS, FAIL or INCONCLUSIVE, and why."""
    card: Mapping[str, Any]
    """The trust card, as in ``report.json``: ``trust``, ``text`` and ``checks``."""
    next_step: str
    """What to do next, with one command."""
    confidence: float = 0.95
    """The level of the interval of JSS."""
    inconclusive: Inconclusive | None = None
    """What INCONCLUSIVE counts as; None: as neither."""

    def to_dict(self) -> dict[str, Any]:
        """The figures, `decision`, `passed` and `verdict`, and the tables (`study.json`) under
        `study`."""
        kept = {name: self[name] for name in self if name not in ("result", "report", "out")}
        told = {"passed": self.passed, "verdict": self.verdict, "out": str(self.out)}
        gate = {"decision": self.decision, "cause": self.gate.cause, "because": self.gate.because}
        plan = self.gate.plan.to_dict() if self.gate.plan else None
        kept |= {"gate": {**gate, "plan": plan}, "card": dict(self.card)}
        return {**told, "decision": self.decision, **kept, "study": self.result.as_json()}

    def to_pandas(self) -> Any:
        """The cells of the report as a `pandas.DataFrame`."""
        return self.report.to_pandas()

    def lines(self) -> list[tuple[str, str]]:
        """The verdict, then every finding."""
        told = (text for text in self.result.findings if text != self.verdict)
        return [("check", self.verdict), *(("finding", text) for text in told)]

    @property
    def decision(self) -> str:
        """``PASS``, ``FAIL`` or ``INCONCLUSIVE``."""
        return self.gate.decision

    @property
    def passed(self) -> bool:
        """Whether the decision is PASS, or INCONCLUSIVE and counts as that."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE unless that counts as one of the others."""
        codes = {"PASS": 0, "FAIL": 1, "pass": 0, "fail": 1}
        if self.decision == "INCONCLUSIVE":
            return 3 if self.inconclusive is None else codes[self.inconclusive]
        return codes[self.decision]

    @property
    def verdict(self) -> str:
        """One line: the decision, and why."""
        if self.decision != "INCONCLUSIVE" or self.inconclusive is None:
            return self.gate.text
        return f"{self.gate.text} (counts as {self.inconclusive})"


def check(
    rubric: str | Path,
    data: str | Path,
    judge: Any,
    *,
    wordings: str | Path | None = None,
    paraphraser: Any = None,
    n_paraphrases: int | None = None,
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    threshold: float = STEADY_JSS,
    confidence: float = 0.95,
    inconclusive: Inconclusive | None = None,
    scoring: str = "generate",
    variants: Sequence[str] | None = None,
    repeats: int = 2,
    seed: int = 0,
    limit: int | None = None,
    out: str | Path | None = None,
    note: Callable[[str], None] | None = None,
    **judge_options: Any,
) -> CheckResult:
    """Judge the data under several wordings of a rubric, and measure how the verdicts change.

    Args:
        rubric: a text file; names of the data's columns in braces mark where they are shown.
        data: JSONL, CSV or Parquet; the columns ``gold``, ``item_id``, ``cluster_id`` and
            ``system_id`` are optional.
        judge: a name, Hub id, folder, function or loaded judge.
        wordings: other wordings (see :func:`judgesense_dataset.rubric.read_wordings`). Without
            it, ``<rubric>.wordings.yaml`` next to the rubric is read, and written if missing.
        paraphraser: the model that proposes wordings; by default the judge. Not used if there are
            wordings already.
        n_paraphrases: the number of wordings to propose; by default `PARAPHRASES`.
        answers: the decisions, best first; by default the gold labels in the data. Systems are
            then ranked only if the labels are numbers.
        options: for a choice between two, the column shown under each answer.
        threshold: PASS if the whole interval of JSS lies above it, FAIL if it lies below; in
            [0, 1]. The trust card and the report use the same threshold.
        confidence: level of that interval, within (0, 1). With 0.95, a judge whose JSS equals the
            threshold passes in at most 5% of runs.
        inconclusive: ``pass`` or ``fail``: what a run counts as that settles neither.
        scoring: ``generate`` (text) or ``options`` (log-probabilities).
        variants: other ways to ask the rubric, as in :func:`judgesense.run`, beside the wordings
            (``["rewording", "format", "contrast"]``).
        repeats: times each prompt is asked; 2 or more give a noise floor.
        seed: fixes every random draw.
        limit: judge only the first ``limit`` items.
        out: the folder; by default one under ``runs/check`` named by a hash of the question, so
            that rerunning an unchanged check reads its answer.
        note: called with progress messages; by default they go to stderr.
        judge_options: options of the judge (``system_prompt``, ``base_url``, ``max_cost``, ...).

    Raises:
        JudgeSenseError: for bad input, before the data are judged.

    >>> import pathlib, tempfile
    >>> def judge(messages):
    ...     return ["YES" if "Go away" in text else "NO" for text in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = pathlib.Path(folder)
    ...     _ = (home / "rude.txt").write_text("Is this rude? YES or NO.\\n\\n{reply}\\n")
    ...     _ = (home / "other.txt").write_text("Is the reply impolite? YES or NO.\\n")
    ...     _ = (home / "replies.csv").write_text("reply,gold\\nGo away.,YES\\nGladly!,NO\\n")
    ...     files = {"wordings": home / "other.txt", "out": home / "out"}
    ...     result = check(home / "rude.txt", home / "replies.csv", judge, note=str, **files)
    >>> result.jss
    1.0
    """
    from judgesense_dataset.items import load_items
    from judgesense_dataset.pairing import build
    from judgesense_dataset.rubric import propose_wordings, read_rubric, read_wordings

    note = note or to_stderr
    rubric, data = Path(rubric), Path(data)
    if scoring not in SCORINGS:
        raise JudgeSenseError(f"unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}")
    if not 0 <= threshold <= 1:
        raise JudgeSenseError(f"the threshold must be between 0 and 1, got {threshold}")
    if not 0 < confidence < 1:
        raise JudgeSenseError(f"the confidence must lie between 0 and 1, got {confidence}")
    if inconclusive not in (None, "pass", "fail"):
        raise JudgeSenseError(f"inconclusive is {inconclusive!r}: choose pass or fail")
    (spec,) = resolve_all([judge], scoring, judge_options)
    settings = Settings.of(scoring, None, None, repeats, seed, limit)
    own = read_rubric(rubric, data, answers, options)
    items = load_items(data, own.task, own.fields)
    place = rubric.with_suffix(".wordings.yaml") if wordings is None else Path(wordings)
    spent = 0.0
    if wordings is not None or place.exists():
        entry = read_wordings(place, own)
        if paraphraser is not None or n_paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
    else:
        # The judge's settings (endpoint, key) do not apply to another paraphraser.
        asked_of, own_options = (judge, judge_options) if paraphraser is None else (paraphraser, {})
        with _writer(asked_of, own_options, seed) as writer:
            before = getattr(writer, "spent", 0.0)
            count = PARAPHRASES if n_paraphrases is None else n_paraphrases
            entry = propose_wordings(own, writer, count, place, note)
            spent = getattr(writer, "spent", 0.0) - before
    identity = {
        "rubric": sha256_of(rubric), "data": sha256_of(data), "wordings": sha256_of(place),
        "answers": list(own.task.labels), "options": dict(own.task.options),
    }  # fmt: skip
    if out is None:
        asked = [identity, identity_of(spec), scoring, repeats, seed, limit]
        asked += [list(variants)] if variants else []
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
        out = RUNS / f"{rubric.stem}-{digest.hexdigest()[:8]}"
    out = Path(out)
    benchmark = build({entry.task.name: entry}, items, "full", seed=seed)
    if isinstance(spec, JudgeSpec) and spec.engine == "transformers":
        quicker = ["--scoring options"] if scoring == "generate" else []
        quicker += ["--repeats 1"] if repeats > 1 else []
        spec = TimedSpec.of(
            spec, _requests(benchmark, settings), scoring, note,
            f"{', '.join([*quicker, '--limit N'])} (each is a check of its own)",
        )  # fmt: skip
    report = judged(
        [spec], benchmark, identity, settings, out, note, spent, variants or (),
        lambda: ({entry.task.name: entry}, items),
    )  # fmt: skip
    report = _with_thresholds(report, out, {"steady": threshold, "confidence": confidence})
    ((_, _, cell),) = cases(report)
    (card,) = report["trust"]
    ranked = answers is not None or own.task.ordinal
    result = _result(report, cell, read_log(out), entry, ranked)
    result.settings = {
        "rubric": str(rubric), "data": str(data), "judge": cell["judge"],
        "items": min(limit or len(items), len(items)), "wordings": len(entry.templates),
        "repeats": repeats, "scoring": scoring, "signature": cell["signature"],
    }  # fmt: skip
    failed = sum(len(each["failed"]) for run in report["runs"] for each in run["judges"])
    steady = card["checks"]["steady"]
    decided = gate(
        card, failed=failed, coverage=cell["coverage"], constant=cell["degenerate"] is not None
    )
    asked_for = CheckCommand(
        rubric, data, judge, wordings=wordings, answers=answers, options=options,
        threshold=threshold, confidence=confidence, scoring=scoring, repeats=repeats, limit=limit,
    )  # fmt: skip
    found = CheckResult(
        result, Report.of(report), out, steady["estimate"], steady["ci_low"], steady["ci_high"],
        threshold, cell["degenerate"] is not None, cell["coverage"], failed, decided, card,
        asked_for.next_step(decided, len(items), place, out, _flagged(report)), confidence,
        inconclusive,
    )  # fmt: skip
    result.findings[:0] = [found.verdict, found.next_step]
    result.write(out / "check")
    return found


def _requests(benchmark: Benchmark, settings: Settings) -> list[Request]:
    """The prompts that a check will ask, repeats included."""
    whole = Requests(benchmark.select(None, None, settings.limit).prompts)
    return [whole[at] for at in range(len(whole))] * settings.repeats


def _flagged(report: Mapping[str, Any]) -> list[str]:
    """The wordings that stand out from the others."""
    return [row["template"] for row in report["wordings"] if row["flag"] != "fine"]


def _with_thresholds(
    report: dict[str, Any], out: Path, thresholds: Mapping[str, float]
) -> dict[str, Any]:
    """The report with these thresholds; they are kept in ``run.json`` for every later report."""
    record = read_record(out) or {}
    if Thresholds().but(record.get("thresholds")) == Thresholds().but(thresholds):
        return report
    save_run(out, {**record, "thresholds": dict(thresholds)})
    return write_report(out)


@contextmanager
def _writer(judge: Any, options: Mapping[str, Any], seed: int) -> Iterator[Any]:
    """The model that proposes wordings: a name for paraphrase() to load, or the judge with the
    user's options."""
    from local_judges.registry import load_judge

    if not (isinstance(judge, (str, Path)) and options):
        yield judge
        return
    own = {**options, "temperature": 0.7, "seed": seed, "max_tokens": 512, "system_prompt": ""}
    writer = load_judge(judge, **own)
    try:
        yield writer
    finally:
        writer.close()


def _result(
    report: Mapping[str, Any],
    cell: Mapping[str, Any],
    log: pa.Table,
    entry: TaskTemplates,
    ranked: bool,
) -> Result:
    result = Result("check", f"Check of {cell['judge']}", {})
    systems, consequences = systems_table(log, {entry.task.name: entry.task.labels})
    tables = [jss_table(report), wordings_table(report)]
    if ranked:
        tables.append(systems)
    elif systems.rows:
        # The gold labels do not say which answer is better.
        consequences = {}
        result.limits.append("to rank the systems, give --answers, best first")
    tables += [flips_table(report), _equivalence(entry, result.limits), cost_table(report, log)]
    result.tables = [table for table in tables if table.rows]
    result.findings = [_trust(report), sensitivity(cell)]
    result.findings += map(ranking_finding, consequences.values())
    result.findings += [finding["text"] for finding in report["findings"][1:]]
    return result


def _trust(report: Mapping[str, Any]) -> str:
    """The trust card in one sentence; what the verdict says already is left out."""
    (card,) = report["trust"]
    states = ", ".join(
        f"{name} {check['state']}" for name, check in card["checks"].items() if check["applies"]
    )
    told = f"trust: {card['trust']} ({states})"
    others = [name for name in card["because"] if name != "steady"]
    return (
        f"{told}: {'; '.join(card['checks'][name]['text'] for name in others)}" if others else told
    )


def _equivalence(entry: TaskTemplates, limits: list[str]) -> Table:
    """The distance of each wording from the rubric's own; empty, with a limit, if not measured."""
    from judgesense_dataset.polarity import DIRECT, INVERTED, cue
    from judgesense_dataset.similarity import EmbedderMissing, measure

    own, *others = entry.templates
    rows: list[Record] = []
    measured: Sequence[Any] = ()
    try:
        measured = measure([(own.text, other.text) for other in others])
    except (MissingExtraError, EmbedderMissing) as error:
        limits.append(f"not measured whether the wordings mean the same: {error}")
    said = {True: "same", False: "different", None: "unclear"}
    for other, found in zip(others, measured, strict=False):
        polarity = cue(other.text, entry.task.labels)
        turned = polarity not in (None, INVERTED if other.inverted else DIRECT)
        rows.append({
            "template": other.template_id, "edit_distance": found.edit_distance,
            "cosine": found.cosine, "meaning": said[found.verdict],
            "polarity": "inverted" if turned else "–",
        })  # fmt: skip
        if found.verdict is False or turned:
            limits.append(f"check {other.template_id}: it may ask a different question")
    return Table.from_records(
        "equivalence", "Do the wordings mean the same?", rows,
        "Compared with the rubric's own wording: Levenshtein distance over the longer text's "
        "length, and the cosine of all-MiniLM-L6-v2 embeddings.",
        template="wording",
    )  # fmt: skip

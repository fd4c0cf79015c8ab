"""From a run's decisions to ``report.json``, the documents made from it, and `Report`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.log import conform, part_files, raw_texts
from judgesense.decisions.view import Stream, distinct, view
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.disk import write_text
from judgesense.reporting.cells import parts, stream_cells
from judgesense.reporting.details import (
    LONGEST_TEXT,
    ROW,
    diagnostics,
    examples,
    repeated_figures,
    template_figures,
    template_pairs,
)
from judgesense.reporting.disagreements import (
    add_texts,
    disagreements,
    flat,
    read_rows,
    write_rows,
)
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import COLUMNS, advice_by_case, rows
from judgesense.reporting.terminal import render_brief
from judgesense.run_folder.folder import read_run
from judgesense.run_folder.report import (
    CELL_KEYS,
    LISTS,
    REPORT_FILE,
    VERSION,
    identity,
    load_report,
    merge,
    saved_report,
)
from judgesense.statistics.alternative_annotator import EPSILON
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import join, same_start, short_names, span
from judgesense.trust.advice import advise, as_sentence
from judgesense.trust.checks import trust_card
from judgesense.trust.next import next_step
from judgesense.trust.people import gold_of, people
from judgesense.trust.planning import gate_outlook, plan
from judgesense.trust.thresholds import FEW_CLUSTERS, Thresholds
from judgesense.trust.variants import variants
from judgesense.trust.wordings import Wordings, recommendation, wordings


@dataclass(frozen=True, eq=False)
class Report(ResultMapping):
    """Every figure of a run or of several runs, with the keys of ``report.json``.

    ``trust`` has the trust card of each judge, task and scoring (`judgesense.trust.card`), ``next``
    the next step, ``plan`` what would settle the card and how a gate behaves at this size.
    ``where_wrong`` counts what is wrong with the verdicts, and lists the groups of items that fare
    worse than the rest; the items are in `disagreements`.
    ``cells`` has one entry per judge, task, scoring, order and set of labels (raw or mapped);
    `judgesense.run_folder.report.CELL_KEYS` names its keys. ``advice`` holds the findings as
    sentences.
    ``out`` is the run's folder, None of several runs. ``str()`` is what ``judgesense report``
    prints; a notebook shows the same as a table.
    """

    schema: int
    trust: list[dict[str, Any]]
    wordings: list[dict[str, Any]]
    recommendation: list[dict[str, Any]]
    remedies: list[dict[str, Any]]
    people: list[dict[str, Any]]
    where_wrong: list[dict[str, Any]]
    variants: list[dict[str, Any]]
    cells: list[dict[str, Any]]
    advice: list[str]
    findings: list[dict[str, Any]]
    template_pairs: list[dict[str, Any]]
    templates: list[dict[str, Any]]
    examples: list[dict[str, Any]]
    diagnostics: list[dict[str, Any]]
    next: list[dict[str, Any]]
    plan: list[dict[str, Any]]
    repeated: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    notes: list[str]
    out: Path | None = None

    @classmethod
    def of(cls, contents: Mapping[str, Any], out: Path | None = None) -> Report:
        """The report with the contents of a ``report.json`` in the folder ``out``."""
        names = [field.name for field in fields(cls) if field.name != "out"]
        return cls(**{name: contents[name] for name in names}, out=out)

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name != "out")

    def __len__(self) -> int:
        return super().__len__() - 1

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``report.json``."""
        return dict(self)

    def to_pandas(self) -> Any:
        """The trust cards as a `pandas.DataFrame`, one row per judge, task and scoring.

        ``jss``, ``fair`` and ``readable`` are the estimates of the card's checks, ``kappa`` that of
        `right`, and ``right`` the share of verdicts that match the gold labels; None where it was
        not measured. ``ci_low`` and ``ci_high`` are those of ``jss``. ``next`` is the kind of the
        next step.
        """
        steps = {identity(step): step["kind"] for step in self.next}
        return data_frame([_card_row(card, steps.get(identity(card))) for card in self.trust])

    def cells_frame(self) -> Any:
        """The cells as a `pandas.DataFrame`, one row per judge, task, scoring, order and set of
        labels."""
        return data_frame(self.cells)

    def plot(self) -> Any:
        """The same verdict after rewording, by task and judge, as a `matplotlib.figure.Figure`.

        Raises JudgeSenseError for a report without judges, MissingExtraError without matplotlib.
        """
        from judgesense.reporting.figures import forest

        return forest(self)

    def __repr__(self) -> str:
        cards = self.trust
        judges = list(short_names({card["judge"] for card in cards}).values())
        tasks = list(dict.fromkeys(card["task"] for card in cards))
        trust = Counter(card["trust"] for card in cards)
        values = [f"{n} {name}" if len(cards) > 1 else name for name, n in trust.items()]
        sizes = {card["checks"]["readable"]["n_items"] for card in cards} or {0}
        n = span([min(sizes), max(sizes)], str)
        who, what = (
            join(names) if 0 < len(names) < 4 else f"{len(names)} {many}"
            for names, many in ((judges, "judges"), (tasks, "tasks"))
        )
        return f"<Report of {who} on {what}: {', '.join(values)}; {n} items; {self.out}>"

    def disagreements(self) -> Any:
        """The items on which the judge is wrong, flips, cannot be read or is unsure.

        The rows of ``disagreements.csv`` (`judgesense.reporting.disagreements.COLUMNS`) as a
        `pandas.DataFrame`, or as a list of dicts without pandas. Raises JudgeSenseError if the
        report has no folder, or the folder no such file.
        """
        if self.out is None:
            raise JudgeSenseError("no folder: take the report of one run, judgesense report DIR")
        found = flat(read_rows(self.out))
        try:
            return data_frame(found)
        except ImportError:
            return found

    def __str__(self) -> str:
        page = [] if self.out is None else [f"{self.out}/report.html shows the verdicts."]
        return "\n".join([render_brief(self), *page])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's plain text: the table, not every figure."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        judged = [row for row in rows(self) if not row.is_baseline]
        table = html_table(list(COLUMNS.values()), [list(row.texts.values()) for row in judged])
        screen = first_screen(self)
        texts = [
            f"{case['judge']} on {case['task']}: {case['texts'][0]}"
            for case in advice_by_case(self)[:_CASES]
        ]
        if step := screen["next"]:
            texts.append(" ".join(filter(None, ["Next:", step["text"], step["command"]])))
        listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
        return f"<p><b>{escape(screen['title'])}</b></p>{table}<ul>{listed}</ul>"


_CASES = 6
"""Judges and tasks whose conclusion a notebook shows."""


def _card_row(card: Mapping[str, Any], step: str | None) -> dict[str, Any]:
    checks = card["checks"]
    return {
        **{name: card[name] for name in ("judge", "task", "scoring", "trust")},
        "because": ", ".join(card["because"]),
        "jss": checks["steady"]["estimate"],
        "ci_low": checks["steady"]["ci_low"],
        "ci_high": checks["steady"]["ci_high"],
        "kappa": checks["right"]["estimate"],
        "right": checks["right"]["details"].get("accuracy"),
        "fair": checks["fair"]["estimate"],
        "readable": checks["readable"]["estimate"],
        "n_items": checks["readable"]["n_items"],
        "next": step,
        "run_id": card["run_id"],
    }


Rows = list[dict[str, Any]]


def conclusions(
    stream: Stream,
    table: Wordings,
    thresholds: Thresholds,
    texts: Mapping[str, str] | None = None,
    labels: pa.Table | None = None,
    epsilon: float = EPSILON,
) -> dict[str, Rows]:
    """The rows of ``trust``, ``wordings``, ``recommendation``, ``remedies``, ``variants`` and
    ``people``.

    ``table`` has the stream's wordings: the card leaves out those whose label map is wrong, and the
    recommendation and the remedies start from the card. Where a remedy makes a judge usable, the
    card's ``remedy`` names the cheapest that passes.
    """
    mislabelled = table.mislabelled
    card = trust_card(
        stream, thresholds=thresholds, mislabelled=mislabelled, gold=gold_of(stream, labels)
    )
    shown = {**card.to_dict(), "remedy": None}
    found: dict[str, Rows] = {
        "trust": [shown],
        "wordings": wordings(table, texts),
        "recommendation": [recommendation(table, card)],
        "people": people(stream, labels, mislabelled, epsilon),
    }
    # Of fewer items no remedied verdicts can pass the check `steady`.
    if distinct(stream.log.cluster[stream.rows]) >= FEW_CLUSTERS:
        from judgesense.trust.remedies import cheapest_that_passes, remedies

        found["remedies"] = remedies(stream, card, thresholds, mislabelled)
        best = cheapest_that_passes(found["remedies"])
        shown["remedy"] = best["remedy"] if best else None
    if stream.variants:
        found["variants"] = variants(stream, mislabelled)
    return found


Texts = Mapping[str, Mapping[str, str]]
"""Task -> template -> text."""

_KEY = ["task", "template_id"]

_ENOUGH = 200
"""Prompts of a template that are compared with each other."""


def wording_texts(record: Mapping[str, Any], prompts: pa.Table | None = None) -> Texts:
    """The texts of a run's wordings by task and template; those that are not known are left out.

    ``run.json`` has the instructions of runs on template files. For other runs (a dataset), the
    text is what a template's prompts have in common: their beginning up to the last empty line;
    without one, their beginning and end around an ellipsis.

    Args:
        record: the run's record (``run.json``).
        prompts: the run's prompts, with ``task``, ``template_id`` and ``text``.

    >>> rows = [{"task": "t", "template_id": "1", "text": f"Is it polite?\\n\\nText: {text}"}
    ...         for text in ("Thanks.", "Go away.")]
    >>> wording_texts({}, pa.Table.from_pylist(rows))
    {'t': {'1': 'Is it polite?'}}
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    if prompts is not None and {"task", "template_id", "text"} <= set(prompts.column_names):
        for key in prompts.select(_KEY).group_by(_KEY).aggregate([]).to_pylist():
            of_key = [pc.equal(prompts[name], key[name]) for name in _KEY]
            texts = prompts["text"].filter(pc.and_(*of_key))[:_ENOUGH].drop_null().to_pylist()
            if text := _in_common(texts):
                found[key["task"]][key["template_id"]] = text
    for task, facts in (record.get("tasks") or {}).items():
        found[task].update(facts.get("wordings") or {})
    return dict(found)


def _in_common(texts: list[str]) -> str:
    """What the prompts of a template share; "" for a single prompt, which shows no difference."""
    if len(set(texts)) < 2:
        return ""
    start = same_start(min(texts), max(texts))
    if "\n\n" in start:
        return start.rpartition("\n\n")[0].strip()
    left = [text[len(start) :][::-1] for text in texts]
    end = same_start(min(left), max(left))[::-1]
    if not start and "\n\n" in end:
        return end.partition("\n\n")[2].strip()
    return f"{start}…{end}".strip() if start or end else ""


_PAIR_COLUMNS = (
    "task", "item_id", "cluster_id", "order", "template_a", "template_b", "prompt_id_a",
    "prompt_id_b", "label_map_a", "label_map_b",
)  # fmt: skip


UNFINISHED = (
    "Still being judged, or interrupted: the figures cover the prompts judged so far. Rerun the "
    "same command to finish it."
)


def measure(
    log: pa.Table,
    pairs: pa.Table | None,
    *,
    run: Mapping[str, Any],
    prompts: pa.Table | None = None,
    thresholds: Mapping[str, object] | None = None,
    texts: Callable[[list[int]], list[str | None]] | None = None,
    folder: str | Path | None = None,
    people: pa.Table | None = None,
    items: pa.Table | None = None,
    listed: Rows | None = None,
) -> dict[str, Any]:
    """Every figure of a run, and what follows from it.

    Args:
        log: a decision log (`judgesense.decisions.log.SCHEMA`), n rows.
        pairs: the run's pairs; None takes all pairs of templates within item and order.
        run: the run's record (``run.json``): ``run_id`` and ``tasks`` (name -> labels,
            comparative) and ``thresholds`` are used if present.
        prompts: ``prompt_id`` and ``text`` of the user messages, shown in the flipped examples;
            with ``task`` and ``template_id``, they also show the texts of wordings.
        thresholds: of the trust card's checks, by name (`judgesense.trust.thresholds.Thresholds`);
            those left out are the run's, or the defaults.
        texts: reads the judge's text at some rows of the log, for the flipped examples; by default
            they are the log's ``raw_text``.
        folder: the run's folder, for the commands of next steps.
        people: people's labels (`judgesense.run_folder.folder.PEOPLE_SCHEMA`), where gold is the
            majority of several; ``epsilon`` of the run is that of the alternative annotator test.
        items: other columns of an imported file (`judgesense.run_folder.folder.ITEM_SCHEMA`).
        listed: a list to which the rows of ``disagreements.csv`` are added.

    Returns:
        The contents of ``report.json``: the lists of `judgesense.run_folder.report.LISTS`,
        ``cells`` with the keys of `CELL_KEYS`. ``accuracy`` is that of mapped decisions among the
        decided single prompts; ``coverage`` is the share of planned pairs that are decided on both
        sides. For a comparative task, order ``both`` pools AB and BA.

    Raises:
        JudgeSenseError: an empty log, a missing column, an impossible label map, or an unknown
            threshold.
    """
    log = conform(log, "the decision log")
    numbered = log.append_column(ROW, pa.array(np.arange(log.num_rows)))
    columns = _PAIR_COLUMNS if pairs is None else pairs.column_names
    if missing := [name for name in _PAIR_COLUMNS if name not in columns]:
        raise JudgeSenseError(f"the pairs lack the columns {join(missing)}")
    run_id = str(run.get("run_id") or "-")
    report: dict[str, Any] = {"schema": VERSION, **{name: [] for name in LISTS}}
    limits = Thresholds().but(run.get("thresholds")).but(thresholds)
    wording = wording_texts(run, prompts)
    epsilon = float(run.get("epsilon", EPSILON))
    lengths = _lengths(prompts)
    streams = view(numbered, pairs, run).streams
    family = 0
    for stream in streams:
        several = stream.row_a is not None and distinct(stream.log.template[stream.rows]) > 1
        family += bool(several and (stream.log.gold[stream.rows] >= 0).any())
    for stream in streams:
        every = parts(stream, run_id)
        report["cells"] += stream_cells(every)
        if stream.row_a is not None:
            whole = every[-1]
            agreements = template_pairs(whole)
            report["template_pairs"] += agreements
            report["templates"] += template_figures(whole, agreements)
            report["diagnostics"].append(diagnostics(whole, report["cells"][-1]))
            report["examples"] += examples(whole)
            if stream.reruns is not None:
                report["repeated"] += repeated_figures(stream, run)
            case = {key: whole.names[key] for key in CELL_KEYS[:4]}
            texts_of_task = wording.get(stream.task.name)
            table = Wordings.of(stream, max(1, family))
            concluded = conclusions(stream, table, limits, texts_of_task, people, epsilon)
            rows_here, wrong = disagreements(stream, case, table.mislabelled, items, lengths)
            concluded["where_wrong"] = [wrong]
            if listed is not None:
                listed += rows_here
            for name, rows in concluded.items():
                report[name] += [{**case, **row} for row in rows]
            (card,) = concluded["trust"]
            planned = plan(card["checks"], limits.confidence) if card["trust"] != "avoid" else None
            outlook = gate_outlook(card["checks"]["steady"], limits.confidence)
            report["plan"].append({**case, "settles": planned, "gate": outlook})
            step = next_step(
                {**case, **card}, remedies=concluded.get("remedies", ()),
                wordings=concluded["wordings"], diagnostics=report["diagnostics"][-1],
                planned=planned, record=run, folder=folder,
            )  # fmt: skip
            report["next"].append({**case, **step})
    shown = texts or (lambda rows: log["raw_text"].take(pa.array(rows, pa.int64())).to_pylist())
    if listed:
        add_texts(listed, shown, prompts, people)
    if report["examples"]:
        _add_texts(report["examples"], shown, prompts)
    report["runs"] = [dict(run)]
    report["notes"] = list(map(str, run.get("notes") or []))
    if "asked" in run and not run.get("finished"):
        report["notes"].insert(0, UNFINISHED)
    report["findings"] = advise(report)
    report["advice"] = list(map(as_sentence, report["findings"]))
    return report


def _lengths(prompts: pa.Table | None) -> dict[str, int]:
    """The characters of each item's shortest prompt."""
    if prompts is None or not {"item_id", "text"} <= set(prompts.column_names):
        return {}
    sizes = pa.table({"item": prompts["item_id"], "n": pc.utf8_length(prompts["text"])})
    shortest = sizes.group_by("item").aggregate([("n", "min")])
    return dict(zip(shortest["item"].to_pylist(), shortest["n_min"].to_pylist(), strict=True))


def _add_texts(
    shown: Rows, answers: Callable[[list[int]], list[str | None]], prompts: pa.Table | None
) -> None:
    """Add the judge's answer, and the prompt where known, to both sides of the examples."""
    sides = [example[side] for example in shown for side in "ab"]
    for side, text in zip(sides, answers([side.pop(ROW) for side in sides]), strict=True):
        side["answer"] = None if text is None else text[:LONGEST_TEXT]
    if prompts is None:
        return
    wanted = pa.array([side["prompt_id"] for side in sides], pa.string())
    few = prompts.filter(pc.is_in(prompts["prompt_id"], value_set=wanted))
    texts = dict(zip(few["prompt_id"].to_pylist(), few["text"].to_pylist(), strict=True))
    for side in sides:
        text = texts.get(side["prompt_id"])
        side["text"] = None if text is None else text[:LONGEST_TEXT]


def measure_run(
    run_dir: Path,
    thresholds: Mapping[str, object] | None = None,
    listed: Rows | None = None,
) -> dict[str, Any]:
    """A run's report, measured from its decisions; without decisions, the report in the folder.

    ``thresholds`` and ``listed`` are those of `measure`; the report in the folder keeps its own
    thresholds. Raises JudgeSenseError as `read_run` and `load_report` do.
    """
    if run_dir.is_dir() and not part_files(run_dir):
        return load_report(run_dir)
    run = read_run(run_dir)
    return measure(
        run.figures,
        run.pairs,
        run=run.record,
        prompts=run.prompts,
        thresholds=thresholds,
        texts=partial(raw_texts, run_dir),
        folder=run_dir,
        people=run.people,
        items=run.items,
        listed=listed,
    )


def write_report(
    run_dir: Path, thresholds: Mapping[str, object] | None = None, *, figures: bool = True
) -> dict[str, Any]:
    """Measure a run and write its report (``.json``, ``.md``, ``.html``), ``disagreements.csv`` and
    the figures.

    Each file is written whole or not at all. Without matplotlib the figures are left out and
    ``notes`` says so.

    Returns the contents of ``report.json``. Raises JudgeSenseError as `measure_run` does, if the
    folder holds the report of a newer version, and if it cannot be written.
    """
    from judgesense.reporting.documents import render_markdown
    from judgesense.reporting.html import render_html

    run_dir = Path(run_dir)
    saved_report(run_dir)  # Refuse to overwrite the report of a newer version.
    listed: Rows = []
    report = measure_run(run_dir, thresholds, listed)
    # Of one judge's two wordings on a task, figures show nothing that the tables do not.
    tells = len(report["trust"]) > 1 or len(report["templates"]) > 2
    tells &= any(cell["jss"] is not None for cell in report["cells"])
    try:
        drawn = _write_figures(report, run_dir / "figures") if tells and figures else []
        text = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(run_dir / REPORT_FILE, text + "\n")
        write_text(run_dir / "report.md", render_markdown(report, drawn))
        write_text(run_dir / "report.html", render_html(report, listed))
        if part_files(run_dir):
            write_rows(listed, run_dir)
    except OSError as error:
        raise JudgeSenseError(
            f"cannot write the report into {run_dir}: {error.strerror or error}; "
            f"to print it instead: judgesense report {run_dir} --format md"
        ) from error
    return report


def _write_figures(report: dict[str, Any], folder: Path) -> list[str]:
    """Draw the figures and return their names; without matplotlib, note that in the report."""
    from judgesense.reporting.figures import draw

    try:
        return draw(report, folder)
    except MissingExtraError as error:
        if (note := f"No figures: {error}") not in report["notes"]:
            report["notes"].append(note)
        return []


def report_runs(*run_dirs: str | Path, thresholds: Mapping[str, object] | None = None) -> Report:
    """Measure runs, write each one's report, and return the report of all of them.

    Args:
        run_dirs: folders of runs (``--out``), one or several.
        thresholds: of the trust card's checks, by name, such as ``{"steady": 0.9}``
            (`judgesense.trust.thresholds.Thresholds`).

    Returns:
        The report; of several runs, their cells one after another.

    Raises:
        JudgeSenseError: a folder without decisions, an unreadable part, a report that a newer
            version wrote, or an unknown threshold.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     judge = lambda messages: ["YES" for _ in messages]
    ...     _ = run(judge, tasks=["factuality"], limit=4, out=f"{folder}/run", note=str)
    ...     report = report_runs(f"{folder}/run")
    >>> len(report.cells)
    4
    """
    if not run_dirs:
        raise JudgeSenseError("no run given; name the --out folder of at least one run")
    reports = [write_report(Path(run_dir), thresholds) for run_dir in run_dirs]
    if len(reports) > 1:
        return Report.of(merge(reports))
    return Report.of(reports[0], Path(run_dirs[0]))

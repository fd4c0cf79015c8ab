"""Consistency data for training a judge: ``judgesense export-training``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from judgesense.decisions import EQUIVALENT
from judgesense.decisions.view import Stream, view
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.run_folder.folder import Run, read_run
from judgesense.statistics.calibration import UNDECIDED, majority
from judgesense.statistics.labels import check_seed
from judgesense.text import short_names
from judgesense.trust.grid import NOT_ASKED, Grid, grid_of

Target = Literal["gold", "consensus"]
Format = Literal["sft", "dpo"]


@dataclass(frozen=True)
class Exported:
    """What :func:`export_training` wrote, and the items that are kept for evaluation."""

    out: Path
    examples: int
    items: int
    held_out: tuple[str, ...]


def export_training(
    run_dir: str | Path,
    out: str | Path,
    *,
    judge: str | None = None,
    target: Target = "consensus",
    format: Format = "sft",
    holdout: float = 0.3,
    seed: int = 0,
) -> Exported:
    """Write a run's prompts with the verdict that every wording should get, in TRL's chat formats.

    ``sft`` rows are ``{"messages": [...]}``. ``dpo`` rows are ``{"prompt": [...], "chosen": [...],
    "rejected": [...]}`` and exist only where the judge gave another verdict than the target. The
    system prompt is the judge's. The target is the gold label, or the judge's most frequent verdict
    over all wordings of the item and order; an item with a tie is left out.

    Whole clusters are held out for evaluation: none of their prompts is in the file, and
    ``FILE.held-out.json`` lists their items.

    Args:
        run_dir: the ``--out`` folder of a run.
        out: the JSONL file.
        judge: the judge, as named in the run; may be left out if there is one.
        target: ``gold`` or ``consensus``.
        format: ``sft`` or ``dpo``.
        holdout: the share of clusters that is held out, within (0, 1).
        seed: draws the clusters.

    Raises:
        JudgeSenseError: an import without prompts, an unknown judge, no gold labels, or nothing to
            export.
    """
    if not 0 < holdout < 1:
        raise JudgeSenseError(f"holdout must lie between 0 and 1, got {holdout}")
    run = read_run(Path(run_dir))
    if run.prompts is None:
        raise JudgeSenseError(f"{run.folder} is an import and has no prompts to train on")
    streams = _streams(run, judge)
    texts = _texts(run)
    rows: list[dict[str, Any]] = []
    held: set[str] = set()
    used: set[tuple[str, str]] = set()
    for stream in streams:
        grid = grid_of(stream)
        outside = _held_out(grid, holdout, seed)
        held |= {str(item) for item in grid.items[outside]}
        system = _system_prompt(run, stream.judge)
        for item, text, chosen, rejected in _examples(grid, texts, target, outside):
            if format == "dpo" and rejected is None:
                continue
            used.add((grid.task, item))
            prompt = [*system, {"role": "user", "content": text}]
            said = [{"role": "assistant", "content": chosen}]
            if format == "sft":
                rows.append({"messages": [*prompt, *said]})
            else:
                other = [{"role": "assistant", "content": rejected}]
                rows.append({"prompt": prompt, "chosen": said, "rejected": other})
    if not rows:
        missing = "no gold labels" if target == "gold" else "no verdict that wordings agree on"
        more = ", or no verdict that differs from the target" if format == "dpo" else ""
        raise JudgeSenseError(f"nothing to export from {run.folder}: {missing}{more}")
    path = Path(out)
    try:
        write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        write_text(
            path.with_name(f"{path.name}.held-out.json"),
            json.dumps(sorted(held), ensure_ascii=False, indent=1) + "\n",
        )
    except OSError as error:
        raise JudgeSenseError(f"cannot write {path}: {error.strerror or error}") from error
    return Exported(path, len(rows), len(used), tuple(sorted(held)))


def _streams(run: Run, judge: str | None) -> list[Stream]:
    """One stream per task of the judge; option probabilities rather than text where it has both."""
    streams = view(run.log, run.pairs, run.record).judged
    names = short_names(sorted({stream.judge for stream in streams}))
    chosen = [s for s in streams if judge in (None, s.judge, names[s.judge], s.judge.split("@")[0])]
    known = sorted({names[stream.judge] for stream in streams})
    if not chosen:
        raise JudgeSenseError(
            f"{run.folder} has no judge {judge!r}; choose one of {', '.join(known)}"
        )
    if len({stream.judge for stream in chosen}) > 1:
        raise JudgeSenseError(f"{run.folder} has several judges: give --judge {' or '.join(known)}")
    by_task: dict[str, Stream] = {}
    for stream in sorted(chosen, key=lambda each: each.scoring != "options"):
        by_task.setdefault(stream.task.name, stream)
    return list(by_task.values())


def _texts(run: Run) -> Mapping[tuple[str, str, str, str], str]:
    """The message of each task, item, template and order, without variants."""
    prompts = run.prompts
    assert prompts is not None
    if "variant" in prompts.column_names:
        prompts = prompts.filter(pc.is_null(prompts["variant"]))
    columns = [prompts[name].to_pylist() for name in ("task", "item_id", "template_id", "order")]
    return dict(zip(zip(*columns, strict=True), prompts["text"].to_pylist(), strict=True))


def _held_out(grid: Grid, holdout: float, seed: int) -> np.ndarray:
    """Which items are held out: whole clusters, the same for every format and target."""
    try:
        check_seed(seed)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    clusters = np.unique(grid.clusters)
    n = max(1, round(holdout * len(clusters)))
    drawn = np.random.default_rng(seed).permutation(clusters)[:n]
    held: np.ndarray = np.isin(grid.clusters, drawn)
    return held


def _system_prompt(run: Run, judge: str) -> list[dict[str, str]]:
    for entry in run.record.get("judges") or []:
        if entry.get("name") == judge:
            text = (entry.get("describe") or {}).get("system_prompt")
            return [{"role": "system", "content": text}] if text else []
    return []


def _examples(
    grid: Grid,
    texts: Mapping[tuple[str, str, str, str], str],
    target: Target,
    outside: np.ndarray,
) -> Iterator[tuple[str, str, str, str | None]]:
    """Item, message, the raw answer to give, and the judge's own where it differs."""
    pool = grid.of(EQUIVALENT)
    for place, order in enumerate(grid.orders):
        codes = grid.verdicts[:, pool, place]
        if target == "gold":
            aims = grid.gold.copy()
            if order == "BA":
                aims = np.where(aims == 0, 1, np.where(aims == 1, 0, aims))
        else:
            aims = majority(np.maximum(codes, UNDECIDED), len(grid.labels))
        for row in np.flatnonzero(~outside & (aims >= 0)).tolist():
            for column, wording in enumerate(pool):
                name = grid.wordings[wording]
                text = texts.get((grid.task, grid.items[row], name.template, order))
                if text is None or name.variant is not None or codes[row, column] == NOT_ASKED:
                    continue
                own = codes[row, column]
                rejected = None
                if own >= 0 and own != aims[row]:
                    rejected = grid.raw[wording][own]
                yield str(grid.items[row]), text, grid.raw[wording][aims[row]], rejected

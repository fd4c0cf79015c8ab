"""Validate pairs: are the two prompts equivalent? Every validator's verdict, and the consensus.

JudgeSense, section 3.3, asks one model. Here any number of judges answer its question, beside
measures of surface and meaning, a comparison of the label maps, a recorded reading by hand of the
project's own wordings, and people's verdicts from files.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of, write_text
from judgesense.files.documents import Shape, fit, read_json
from judgesense.statistics.kappa import cohen_kappa
from judgesense.text import aligned
from judgesense_dataset.folder import is_hub_folder, write_verdicts
from judgesense_dataset.load import load_pairs
from judgesense_dataset.validators import (
    JUDGE,
    PAPER_COSINE,
    PAPER_EDIT_DISTANCE,
    POLARITY,
    READING,
    SURFACE,
    Embedder,
    Vote,
    consensus,
    file_votes,
    judge_votes,
    polarity_votes,
    reading_votes,
    surface_votes,
)
from judgesense_dataset.verdicts import load_verdicts

RECORD, VERDICTS = "validation.json", "verdicts.jsonl"
_PER_ITEM, _PER_WORDING = "every pair with its item", "every pair of wordings"
_STATES = {True: "valid", False: "invalid", None: "undecided"}

Note = Callable[[str], None]


@dataclass(frozen=True)
class Validation:
    """The outcome: the record that ``validation.json`` holds, its folder, and the files changed."""

    record: dict[str, Any]
    out: Path
    written_back: tuple[Path, ...] = ()


def validate(
    dataset: str | Path | None = None,
    judges: Sequence[Any] = (),
    humans: Sequence[str | Path] = (),
    out: str | Path | None = None,
    *,
    per_item: bool = False,
    revision: str | None = None,
    write_back: bool = True,
    note: Note = lambda _: None,
) -> Validation:
    """Validate every pair of a dataset, and write the verdicts into a local Hub folder.

    Interrupt it at any time; call it again with the same ``out`` to resume.

    Args:
        dataset: a Hub dataset folder, a folder of ``<task>.jsonl``, a Hub id, or None for the
            embedded benchmark. Only a Hub folder on this machine is changed.
        judges: names, Hub ids, paths, functions or loaded judges; each is asked the paper's
            question.
        humans: files of people's verdicts, or of a model's, which then counts as a judge (see
            :mod:`judgesense_dataset.verdicts`).
        out: the folder of the record; by default ``<dataset>.validation`` beside the dataset.
        per_item: ask the judges about every pair with its item, as the paper did, and not once
            for each pair of wordings.
        revision: the commit, branch or tag of a Hub id.
        write_back: False leaves the dataset unchanged; the verdicts are then in ``out`` only.
        note: called with remarks for the user.

    Raises:
        JudgeSenseError: for unreadable input, an unknown judge, or an ``out`` that belongs to
            other pairs; where possible before any model is loaded.
    """
    folder = None if dataset is None else Path(dataset)
    if out is None and (folder is None or not folder.is_dir()):
        raise JudgeSenseError("name a folder for the verdicts with --out DIR")
    place = Path(out) if out else Path(f"{Path(dataset or '').absolute()}.validation")
    rows = load_pairs(dataset, revision).to_pylist()
    for pair, times in Counter(row["pair_id"] for row in rows).most_common(1):
        if times > 1:
            raise JudgeSenseError(
                f"{times} rows have the pair id {pair!r}, so verdicts cannot be told apart; "
                "judgesense dataset audit lists repeated rows"
            )
    inputs = _inputs(rows, judges, humans, per_item)
    record = _earlier(place, inputs)
    if record is not None:
        note(f"{place} already holds this validation")
    else:
        record = _validate(rows, judges, [Path(path) for path in humans], place, inputs, note)
    changed: tuple[Path, ...] = ()
    if write_back and folder is not None and is_hub_folder(folder):
        changed = write_verdicts(folder, load_verdicts(place / VERDICTS))
    return Validation(record, place, changed)


def _inputs(
    rows: Sequence[Mapping[str, Any]],
    judges: Sequence[Any],
    humans: Sequence[str | Path],
    per_item: bool,
) -> dict[str, Any]:
    """Everything that fixes the verdicts: the pairs, the judges, and the files read."""
    digest = hashlib.sha256()
    content = ("pair_id", "task_type", "prompt_a", "prompt_b", "label_map_a", "label_map_b")
    for row in rows:
        digest.update(json.dumps([row[name] for name in content]).encode())
    files = {}
    for path in map(Path, humans):
        if not path.is_file():
            raise JudgeSenseError(f"--human {path}: no such file")
        if path.stem in files:
            raise JudgeSenseError(f"two --human files are called {path.stem}; rename one of them")
        files[path.stem] = sha256_of(path)
    return {
        "pairs": digest.hexdigest(),
        "judges": [_identity(judge) for judge in judges],
        "judges_asked": _PER_ITEM if per_item else _PER_WORDING,
        "files": files,
    }


def _identity(judge: Any) -> dict[str, Any]:
    from local_judges.protocol import Judge
    from local_judges.registry import load_judge, resolve

    if isinstance(judge, (str, Path)):
        return dict(resolve(str(judge)).identity())
    loaded = judge if isinstance(judge, Judge) else load_judge(judge)
    return {"judge": loaded.name}


class _Inputs(Shape, extra="allow"):
    pairs: str


class _Record(Shape, extra="allow"):
    """What is read of an earlier ``validation.json``."""

    inputs: _Inputs


def _earlier(place: Path, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of a finished validation of these inputs, if there is one."""
    path = place / RECORD
    if not path.exists():
        return None
    record: dict[str, Any] = read_json(path)
    earlier = fit(_Record, record, str(path), "the record of a validation").inputs
    if earlier.pairs != inputs["pairs"]:
        raise JudgeSenseError(
            f"{place} holds the validation of other pairs; choose another folder with --out"
        )
    same = earlier.model_dump() == inputs and (place / VERDICTS).exists()
    return record if same else None


def _validate(
    rows: Sequence[Mapping[str, Any]],
    judges: Sequence[Any],
    humans: Sequence[Path],
    place: Path,
    inputs: dict[str, Any],
    note: Note,
) -> dict[str, Any]:
    """Collect all votes, then write the verdicts and the record."""
    votes = dict(file_votes(rows, path) for path in humans)
    votes[POLARITY] = polarity_votes(rows)
    votes[READING] = reading_votes(rows)
    embedder = Embedder()
    votes[SURFACE], measures = surface_votes(rows, embedder)
    origins: dict[str, Any] = {SURFACE: embedder.describe()}
    for judge, identity in zip(judges, inputs["judges"], strict=True):
        name, of_judge, log = _ask(judge, identity, rows, place, inputs["judges_asked"], note)
        votes[JUDGE + name] = of_judge
        origins[JUDGE + name] = {"asked": identity, "log": log}
    surface: dict[str, Any] = {"n": len(measures)}
    for column, paper in (("edit_distance", PAPER_EDIT_DISTANCE), ("cosine", PAPER_COSINE)):
        values = [getattr(measure, column) for measure in measures]
        surface[column] = {
            "mean": round(fmean(values), 4),
            "sd": round(pstdev(values), 4),
            "paper_mean": paper[0],
            "paper_sd": paper[1],
        }
    record = {
        "schema": 1,
        "inputs": inputs,
        "validators": [
            {**_summary(name, of_one), **origins.get(name, {})} for name, of_one in votes.items()
        ],
        "agreement": _agreement(votes),
        "surface": surface,
        "tasks": {},
    }
    _write(place, rows, votes, record)
    return record


def _ask(
    judge: Any,
    identity: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    place: Path,
    asked: str,
    note: Note,
) -> tuple[str, list[Vote], str]:
    """One judge's name, votes and log folder below ``place``."""
    from local_judges.registry import load_judge

    per_item = asked == _PER_ITEM
    fixed = json.dumps([identity, per_item], sort_keys=True)
    log = f"judges/{hashlib.sha256(fixed.encode()).hexdigest()[:8]}"
    loaded = load_judge(judge)
    try:
        return loaded.name, judge_votes(rows, loaded, place / log, note, per_item=per_item), log
    finally:
        if loaded is not judge:
            loaded.close()


def _summary(name: str, votes: Sequence[Vote]) -> dict[str, Any]:
    counts = Counter(vote.verdict for vote in votes)
    scores = [vote.score for vote in votes if vote.score is not None]
    return {
        "validator": name,
        "yes": counts[True],
        "no": counts[False],
        "silent": counts[None],
        "inverted": sum(bool(vote.details.get("inverted")) for vote in votes),
        "mean_score": round(fmean(scores), 4) if scores else None,
    }


def _agreement(votes: Mapping[str, Sequence[Vote]]) -> list[dict[str, Any]]:
    """Percent agreement and Cohen's kappa of every two voices, over the pairs both decide."""
    agreement = []
    for first, second in combinations([name for name in votes if name != POLARITY], 2):
        both = [
            (str(a.verdict), str(b.verdict))
            for a, b in zip(votes[first], votes[second], strict=True)
            if a.verdict is not None and b.verdict is not None
        ]
        if both:
            agreement.append(
                {
                    "a": first,
                    "b": second,
                    "n": len(both),
                    "percent": 100 * sum(a == b for a, b in both) / len(both),
                    "kappa": cohen_kappa([a for a, _ in both], [b for _, b in both]),
                }
            )
    return agreement


def _write(
    place: Path,
    rows: Sequence[Mapping[str, Any]],
    votes: Mapping[str, Sequence[Vote]],
    record: dict[str, Any],
) -> None:
    """Write the verdicts, one pair per line, then the record, which marks the end."""
    tasks: dict[str, Counter[str]] = defaultdict(Counter)
    lines = []
    for at, row in enumerate(rows):
        of_pair = {name: votes_of_one[at] for name, votes_of_one in votes.items()}
        valid, score = consensus(of_pair)
        tasks[row["task_type"]][_STATES[valid]] += 1
        line = {
            "pair_id": row["pair_id"],
            "valid": valid,
            "semantic_equivalence_score": score,
            "validation": {name: vote.to_json() for name, vote in of_pair.items()},
        }
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    record["tasks"] = {
        name: {state: counts[state] for state in _STATES.values()} for name, counts in tasks.items()
    }
    place.mkdir(parents=True, exist_ok=True)
    write_text(place / VERDICTS, "".join(lines))
    write_text(place / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def render_validation(record: Mapping[str, Any]) -> str:
    """A validation's record as text: the consensus, each validator, and their agreement."""
    tasks = [("task", "valid", "invalid", "undecided")]
    tasks += [(name, *map(str, counts.values())) for name, counts in record["tasks"].items()]
    names = ("yes", "no", "silent", "inverted", "mean_score")
    validators = [("validator", *names)]
    for one in record["validators"]:
        validators.append((one["validator"], *(_number(one[name]) for name in names)))
    agreement = [("agreement of", "and", "pairs", "percent", "kappa")]
    for one in record["agreement"]:
        numbers = (one["n"], one["percent"], one["kappa"])
        agreement.append((one["a"], one["b"], *map(_number, numbers)))
    surface = record["surface"]
    lines = [*aligned(tasks), "", *aligned(validators), "", *aligned(agreement), ""]
    lines.append(f"over {surface['n']} distinct pairs of wordings (mean, standard deviation):")
    for name in ("edit_distance", "cosine"):
        m = surface[name]
        lines.append(
            f"  {name.replace('_', ' ')} {m['mean']:.3f}, {m['sd']:.3f} (second paper: "
            f"{m['paper_mean']:.3f}, {m['paper_sd']:.2f})"
        )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"

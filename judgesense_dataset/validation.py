"""Validate pairs: are the two prompts equivalent? Every validator's verdict, and the consensus.

JudgeSense, section 3.3, asks one model. Here any number of judges answer its question, beside
measures of surface and meaning, a comparison of the label maps, two recorded readings of the
project's own wordings, and people's verdicts from files. A judge decides only if its verdicts agree
with people's.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import refuse_links, sha256_of, write_text
from judgesense.files.documents import Shape, read_json
from judgesense.files.documents import validate as validate_shape
from judgesense.statistics.kappa import cohen_kappa
from judgesense.text import aligned
from judgesense_dataset.folder import is_hub_folder, load_verdicts, write_verdicts
from judgesense_dataset.load import load_pairs
from judgesense_dataset.surface import Embedder
from judgesense_dataset.validators import (
    JUDGE,
    POLARITY,
    Calibration,
    Vote,
    calibrate,
    calibration_rows,
    consensus,
    file_votes,
    free_votes,
    judge_votes,
    wordings,
)

RECORD, VERDICTS = "validation.json", "verdicts.jsonl"
_STATES = {True: "valid", False: "invalid", None: "undecided"}


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
    revision: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Validation:
    """Validate every pair of a dataset, and write the verdicts into a local Hub folder.

    Interrupt it at any time; call it again with the same ``out`` to resume.

    Args:
        dataset: a Hub dataset folder, a folder of ``<task>.jsonl``, a Hub id, or None for the
            embedded benchmark. Only a Hub folder on this machine is changed.
        judges: names, Hub ids, paths, functions or loaded judges; each is asked the paper's
            question once for each pair of wordings.
        humans: files of people's verdicts, or of a model's, which then counts as a judge (see
            :func:`judgesense_dataset.validators.file_votes`).
        out: the folder of the record; by default ``<dataset>.validation`` beside the dataset.
        revision: the commit, branch or tag of a Hub id.
        note: called with remarks for the user.

    Raises:
        JudgeSenseError: for unreadable input, an unknown judge, or an ``out`` that belongs to
            other pairs; where possible before any model is loaded.
    """
    from local_judges.registry import load_judge

    folder = None if dataset is None else Path(dataset)
    if out is None and (folder is None or not folder.is_dir()):
        raise JudgeSenseError("name a folder for the verdicts with --out DIR")
    place = Path(out) if out else Path(f"{Path(dataset or '').absolute()}.validation")
    rows = load_pairs(dataset, revision).to_pylist()
    if len({row["pair_id"] for row in rows}) < len(rows):
        raise JudgeSenseError(
            "several rows have the same pair id, so their verdicts cannot be told apart; "
            "`judgesense dataset audit` reports them"
        )
    inputs = _inputs(rows, judges, [Path(path) for path in humans])
    record = _earlier(place, inputs)
    if record is not None:
        note(f"{place} already holds this validation")
    else:
        # Pairs that people read stand beside the rows: each validator is first compared with them.
        readings = calibration_rows()
        files = dict(file_votes(rows, Path(path)) for path in humans)
        votes = {name: [*ballot, *[Vote(None)] * len(readings)] for name, ballot in files.items()}
        votes |= free_votes([*rows, *readings], Embedder())
        pairs, origins = wordings([*rows, *readings]), {}
        for judge, identity in zip(judges, inputs["judges"], strict=True):
            identity_text = json.dumps(identity, sort_keys=True)
            log = f"judges/{hashlib.sha256(identity_text.encode()).hexdigest()[:8]}"
            answering = load_judge(judge)
            name = JUDGE + answering.name
            try:
                votes[name] = judge_votes(pairs, answering, place / log, note)
            finally:
                if answering is not judge:
                    answering.close()
            origins[name] = {"asked": identity, "log": log}
        calibrations = calibrate(votes, pairs)
        votes = {name: ballot[: len(rows)] for name, ballot in votes.items()}
        record = {
            "schema": 1,
            "inputs": inputs,
            "validators": [
                {
                    **_summary(name, of_one),
                    **origins.get(name, {}),
                    **_calibration(calibrations.get(name)),
                }
                for name, of_one in votes.items()
            ],
            "agreement": _agreement(votes),
        }
        trusted = {name for name, calibration in calibrations.items() if calibration.is_trusted}
        for name, calibration in calibrations.items():
            if calibration.why_not:
                note(f"{name} is recorded but decides nothing: {calibration.why_not}")
        _write(place, rows, votes, trusted, record)
    changed: tuple[Path, ...] = ()
    if folder is not None and is_hub_folder(folder):
        changed = write_verdicts(folder, load_verdicts(place / VERDICTS))
    return Validation(record, place, changed)


def _inputs(
    rows: Sequence[Mapping[str, Any]], judges: Sequence[Any], humans: Sequence[Path]
) -> dict[str, Any]:
    from local_judges.protocol import Judge
    from local_judges.registry import load_judge, resolve

    digest = hashlib.sha256()
    content = ("pair_id", "task_type", "prompt_a", "prompt_b", "label_map_a", "label_map_b")
    for row in rows:
        digest.update(json.dumps([row[name] for name in content]).encode())
    files = {}
    for path in humans:
        if not path.is_file():
            raise JudgeSenseError(f"--human {path}: no such file")
        if path.stem in files:
            raise JudgeSenseError(f"two --human files are called {path.stem}; rename one of them")
        files[path.stem] = sha256_of(path)
    identities = [
        dict(resolve(str(judge)).identity())
        if isinstance(judge, (str, Path))
        else {"judge": (judge if isinstance(judge, Judge) else load_judge(judge)).name}
        for judge in judges
    ]
    return {"pairs": digest.hexdigest(), "judges": identities, "files": files}


class _Record(Shape, extra="allow"):
    """The part of an earlier ``validation.json`` that is read."""

    inputs: dict[str, Any]


def _earlier(place: Path, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    path = place / RECORD
    if not path.exists():
        return None
    record: dict[str, Any] = read_json(path)
    earlier = validate_shape(_Record, record, str(path), "the record of a validation").inputs
    if earlier.get("pairs") != inputs["pairs"]:
        raise JudgeSenseError(
            f"{place} holds the validation of other pairs; choose another folder with --out"
        )
    return record if earlier == inputs and (place / VERDICTS).exists() else None


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


def _calibration(figures: Calibration | None) -> dict[str, Any]:
    if figures is None:
        return {}
    trust = {"trusted": figures.is_trusted, "why_not": figures.why_not}
    return {"calibration": {**asdict(figures), **trust}}


def _agreement(votes: Mapping[str, Sequence[Vote]]) -> list[dict[str, Any]]:
    agreement = []
    for first, second in combinations([name for name in votes if name != POLARITY], 2):
        pairs = [
            (str(a.verdict), str(b.verdict))
            for a, b in zip(votes[first], votes[second], strict=True)
            if a.verdict is not None and b.verdict is not None
        ]
        if pairs:
            agreement.append(
                {
                    "a": first,
                    "b": second,
                    "n": len(pairs),
                    "percent": 100 * sum(a == b for a, b in pairs) / len(pairs),
                    "kappa": cohen_kappa([a for a, _ in pairs], [b for _, b in pairs]),
                }
            )
    return agreement


def _write(
    place: Path,
    rows: Sequence[Mapping[str, Any]],
    votes: Mapping[str, Sequence[Vote]],
    trusted: Collection[str],
    record: dict[str, Any],
) -> None:
    """Write the verdicts, one pair per line, then the record, which marks the end."""
    tasks: dict[str, Counter[str]] = defaultdict(Counter)
    lines = []
    for at, row in enumerate(rows):
        of_pair = {name: votes_of_one[at] for name, votes_of_one in votes.items()}
        valid, score = consensus(of_pair, trusted)
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
    refuse_links(place)
    write_text(place / VERDICTS, "".join(lines))
    write_text(place / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def render_validation(record: Mapping[str, Any]) -> str:
    """A validation's record as text: the consensus, each validator, and their agreement."""
    tasks = [("task", "valid", "invalid", "undecided")]
    tasks += [(name, *map(str, counts.values())) for name, counts in record["tasks"].items()]
    names = ("yes", "no", "silent", "inverted", "mean_score")
    validators = [("validator", *names)]
    for entry in record["validators"]:
        validators.append((entry["validator"], *(_number(entry[name]) for name in names)))
    agreement = [("agreement of", "and", "pairs", "percent", "kappa")]
    for entry in record["agreement"]:
        numbers = (entry["n"], entry["percent"], entry["kappa"])
        agreement.append((entry["a"], entry["b"], *map(_number, numbers)))
    return "\n".join([*aligned(tasks), "", *aligned(validators), "", *aligned(agreement)])


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"

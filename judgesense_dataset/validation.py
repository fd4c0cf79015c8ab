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
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, sha256_of, write_text
from judgesense.files.documents import parse_json
from judgesense.statistics.kappa import cohen_kappa
from judgesense_dataset.folder import is_hub_folder, write_verdicts
from judgesense_dataset.load import load_pairs
from judgesense_dataset.similarity import PAPER_COSINE, PAPER_EDIT_DISTANCE, Embedder, Measure
from judgesense_dataset.validators import (
    HUMAN,
    JUDGE,
    POLARITY,
    READING,
    SURFACE,
    Vote,
    consensus,
    file_votes,
    judge_votes,
    polarity_votes,
    reading_votes,
    surface_votes,
)
from judgesense_dataset.verdicts import is_by_model, load_verdicts

RECORD, VERDICTS = "validation.json", "verdicts.jsonl"
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
    place = _out_folder(dataset, out)
    rows = load_pairs(dataset, revision).to_pylist()
    _check_ids(rows)
    inputs = _inputs(rows, judges, humans, per_item)
    record = _earlier(place, inputs)
    if record is not None:
        note(f"{place} already holds this validation")
    else:
        record = _validate(rows, judges, [Path(path) for path in humans], place, inputs, note)
    changed: tuple[Path, ...] = ()
    if write_back and dataset is not None and is_hub_folder(Path(dataset)):
        changed = write_verdicts(Path(dataset), load_verdicts(place / VERDICTS))
    return Validation(record, place, changed)


def _validate(
    rows: Sequence[Mapping[str, Any]],
    judges: Sequence[Any],
    humans: Sequence[Path],
    place: Path,
    inputs: dict[str, Any],
    note: Note,
) -> dict[str, Any]:
    """Collect all votes, then write the verdicts and the record."""
    votes: dict[str, list[Vote]] = {}
    for path in humans:
        votes[(JUDGE if is_by_model(path) else HUMAN) + path.stem] = file_votes(rows, path)
    votes[POLARITY] = polarity_votes(rows)
    votes[READING] = reading_votes(rows)
    embedder = Embedder()
    votes[SURFACE], measures = surface_votes(rows, embedder)
    described: dict[str, Any] = {SURFACE: embedder.describe()}
    for judge, identity in zip(judges, inputs["judges"], strict=True):
        name, vote, about = _ask(
            judge, identity, rows, place, inputs["judges_asked"] == _PER_ITEM, note
        )
        votes[JUDGE + name], described[JUDGE + name] = vote, about
    record = {
        "schema": 1,
        "inputs": inputs,
        "validators": [_summary(name, votes[name], described.get(name, {})) for name in votes],
        "agreement": _agreement(votes),
        "surface": _measured(measures),
        "tasks": {},
    }
    _write(place, rows, votes, record)
    return record


def _out_folder(dataset: str | Path | None, out: str | Path | None) -> Path:
    if out is not None:
        return Path(out)
    if dataset is None or not Path(dataset).is_dir():
        raise JudgeSenseError("name a folder for the verdicts with --out DIR")
    folder = Path(dataset).absolute()
    return folder.with_name(folder.name + ".validation")


def _check_ids(rows: Sequence[Mapping[str, Any]]) -> None:
    for pair, times in Counter(row["pair_id"] for row in rows).most_common(1):
        if times > 1:
            raise JudgeSenseError(
                f"the pair id {pair!r} occurs on {times} rows; verdicts are stored by pair id, so "
                "give every pair its own id"
            )


_PER_ITEM, _PER_WORDING = "every pair with its item", "every pair of wordings"


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


def _earlier(place: Path, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of a finished validation of these inputs, if there is one."""
    path = place / RECORD
    if not path.exists():
        return None
    try:
        record = dict(parse_json(file_bytes(path), path.name))
        earlier = dict(record["inputs"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise JudgeSenseError(f"{path} cannot be read ({error!r}); remove it") from error
    if earlier.get("pairs") != inputs["pairs"]:
        raise JudgeSenseError(
            f"{place} holds the validation of other pairs; choose another folder with --out"
        )
    return record if earlier == inputs and (place / VERDICTS).exists() else None


def _ask(
    judge: Any,
    identity: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    place: Path,
    per_item: bool,
    note: Note,
) -> tuple[str, list[Vote], dict[str, Any]]:
    """One judge's name, votes and description; each judge's log has its own folder."""
    from local_judges.registry import load_judge

    asked = json.dumps([identity, per_item], sort_keys=True)
    key = hashlib.sha256(asked.encode()).hexdigest()[:8]
    loaded = load_judge(judge)
    try:
        votes = judge_votes(rows, loaded, place / "judges" / key, note, per_item=per_item)
        return loaded.name, votes, {"asked": dict(identity), "log": f"judges/{key}"}
    finally:
        if loaded is not judge:
            loaded.close()


def _summary(name: str, votes: Sequence[Vote], described: Mapping[str, Any]) -> dict[str, Any]:
    counts = Counter(vote.verdict for vote in votes)
    scores = [vote.score for vote in votes if vote.score is not None]
    return {
        "validator": name,
        "yes": counts[True],
        "no": counts[False],
        "silent": counts[None],
        "inverted": sum(bool(vote.details.get("inverted")) for vote in votes),
        "mean_score": round(fmean(scores), 4) if scores else None,
        **described,
    }


def _agreement(votes: Mapping[str, Sequence[Vote]]) -> list[dict[str, Any]]:
    """Percent agreement and Cohen's kappa of every two voices, over the pairs both decide."""
    found = []
    for first, second in combinations([name for name in votes if name != POLARITY], 2):
        both = [
            (str(a.verdict), str(b.verdict))
            for a, b in zip(votes[first], votes[second], strict=True)
            if a.verdict is not None and b.verdict is not None
        ]
        if not both:
            continue
        said = [list(words) for words in zip(*both, strict=True)]
        found.append(
            {
                "a": first,
                "b": second,
                "n": len(both),
                "percent": 100 * sum(a == b for a, b in both) / len(both),
                "kappa": cohen_kappa(said[0], said[1]),
            }
        )
    return found


def _measured(measures: Sequence[Measure]) -> dict[str, Any]:
    """Mean and standard deviation over the distinct wording pairs, beside the paper's."""
    found: dict[str, Any] = {"n": len(measures)}
    for name, paper in (("edit_distance", PAPER_EDIT_DISTANCE), ("cosine", PAPER_COSINE)):
        values = [asdict(measure)[name] for measure in measures]
        found[name] = {
            "mean": round(fmean(values), 4),
            "sd": round(pstdev(values), 4),
            "paper_mean": paper[0],
            "paper_sd": paper[1],
        }
    return found


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
        said = {name: found[at] for name, found in votes.items()}
        valid, score = consensus(said)
        tasks[row["task_type"]][_STATES[valid]] += 1
        line = {
            "pair_id": row["pair_id"],
            "valid": valid,
            "semantic_equivalence_score": score,
            "validation": {name: vote.to_json() for name, vote in said.items()},
        }
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    record["tasks"] = {
        name: {state: counts[state] for state in _STATES.values()} for name, counts in tasks.items()
    }
    place.mkdir(parents=True, exist_ok=True)
    write_text(place / VERDICTS, "".join(lines))
    write_text(place / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")

"""Are the two prompts of each pair equivalent? Every validator's verdict, and their consensus.

JudgeSense, section 3.3, asks one model. Here any number of judges answer its question, beside
measures of surface and meaning, a comparison of the label maps, a recorded reading by hand of the
project's own wordings, and people's verdicts from files.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.statistics.agreement import cohen_kappa
from judgesense_dataset.folder import (
    ALL,
    PAIR_ROWS,
    PROMPTS,
    ConfigWriter,
    config_file,
    configs,
    is_hub_folder,
    restate_sizes,
)
from judgesense_dataset.items import read_rows
from judgesense_dataset.load import load_pairs
from judgesense_dataset.similarity import (
    PAPER_COSINE,
    PAPER_EDIT_DISTANCE,
    Embedder,
    Measure,
)
from judgesense_dataset.templates import DATA
from judgesense_dataset.validators import (
    Vote,
    file_votes,
    judge_votes,
    polarity_votes,
    reading_votes,
    surface_votes,
)
from judgesense_dataset.verdicts import is_by_model

SURFACE, POLARITY, READING = "surface", "polarity", "reading"
JUDGE, HUMAN = "judge:", "human:"
RECORD, VERDICTS = "validation.json", "verdicts.jsonl"
RECORDED = DATA / VERDICTS
"""The verdicts on the embedded benchmark's pairs, recorded with SmolLM2-135M-Instruct as the judge:
``judgesense dataset validate embedded --judge smollm2-135m --out DIR`` and a copy of
``DIR/verdicts.jsonl``."""

Votes = Mapping[str, Vote]
Note = Callable[[str], None]


@dataclass(frozen=True)
class Validation:
    """What the validators said: the record that ``validation.json`` holds, and where it lies."""

    record: dict[str, Any]
    out: Path
    written_back: tuple[Path, ...] = ()


def consensus(votes: Votes) -> tuple[bool | None, float | None]:
    """``valid`` and ``semantic_equivalence_score`` from the votes by validator.

    The judges are one voice, by majority; so are surface, reading, and each person's file. Most
    voices decide; on a tie, people (files and reading) do; None if they are tied too, or silent.
    Polarity has no voice, but its NO is final. The score is the mean of the voices' scores.
    """
    people = [vote for name, vote in votes.items() if name == READING or name.startswith(HUMAN)]
    judges = [vote for name, vote in votes.items() if name.startswith(JUDGE)]
    voices = [*people, *(vote for name, vote in votes.items() if name == SURFACE)]
    if judges:
        scores = [vote.score for vote in judges if vote.score is not None]
        voices.append(Vote(_majority(judges), fmean(scores) if scores else None))
    valid = _majority(voices)
    if valid is None:
        valid = _majority(people)
    if POLARITY in votes and votes[POLARITY].verdict is False:
        valid = False
    said = [vote.score for vote in voices if vote.score is not None]
    return valid, round(fmean(said), 4) if said else None


def _majority(votes: Sequence[Vote]) -> bool | None:
    yes = sum(vote.verdict is True for vote in votes)
    no = sum(vote.verdict is False for vote in votes)
    return None if yes == no else yes > no


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
    """Validate every pair of a dataset; a local Hub folder gets the verdicts written into it.

    Args:
        dataset: a Hub dataset folder, a folder of ``<task>.jsonl``, a Hub id, or None for the
            embedded benchmark. Only a Hub folder on this machine is changed.
        judges: names, Hub ids, paths, functions or loaded judges, each asked the paper's question.
        humans: files with people's verdicts, or with a model's, which then counts as a judge (see
            :mod:`judgesense_dataset.verdicts`).
        out: the folder of the record; by default ``<dataset>.validation`` beside a folder. Given
            again, judging goes on where it stopped.
        per_item: ask the judges about every pair with its item, as the paper did, and not once for
            each pair of wordings.
        revision: of a Hub id.
        write_back: False leaves the dataset as it is; the verdicts then lie in ``out`` alone.
        note: hears what a person should know on the way.

    Raises:
        JudgeSenseError: for what cannot be read, a judge that is not there, or an ``out`` that
            belongs to other pairs; before any model is loaded where it can be known.
    """
    place = _out_folder(dataset, out)
    rows = load_pairs(dataset, revision).to_pylist()
    _check_ids(rows)
    inputs = _inputs(rows, judges, humans, per_item)
    if (earlier := _earlier(place, inputs)) is not None:
        note(f"{place} holds this validation already")
        return Validation(earlier, place, _write_back(dataset, place) if write_back else ())
    votes: dict[str, list[Vote]] = {}
    for path in humans:
        kind = JUDGE if is_by_model(Path(path)) else HUMAN
        votes[kind + Path(path).stem] = file_votes(rows, Path(path))
    votes[POLARITY] = polarity_votes(rows)
    votes[READING] = reading_votes(rows)
    embedder = Embedder()
    votes[SURFACE], measures = surface_votes(rows, embedder)
    described: dict[str, Any] = {SURFACE: embedder.describe()}
    for judge, given in zip(judges, inputs["judges"], strict=True):
        name, vote, about = _ask(judge, given, rows, place, per_item, note)
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
    return Validation(record, place, _write_back(dataset, place) if write_back else ())


def _out_folder(dataset: str | Path | None, out: str | Path | None) -> Path:
    if out is not None:
        return Path(out)
    if dataset is None or not Path(dataset).is_dir():
        raise JudgeSenseError("name a folder for the verdicts with --out DIR")
    folder = Path(dataset).absolute()
    return folder.with_name(folder.name + ".validation")


def _check_ids(rows: Sequence[Mapping[str, Any]]) -> None:
    ids = Counter(row["pair_id"] for row in rows)
    if twice := [pair for pair, times in ids.items() if times > 1]:
        raise JudgeSenseError(
            f"the pair id {twice[0]!r} stands on {ids[twice[0]]} rows; a verdict is kept by pair "
            "id, so every pair needs an id of its own"
        )


def _inputs(
    rows: Sequence[Mapping[str, Any]],
    judges: Sequence[Any],
    humans: Sequence[str | Path],
    per_item: bool,
) -> dict[str, Any]:
    """What fixes the verdicts: the pairs themselves, who is asked, and the files read."""
    digest = hashlib.sha256()
    content = ("pair_id", "task_type", "prompt_a", "prompt_b", "label_map_a", "label_map_b")
    for row in rows:
        digest.update(json.dumps([row[name] for name in content]).encode())
    files = {}
    for path in map(Path, humans):
        if not path.is_file():
            raise JudgeSenseError(f"--human {path}: there is no such file")
        if path.stem in files:
            raise JudgeSenseError(f"two files are called {path.stem}; rename one of them")
        files[path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "pairs": digest.hexdigest(),
        "judges": [_identity(judge) for judge in judges],
        "judges_asked": "every pair with its item" if per_item else "every pair of wordings",
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
    """The record of a validation of these inputs that is finished; None if there is none."""
    path = place / RECORD
    if not path.exists():
        return None
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise JudgeSenseError(f"{path} cannot be read ({error}); remove it") from error
    if record.get("inputs", {}).get("pairs") != inputs["pairs"]:
        raise JudgeSenseError(f"{place} holds the validation of other pairs; name another --out")
    return record if record["inputs"] == inputs and (place / VERDICTS).exists() else None


def _ask(
    judge: Any,
    identity: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    place: Path,
    per_item: bool,
    note: Note,
) -> tuple[str, list[Vote], dict[str, Any]]:
    """One judge's name, votes and description; its log lies in a folder of its own."""
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
    """Mean and standard deviation over the distinct pairs of wordings, beside the paper's."""
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
    """The verdicts, one pair a line, and then the record, whose presence says that all is done."""
    tasks: dict[str, Counter[str]] = defaultdict(Counter)
    lines = []
    for at, row in enumerate(rows):
        line = _line(row["pair_id"], {name: found[at] for name, found in votes.items()})
        what = {True: "valid", False: "invalid", None: "undecided"}[line["valid"]]
        tasks[row["task_type"]][what] += 1
        lines.append(line)
    record["tasks"] = {
        name: {what: counts[what] for what in ("valid", "invalid", "undecided")}
        for name, counts in tasks.items()
    }
    place.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    _replace(place / VERDICTS, text)
    _replace(place / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def _line(pair_id: str, votes: Votes) -> dict[str, Any]:
    valid, score = consensus(votes)
    return {
        "pair_id": pair_id,
        "valid": valid,
        "semantic_equivalence_score": score,
        "validation": {name: vote.to_json() for name, vote in votes.items()},
    }


def _columns(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the verdicts file as a dataset's columns."""
    return {
        "valid": line["valid"],
        "semantic_equivalence_score": line["semantic_equivalence_score"],
        "validation": json.dumps(line["validation"], ensure_ascii=False),
    }


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def load_verdicts(path: Path = RECORDED) -> dict[str, dict[str, Any]]:
    """The verdict columns of a dataset's rows by pair id, from a file that ``validate`` wrote.

    By default the recorded verdicts on the embedded benchmark; empty if there are none.
    """
    if not path.exists():
        return {}
    return {str(row["pair_id"]): _columns(row) for _, row in read_rows(path)}


def _write_back(dataset: str | Path | None, place: Path) -> tuple[Path, ...]:
    """Put the verdicts into a Hub folder on this machine; nothing else is ever changed."""
    if dataset is None or not Path(dataset).is_dir() or not is_hub_folder(Path(dataset)):
        return ()
    verdicts = load_verdicts(place / VERDICTS)
    return write_verdicts(Path(dataset), verdicts)


def _tasks(folder: Path) -> list[str]:
    return [name for name in configs(folder) if name not in (ALL, PROMPTS)]


def _stream(folder: Path, config: str) -> Iterator[dict[str, Any]]:
    for batch in pq.ParquetFile(folder / config_file(config)).iter_batches(batch_size=2000):
        yield from batch.to_pylist()


def write_verdicts(folder: Path, verdicts: Mapping[str, Mapping[str, Any]]) -> tuple[Path, ...]:
    """Write verdict columns into the Parquet files of a Hub folder; the files changed.

    All files are written whole under another name before the first is replaced. The same verdicts
    give the same bytes. Raises JudgeSenseError for a folder that ``judgesense dataset build`` did
    not make.
    """
    tasks = _tasks(folder)
    for name in tasks:
        if configs(folder)[name] != [folder / config_file(name)]:
            raise JudgeSenseError(
                f"{folder}: the config {name!r} does not lie in {config_file(name)}; verdicts are "
                "written into folders that `judgesense dataset build` made"
            )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as working:
        for name in tasks:
            writer = ConfigWriter(Path(working), name, PAIR_ROWS)
            try:
                for row in _stream(folder, name):
                    writer.write({**row, **verdicts[row["pair_id"]]})
            finally:
                writer.close()
        changed = []
        for name in tasks:
            final = folder / config_file(name)
            os.replace(Path(working) / config_file(name), final)
            changed.append(final)
    restate_sizes(folder)
    return tuple(changed)

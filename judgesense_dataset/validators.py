"""The validators: each says whether the two prompts of a pair ask for the same judgement.

Every validator gives each row a :class:`Vote`; :func:`consensus` combines them. A verdict that
depends on the wordings alone is made once for each pair of wordings, not once for each item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from judgesense.benchmark import Benchmark, table_of_prompts
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.files.tables import read_table
from judgesense.log.folder import PAIR_SCHEMA
from judgesense.log.schema import read_log
from judgesense.statistics.kappa import cohen_kappa
from judgesense.tasks import NO_ORDER, Prompt, Task, dump_label_map, load_label_map, prompt_id
from judgesense.text import fill
from judgesense_dataset.embedded import embedded_rows
from judgesense_dataset.polarity import is_identity
from judgesense_dataset.recognition import recognise, wording_of
from judgesense_dataset.surface import Embedder, measure
from judgesense_dataset.templates import DATA, load_templates

PROMPT_FILE = DATA / "validation_prompt.yaml"
READINGS = (DATA / "readings.yaml", DATA / "counterexamples.yaml")
"""Two readings of the project's own wordings, by different readers and methods; each file names
both."""

EQUIVALENCE = Task("equivalence", ("YES", "NO"))
"""The task of a judge as a validator: are these two prompts equivalent?"""

SURFACE, POLARITY = "surface", "polarity"
READING, COUNTEREXAMPLE = "reading", "reading:counterexample"
JUDGE, HUMAN = "judge:", "human:"
"""Names of validators, and how the names of judges and of people's files begin."""

VERDICT_COLUMNS = ("manual_label", "validation_decision", "verdict")
"""Columns of YES and NO in a verdict file; ``validation_decision`` is a model's."""

FEWEST, AGREES = 20, 0.4
"""A judge, or the surface, has a voice if its κ with people is at least 0.4 (moderate agreement)
over at least 20 pairs of wordings."""

_DIGITS = 4
"""Decimals of a score; later ones differ between machines."""

PairRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Vote:
    """A validator's verdict on a pair (None: no verdict), its score in [0, 1], and details."""

    verdict: bool | None
    score: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The vote as in the column ``validation``: the verdict is YES, NO or null."""
        label = {True: "YES", False: "NO", None: None}[self.verdict]
        return {"verdict": label, "score": self.score, **self.details}


def consensus(
    votes: Mapping[str, Vote], trusted: Collection[str] = ()
) -> tuple[bool | None, float | None]:
    """``valid`` and ``semantic_equivalence_score`` from the votes by validator.

    The readings are one voice, each person's file is one, and so are all ``trusted`` judges
    together and a trusted surface: those whose verdicts people's verdicts confirm (`Calibration`).
    Others are recorded, but decide nothing. The majority of voices decides; on a tie, people do;
    None if they are tied too, or silent. The readings' voice is NO where either says NO: then the
    pair is doubtful. Polarity has no voice, but its NO is final. The score is the mean of all
    validators' scores, with the judges as one.

    >>> consensus({"reading": Vote(True, 1.0), "surface": Vote(False, 0.8)})
    (True, 0.9)
    """
    people = _people(votes)
    judges = {name: vote for name, vote in votes.items() if name.startswith(JUDGE)}
    voices = [
        *people,
        *(vote for name, vote in votes.items() if name == SURFACE and name in trusted),
    ]
    if trusted_votes := [vote for name, vote in judges.items() if name in trusted]:
        voices.append(Vote(_majority(trusted_votes)))
    valid = _majority(voices)
    if valid is None:
        valid = _majority(people)
    if POLARITY in votes and votes[POLARITY].verdict is False:
        valid = False
    scored = [*people, *(vote for name, vote in votes.items() if name == SURFACE)]
    if judges:
        scored.append(Vote(None, _mean_score([*judges.values()])))
    score = _mean_score(scored)
    return valid, None if score is None else round(score, _DIGITS)


def _people(votes: Mapping[str, Vote]) -> list[Vote]:
    """People's voices: the readings together, and each file."""
    readings = [vote for name, vote in votes.items() if name in (READING, COUNTEREXAMPLE)]
    voices = [vote for name, vote in votes.items() if name.startswith(HUMAN)]
    if readings:
        verdicts = {vote.verdict for vote in readings} - {None}
        voices.insert(0, Vote(all(verdicts) if verdicts else None, _mean_score(readings)))
    return voices


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a judge's or the surface's verdicts agree with people's on the same two wordings.

    ``n`` counts pairs of wordings with both verdicts, ``yes`` is the share of YES among them.
    """

    n: int
    yes: float | None
    agreement: float | None
    kappa: float | None

    @classmethod
    def of(
        cls, verdicts: Sequence[bool | None], people: Sequence[bool | None], keys: Sequence[object]
    ) -> Calibration:
        """From the verdicts on rows; ``keys`` say which rows have the same two wordings."""
        verdicts_by_key = {
            key: (str(verdict), str(label))
            for key, verdict, label in zip(keys, verdicts, people, strict=True)
            if verdict is not None and label is not None
        }
        if not verdicts_by_key:
            return cls(0, None, None, None)
        pairs = [*verdicts_by_key.values()]
        return cls(
            len(pairs),
            fmean(verdict == "True" for verdict, _ in pairs),
            fmean(verdict == label for verdict, label in pairs),
            cohen_kappa([verdict for verdict, _ in pairs], [label for _, label in pairs]),
        )

    @property
    def is_trusted(self) -> bool:
        """Whether the validator has a voice: a constant answer has a κ of 0 or none."""
        return self.n >= FEWEST and self.kappa is not None and self.kappa >= AGREES

    @property
    def why_not(self) -> str | None:
        """Why it has no voice; None if it has one."""
        if self.is_trusted:
            return None
        if self.n < FEWEST or self.agreement is None:
            return f"people gave verdicts on {self.n} of its pairs of wordings, {FEWEST} are needed"
        if self.yes in (0.0, 1.0):
            return f"it said {'YES' if self.yes else 'NO'} to all {self.n} pairs of wordings"
        return f"its verdicts agree with people's with a κ of {self.kappa or 0:.2f} only"


def _majority(votes: Sequence[Vote]) -> bool | None:
    yes = sum(vote.verdict is True for vote in votes)
    no = sum(vote.verdict is False for vote in votes)
    return None if yes == no else yes > no


def _mean_score(votes: Sequence[Vote]) -> float | None:
    scores = [vote.score for vote in votes if vote.score is not None]
    return fmean(scores) if scores else None


def wordings(rows: Sequence[PairRow]) -> list[tuple[str, str]]:
    """The two wordings of each row: the known templates' texts, else the start of the prompts.

    Rows of one task with one template id share the wording, whatever the item.
    """
    name_of: dict[tuple[str, str], str] = {}

    def text(row: PairRow, side: str) -> str:
        prompt = row[f"prompt_{side}"]
        key = (row["task_type"], row[f"template_{side}"] or prompt)
        if key not in name_of:
            match = recognise(row["task_type"], prompt)
            name_of[key] = (
                match[0].text if match else wording_of(prompt, row["response_being_judged"])
            )
        return name_of[key]

    return [(text(row, "a"), text(row, "b")) for row in rows]


def free_votes(rows: Sequence[PairRow], embedder: Embedder | None) -> dict[str, list[Vote]]:
    """The votes that need no judge, by validator; without surface if there is no embedder."""
    votes = {POLARITY: polarity_votes(rows)}
    for name, file in zip((READING, COUNTEREXAMPLE), READINGS, strict=True):
        votes[name] = reading_votes(rows, file)
    if embedder is not None:
        votes[SURFACE] = surface_votes(rows, embedder)
    return votes


def calibration_rows() -> list[dict[str, Any]]:
    """One embedded pair of each two wordings of the paper's templates: 40, all of them read."""
    rows = {(row["template_a"], row["template_b"]): row for row in embedded_rows()}
    return [*rows.values()]


def calibrate(
    votes: Mapping[str, Sequence[Vote]], keys: Sequence[object]
) -> dict[str, Calibration]:
    """How the votes of each judge, and of the surface, agree with people's, by validator.

    ``keys`` has the two wordings of each row.
    """
    people = [
        consensus({name: ballot[at] for name, ballot in votes.items() if not _is_machine(name)})[0]
        for at in range(len(keys))
    ]
    return {
        name: Calibration.of([vote.verdict for vote in ballot], people, keys)
        for name, ballot in votes.items()
        if _is_machine(name) and name != POLARITY
    }


def _is_machine(name: str) -> bool:
    return name in (SURFACE, POLARITY) or name.startswith(JUDGE)


def surface_votes(rows: Sequence[PairRow], embedder: Embedder) -> list[Vote]:
    """Votes by the cosine of the meanings."""
    pairs = wordings(rows)
    distinct = list(dict.fromkeys(pairs))
    votes = {
        pair: Vote(
            measure_of_pair.verdict,
            round(min(1.0, max(0.0, measure_of_pair.cosine)), _DIGITS),
            {"edit_distance": round(measure_of_pair.edit_distance, _DIGITS)},
        )
        for pair, measure_of_pair in zip(distinct, measure(distinct, embedder), strict=True)
    }
    return [votes[pair] for pair in pairs]


def polarity_votes(rows: Sequence[PairRow]) -> list[Vote]:
    """Compare the label maps: flag an inversion, and vote NO where a map cannot be right.

    A map cannot be right if it contradicts a known wording, or if the two maps lead to different
    labels. The vote has no score: equal labels do not make two wordings equivalent.
    """
    truth = lru_cache(maxsize=4096)(recognise)
    votes = []
    for row in rows:
        if not (row["label_map_a"] and row["label_map_b"]):
            votes.append(Vote(None))
            continue
        maps = [load_label_map(row[f"label_map_{side}"]) for side in "ab"]
        truths = [truth(row["task_type"], row[f"prompt_{side}"]) for side in "ab"]
        is_right = all(
            match is None or match[0].label_map == label_map
            for match, label_map in zip(truths, maps, strict=True)
        )
        is_same = set(maps[0].values()) == set(maps[1].values())
        inverted = is_identity(maps[0]) != is_identity(maps[1])
        votes.append(Vote(is_right and is_same, None, {"inverted": inverted}))
    return votes


def reading_votes(rows: Sequence[PairRow], file: Path = READINGS[0]) -> list[Vote]:
    """The readings that a file records, which exist for pairs of the project's own wordings.

    A reading holds only for the text that was read: a template of the same id with another text
    has none.
    """
    readings, texts = _recorded_readings(file), _read_texts()
    votes = []
    for row in rows:
        ids = (row["template_a"], row["template_b"])
        was_read = all(
            name in texts and texts[name] in row[f"prompt_{side}"]
            for name, side in zip(ids, "ab", strict=True)
        )
        equivalent = readings.get(frozenset(ids)) if was_read else None
        votes.append(Vote(equivalent, None if equivalent is None else float(equivalent)))
    return votes


@lru_cache(maxsize=2)
def _recorded_readings(file: Path) -> dict[frozenset[str], bool]:
    """The readings by the two templates' ids."""
    return {
        frozenset(entry["pair"].split("~")): entry["equivalent"]
        for entry in read_yaml(file)["readings"]
    }


@lru_cache(maxsize=1)
def _read_texts() -> dict[str, str]:
    """The texts that were read, by template id."""
    files = [DATA / "templates.yaml", *sorted((DATA / "paraphrases").glob("*.yaml"))]
    entries = (entry for file in files for entry in load_templates(file).values())
    return {t.template_id: t.text for entry in entries for t in entry.templates}


def file_votes(rows: Sequence[PairRow], path: Path) -> tuple[str, list[Vote]]:
    """The name of a file's validator (a judge's for a model's verdicts), and its verdicts.

    A verdict file is JSONL, CSV or Parquet with ``pair_id`` and one of :data:`VERDICT_COLUMNS`.
    Raises JudgeSenseError, naming file, row and column, for missing columns, a verdict other than
    YES or NO, and two verdicts on one pair; and for a file that covers none of the pairs.
    """
    verdicts: dict[str, bool | None] = {}
    by_model = False
    for record in read_table(path):
        row = record.values
        column = next((name for name in VERDICT_COLUMNS if name in row), None)
        if column is None or "pair_id" not in row:
            raise JudgeSenseError(
                f"{record.place}: a verdict needs the column pair_id and one of "
                f"{', '.join(VERDICT_COLUMNS)}; the row's columns are {', '.join(row)}"
            )
        answer = "" if row[column] is None else str(row[column]).strip().upper()
        if answer not in ("YES", "NO", ""):
            raise JudgeSenseError(
                f"{record.place}, column {column}: must be YES or NO, got {row[column]!r}"
            )
        verdict = {"YES": True, "NO": False}.get(answer)
        if verdicts.setdefault(str(row["pair_id"]), verdict) is not verdict:
            raise JudgeSenseError(
                f"{record.place}: pair {row['pair_id']!r} has two different verdicts in this file; "
                "keep one, or use one file per person"
            )
        by_model = by_model or column == "validation_decision"
    if not any(row["pair_id"] in verdicts for row in rows):
        raise JudgeSenseError(
            f"{path}: none of its pairs (such as {next(iter(verdicts))!r}) is in the dataset, "
            f"whose first pair is {rows[0]['pair_id']!r}"
        )
    answers = [verdicts.get(row["pair_id"]) for row in rows]
    votes = [Vote(verdict, None if verdict is None else float(verdict)) for verdict in answers]
    return (JUDGE if by_model else HUMAN) + path.stem, votes


def judge_votes(
    pairs: Sequence[tuple[str, str]], judge: Any, out: Path, note: Callable[[str], None]
) -> list[Vote]:
    """A judge's answers to the paper's question on pairs of texts, logged under ``out``.

    Equal pairs are asked once. The score is the probability of YES among YES and NO if the judge
    gives log-probabilities, else 1 or 0. An answer that is neither gives no verdict. Rerun with the
    same ``out`` to resume.
    """
    from local_judges.runner import run_judge

    form = read_yaml(PROMPT_FILE)
    label_map = dump_label_map({label: label for label in EQUIVALENCE.labels})
    keys = [prompt_id("\n\n".join(pair)) for pair in pairs]
    prompts = []
    for key, (a, b) in dict(zip(keys, pairs, strict=True)).items():
        parts = {"question": form["question"], "prompt_a": a, "prompt_b": b}
        text = fill(form["layout"], parts)
        names = (EQUIVALENCE.name, key, key, "validation", NO_ORDER, label_map, None)
        prompts.append(Prompt(prompt_id(text), text, *names))
    benchmark = Benchmark(
        tasks={EQUIVALENCE.name: EQUIVALENCE},
        prompts=table_of_prompts(prompts),
        pairs=PAIR_SCHEMA.empty_table(),
        source={"name": "validation"},
    )
    scoring = "options" if "options" in judge.scorings else "generate"
    run_judge(judge, benchmark, out, (scoring,), note=note)
    log = read_log(out).select(["item_id", "raw_decision", "option_logprobs", "raw_text"])
    answers = {row["item_id"]: _vote(row) for row in log.to_pylist()}
    return [answers[key] for key in keys]


def _vote(answer: Mapping[str, Any]) -> Vote:
    verdict = {"YES": True, "NO": False}.get(answer["raw_decision"])
    if answer["option_logprobs"]:
        logprobs = {o["option"]: o["logprob"] for o in answer["option_logprobs"]}
        return Vote(verdict, round(1 / (1 + math.exp(logprobs["NO"] - logprobs["YES"])), _DIGITS))
    if verdict is None:
        return Vote(None, None, {"said": answer["raw_text"] or answer["raw_decision"]})
    return Vote(verdict, float(verdict))

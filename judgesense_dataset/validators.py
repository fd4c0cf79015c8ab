"""The validators: each says whether the two prompts of a pair ask for the same judgement.

Every validator gives each row a :class:`Vote`; :func:`consensus` combines them. A verdict that
depends on the wordings alone is made once for each pair of wordings, not once for each item.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from judgesense.benchmark import Benchmark, table_of_prompts
from judgesense.decisions import read_log
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.run_folder.folder import PAIR_SCHEMA
from judgesense.tasks import NO_ORDER, Prompt, Task, dump_label_map, load_label_map, prompt_id
from judgesense_dataset.polarity import is_identity, known_map
from judgesense_dataset.published import recognise, wording_of
from judgesense_dataset.similarity import Embedder, Measure, measure
from judgesense_dataset.templates import DATA, load_templates
from judgesense_dataset.verdicts import read_verdicts

PROMPT_FILE = DATA / "validation_prompt.yaml"
READINGS = DATA / "readings.yaml"
EQUIVALENCE = Task("equivalence", ("YES", "NO"))
"""The task of a judge as a validator: are these two prompts equivalent?"""

SURFACE, POLARITY, READING = "surface", "polarity", "reading"
JUDGE, HUMAN = "judge:", "human:"
"""Names of validators, and how the names of judges and of people's files begin."""

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
        said = {True: "YES", False: "NO", None: None}[self.verdict]
        return {"verdict": said, "score": self.score, **self.details}


def consensus(votes: Mapping[str, Vote]) -> tuple[bool | None, float | None]:
    """``valid`` and ``semantic_equivalence_score`` from the votes by validator.

    All judges together are one voice, by majority; surface, reading and each person's file are one
    voice each. The majority of voices decides; on a tie, people (files and reading) decide; None if
    they are tied too, or silent. Polarity has no voice, but its NO is final. The score is the mean
    of the voices' scores.

    >>> consensus({"reading": Vote(True, 1.0), "surface": Vote(None, 0.8)})
    (True, 0.9)
    """
    people = [vote for name, vote in votes.items() if name == READING or name.startswith(HUMAN)]
    judges = [vote for name, vote in votes.items() if name.startswith(JUDGE)]
    voices = [*people, *(vote for name, vote in votes.items() if name == SURFACE)]
    if judges:
        voices.append(Vote(_majority(judges), _mean_score(judges)))
    valid = _majority(voices)
    if valid is None:
        valid = _majority(people)
    if POLARITY in votes and votes[POLARITY].verdict is False:
        valid = False
    score = _mean_score(voices)
    return valid, None if score is None else round(score, _DIGITS)


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
    known: dict[tuple[str, str], str] = {}

    def text(row: PairRow, side: str) -> str:
        prompt, template = row[f"prompt_{side}"], row[f"template_{side}"]
        key = (row["task_type"], template or prompt)
        if key not in known:
            found = recognise(row["task_type"], prompt)
            known[key] = (
                found[0].text if found else wording_of(prompt, row["response_being_judged"])
            )
        return known[key]

    return [(text(row, "a"), text(row, "b")) for row in rows]


def surface_votes(
    rows: Sequence[PairRow], embedder: Embedder | None = None
) -> tuple[list[Vote], list[Measure]]:
    """Votes by the cosine of the meanings, and the measures of every distinct wording pair."""
    pairs = wordings(rows)
    distinct = list(dict.fromkeys(pairs))
    measured = dict(zip(distinct, measure(distinct, embedder), strict=True))
    votes = [
        Vote(
            measured[pair].verdict,
            round(min(1.0, max(0.0, measured[pair].cosine)), _DIGITS),
            {"edit_distance": round(measured[pair].edit_distance, _DIGITS)},
        )
        for pair in pairs
    ]
    return votes, [measured[pair] for pair in distinct]


def polarity_votes(rows: Sequence[PairRow]) -> list[Vote]:
    """Compare the label maps: flag an inversion, and vote NO where a map cannot be right.

    A map cannot be right if it contradicts a known wording, or if the two maps lead to different
    labels. The vote has no score: equal labels do not make two wordings equivalent.
    """

    @lru_cache(maxsize=4096)
    def truth(task: str, prompt: str) -> Mapping[str, str] | None:
        return known_map(task, prompt)

    votes = []
    for row in rows:
        maps = [
            load_label_map(row[f"label_map_{side}"]) if row[f"label_map_{side}"] else None
            for side in "ab"
        ]
        if maps[0] is None or maps[1] is None:
            votes.append(Vote(None))
            continue
        meant = [truth(row["task_type"], row[f"prompt_{side}"]) for side in "ab"]
        right = all(m is None or m == given for m, given in zip(meant, maps, strict=True))
        same = set(maps[0].values()) == set(maps[1].values())
        inverted = is_identity(maps[0]) != is_identity(maps[1])
        votes.append(Vote(right and same, None, {"inverted": inverted}))
    return votes


def reading_votes(rows: Sequence[PairRow]) -> list[Vote]:
    """The recorded readings by hand, which exist for pairs of the project's own wordings.

    A reading holds only for the text that was read: a template of the same id with another text
    has none.
    """
    readings, texts = load_readings(), _read_texts()
    votes = []
    for row in rows:
        ids = [row["template_a"], row["template_b"]]
        was_read = all(
            name in texts and texts[name] in row[f"prompt_{side}"]
            for name, side in zip(ids, "ab", strict=True)
        )
        said = readings.get(frozenset(ids)) if was_read else None
        votes.append(Vote(None) if said is None else Vote(said, float(said)))
    return votes


@lru_cache(maxsize=1)
def load_readings(path: Path = READINGS) -> dict[frozenset[str], bool]:
    """The readings by hand: the ids of two templates -> equivalent or not."""
    readings = read_yaml(path)["readings"]
    return {frozenset(entry["pair"].split("~")): entry["equivalent"] for entry in readings}


@lru_cache(maxsize=1)
def _read_texts() -> dict[str, str]:
    """The wordings that were read, by template id."""
    files = [DATA / "templates.yaml", *sorted((DATA / "paraphrases").glob("*.yaml"))]
    return {
        template.template_id: template.text
        for file in files
        for entry in load_templates(file).values()
        for template in entry.templates
    }


def file_votes(rows: Sequence[PairRow], path: Path) -> list[Vote]:
    """A file's verdicts on these pairs.

    Raises JudgeSenseError for a file that cannot be read, or that covers none of the pairs.
    """
    said = read_verdicts(path)
    ids = [row["pair_id"] for row in rows]
    if not any(pair in said for pair in ids):
        raise JudgeSenseError(
            f"{path}: none of its {len(said)} pairs (such as {next(iter(said))!r}) is in the "
            f"dataset, whose first pair is {ids[0]!r}"
        )
    verdicts = [said.get(pair) for pair in ids]
    return [Vote(v, None if v is None else float(v)) for v in verdicts]


def judge_votes(
    rows: Sequence[PairRow],
    judge: Any,
    out: Path,
    note: Callable[[str], None],
    *,
    per_item: bool = False,
) -> list[Vote]:
    """A judge's answers to the paper's question, logged under ``out``.

    The judge is asked once for each pair of wordings, without an item; ``per_item`` asks about
    every pair with its item in both prompts, as the paper did. The score is the probability of YES
    among YES and NO if the judge gives log-probabilities, else 1 or 0. An answer that is neither
    gives no verdict. Rerun with the same ``out`` to resume.
    """
    from local_judges.runner import run_judge

    if per_item:
        pairs = [(str(row["prompt_a"]), str(row["prompt_b"])) for row in rows]
    else:
        pairs = wordings(rows)
    scoring = "options" if "options" in judge.scorings else "generate"
    asked = questions(list(dict.fromkeys(pairs)))
    run_judge(judge, asked, out, (scoring,), note=note)
    log = read_log(out).select(["item_id", "raw_decision", "option_logprobs", "raw_text"])
    answers = {row["item_id"]: _vote(row) for row in log.to_pylist()}
    return [answers[_pair_key(pair)] for pair in pairs]


def _vote(answer: Mapping[str, Any]) -> Vote:
    verdict = {"YES": True, "NO": False}.get(answer["raw_decision"])
    if answer["option_logprobs"]:
        logprobs = {o["option"]: o["logprob"] for o in answer["option_logprobs"]}
        return Vote(verdict, round(1 / (1 + math.exp(logprobs["NO"] - logprobs["YES"])), _DIGITS))
    if verdict is None:
        return Vote(None, None, {"said": answer["raw_text"] or answer["raw_decision"]})
    return Vote(verdict, float(verdict))


def questions(pairs: Sequence[tuple[str, str]]) -> Benchmark:
    """The paper's question about pairs of texts, as prompts to answer YES or NO."""
    asked = read_yaml(PROMPT_FILE)
    label_map = dump_label_map({label: label for label in EQUIVALENCE.labels})

    def prompt(pair: tuple[str, str]) -> Prompt:
        parts = {"question": asked["question"], "prompt_a": pair[0], "prompt_b": pair[1]}
        text, key = ask(asked["layout"], parts), _pair_key(pair)
        return Prompt(
            prompt_id(text), text, EQUIVALENCE.name, key, key, "validation", NO_ORDER, label_map,
            None,
        )  # fmt: skip

    return Benchmark(
        tasks={EQUIVALENCE.name: EQUIVALENCE},
        prompts=table_of_prompts(map(prompt, pairs)),
        pairs=PAIR_SCHEMA.empty_table(),
        source={"name": "validation"},
    )


def _pair_key(pair: tuple[str, str]) -> str:
    return prompt_id("\n\n".join(pair))


def ask(layout: str, parts: Mapping[str, str]) -> str:
    """Fill a layout in one pass, so that braces in a part are not read as placeholders."""
    return re.sub(r"\{(\w+)\}", lambda found: parts[found.group(1)], layout)

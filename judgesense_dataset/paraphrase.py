"""Candidate paraphrases of a task's wordings, from any judge, for a person to accept.

A judge proposes. The filter drops texts that are not new, lose an answer or a placeholder, ask the
opposite, are too far in meaning, or that the judge itself calls different. The rest goes to a
template file in which every candidate waits for a person's ``accepted: true``.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import read_yaml
from judgesense.tasks import Template, prompt_id
from judgesense.text import fill
from judgesense_dataset.polarity import DIRECT, INVERTED, names_answer, polarity_cue
from judgesense_dataset.surface import Embedder, Measure, measure
from judgesense_dataset.templates import DATA, TaskTemplates
from judgesense_dataset.validators import Vote, judge_votes

PROMPT_FILE = DATA / "paraphrase_prompt.yaml"
MAX_TOKENS = 512
_ROUNDS = 5
"""At most this many times the requests that would suffice if every answer were kept."""

_LONGEST = 3.0
_SHORTEST = 0.5
"""A wording of several paragraphs that is shorter than this share has lost some of its rules."""
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")
_FENCE = re.compile(r"\A```\w*\n|\n?```\Z")
_BRACES = re.compile(r"\{[^{}]*\}")
_LABEL = re.compile(r"\A(?:\W*(?:new |paraphrased |rewritten )?instruction\W*:)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A wording that passed the filter: its base template, its measures, the judge's vote."""

    text: str
    base: Template
    measured: Measure
    judged: Vote


@dataclass
class Paraphrases:
    """The candidates kept, the number of requests, and the answers dropped by each rule."""

    judge: str
    asked: int = 0
    candidates: list[Candidate] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def paraphrase(
    entry: TaskTemplates,
    judge: Any,
    n: int = 10,
    *,
    temperature: float = 0.7,
    seed: int = 0,
    note: Callable[[str], None] = lambda _: None,
) -> Paraphrases:
    """Propose up to ``n`` paraphrases of the task's wordings.

    ``judge`` is a name, Hub id, path, function or loaded judge. Named judges propose at this
    ``temperature`` and ``seed``, without a system prompt and with enough tokens for a wording, and
    then validate with their defaults; functions and loaded judges do both as they are. Fewer than
    ``n`` candidates are returned if 5 ``n`` requests do not yield more.

    Raises JudgeSenseError if ``n`` is below 1, or if the judge is unknown, generates no text or
    could exceed its ``max_cost``.
    """
    if n < 1:
        raise JudgeSenseError(f"the number of paraphrases must be at least 1, got {n}")
    from local_judges.registry import load_writer
    from local_judges.runner import require_scorings

    is_name = isinstance(judge, (str, Path))
    # A token per two characters of the longest wording, and some more.
    longest = max(len(template.text) for template in entry.templates)
    options: dict[str, Any] = {
        "max_tokens": min(MAX_TOKENS, 24 + longest // 2),
        "temperature": temperature,
        "seed": seed,
        "system_prompt": "",
    }
    with ExitStack() as loaded:
        writer = load_writer(judge, **(options if is_name else {}))
        if writer is not judge:
            loaded.callback(writer.close)
        require_scorings(writer.name, writer.scorings, ["generate"])
        reader = writer
        if is_name:
            reader = load_writer(judge)
            loaded.callback(reader.close)
        return _collect(entry, writer, reader, n, note)


def _collect(
    entry: TaskTemplates, writer: Any, reader: Any, n: int, note: Callable[[str], None]
) -> Paraphrases:
    from local_judges.protocol import Request
    from local_judges.runner import ask_all

    collected = Paraphrases(writer.name)
    embedder = Embedder()
    texts = {_normal(template.text) for template in entry.templates}
    requests = _requests(entry)
    for _ in range(_ROUNDS):
        batch = [next(requests) for _ in range(n)]
        answers = ask_all(
            writer, [Request(prompt_id(text), text, ()) for _, text in batch], ["generate"]
        )
        collected.asked += len(batch)
        proposals: list[tuple[str, Template]] = []
        for (base, _), answer in zip(batch, answers, strict=True):
            text = _clean(answer.text or "", base.text)
            if answer.truncated:
                collected.dropped["cut off"] += 1
            elif reason := reason_to_drop(text, base, entry, texts):
                collected.dropped[reason] += 1
            else:
                texts.add(_normal(text))
                proposals.append((text, base))
        accepted = _same_meaning(proposals, reader, embedder, collected.dropped, note)
        collected.candidates += accepted[: n - len(collected.candidates)]
        if len(collected.candidates) >= n:
            break
    return collected


def _requests(entry: TaskTemplates) -> Iterator[tuple[Template, str]]:
    """Endless requests: every base wording in every manner, no two alike."""
    form = read_yaml(PROMPT_FILE)
    manners, templates = form["manners"], entry.templates
    for step in count():
        turn, at = divmod(step, len(manners) * len(templates))
        base = templates[(at + at // len(manners)) % len(templates)]
        labels = [raw for raw in base.label_map if names_answer(base.text, raw)]
        words_to_keep = [*labels, *sorted(set(_BRACES.findall(base.text)))]
        parts = {
            "requirements": "; ".join(form["requirements"]),
            "manner": manners[at % len(manners)] + (f", variant {turn + 1}" if turn else ""),
            "keep": f"Keep {', '.join(words_to_keep)} as they are. " if words_to_keep else "",
            "text": base.text,
        }
        yield base, fill(form["layout"], parts)


def _clean(text: str, base: str) -> str:
    """The wording in a reply. One of several paragraphs keeps its lines, so that no rule of a long
    rubric is lost; of other replies only the first paragraph is a wording, the rest is comment."""
    wording = _LABEL.sub("", _FENCE.sub("", text.strip())).strip()
    if "\n\n" in base.strip():
        return wording.strip("\"'“”`")
    return " ".join(wording.split("\n\n")[0].split()).strip("\"'“”*` ")


def reason_to_drop(text: str, base: Template, entry: TaskTemplates, texts: set[str]) -> str | None:
    """The reason to drop a text, from the text alone; None if there is none."""
    if not text:
        return "empty"
    if _normal(text) in texts:
        return "not new"
    if len(text) > _LONGEST * len(base.text):
        return "too long"
    is_long = "\n\n" in base.text.strip()
    if is_long and len(text) < _SHORTEST * len(base.text):
        return "too short"
    if is_long and not {*_NUMBERS.findall(base.text)} <= {*_NUMBERS.findall(text)}:
        return "a number is missing"
    braces = set(_BRACES.findall(text))
    if braces != set(_BRACES.findall(base.text)) or set("{}") & set(_BRACES.sub("", text)):
        return "placeholders changed"
    if any(names_answer(base.text, raw) and not names_answer(text, raw) for raw in base.label_map):
        return "an answer is not named"
    polarity = polarity_cue(text, entry.task.labels)
    if polarity is not None and polarity != (INVERTED if base.inverted else DIRECT):
        return "asks the opposite"
    return None


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _same_meaning(
    texts: Sequence[tuple[str, Template]],
    judge: Any,
    embedder: Embedder,
    dropped: Counter[str],
    note: Callable[[str], None],
) -> list[Candidate]:
    measures = measure([(base.text, text) for text, base in texts], embedder)
    drafts = [(*pair, at) for pair, at in zip(texts, measures, strict=True) if at.verdict]
    if n_far := len(texts) - len(drafts):
        dropped["too far in meaning"] += n_far
    if not drafts:
        return []
    with tempfile.TemporaryDirectory() as log:
        votes = judge_votes([(base.text, text) for text, base, _ in drafts], judge, Path(log), note)
    if n_different := sum(vote.verdict is False for vote in votes):
        dropped["called different by the judge"] += n_different
    return [
        Candidate(*pair, vote)
        for pair, vote in zip(drafts, votes, strict=True)
        if vote.verdict is not False
    ]


def write_candidates(
    path: Path, entry: TaskTemplates, paraphrases: Paraphrases, *, unread: bool = False
) -> None:
    """Write a template file: the task's own wordings, and each candidate with its measures.

    ``load_templates`` reads a candidate once a person has changed ``accepted: null`` to
    ``accepted: true``; with ``unread``, the header says that a check also uses candidates that
    nobody has read. Raises JudgeSenseError if the file exists: it may hold such decisions.
    """
    if path.exists():
        raise JudgeSenseError(f"{path} exists and may hold accepted wordings; choose another --out")
    task, templates = entry.task, entry.templates
    ids = {template.template_id for template in templates}
    names = (name for n in count(1) if (name := f"{task.name}-p{n}") not in ids)
    proposed = [
        replace(candidate.base, template_id=name, text=candidate.text)
        for name, candidate in zip(names, paraphrases.candidates, strict=False)
    ]
    content = TaskTemplates(task, (*templates, *proposed)).to_dict()
    for record, candidate in zip(
        content["templates"][len(templates) :], paraphrases.candidates, strict=True
    ):
        vote = candidate.judged
        measures: dict[str, Any] = {
            "from": candidate.base.template_id,
            "edit_distance": round(candidate.measured.edit_distance, 3),
            "cosine": round(candidate.measured.cosine, 3),
            "judge": {True: "YES", False: "NO", None: "unclear"}[vote.verdict],
        }
        if vote.score is not None:
            measures["p_equivalent"] = round(vote.score, 3)
        record |= {"accepted": None, "measured": measures}
    use = (
        "A check uses each candidate unless you write accepted: false under it."
        if unread
        else "Read each candidate; write accepted: true to use it, or accepted: false."
    )
    header = (
        f"# Candidate paraphrases. {use}\n# Proposed and checked by {paraphrases.judge}. The "
        "cosine and the edit distance are to the\n# wording named by `from`, whose answers keep "
        "their meaning.\n\n"
    )
    body = yaml.safe_dump(
        {"tasks": {task.name: content}}, sort_keys=False, allow_unicode=True, width=100
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, header + body)

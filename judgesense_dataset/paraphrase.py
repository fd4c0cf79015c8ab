"""Candidate paraphrases of a task's wordings, from any judge, for a person to accept.

A judge proposes; the filter drops what is no new wording, loses an answer or a placeholder, asks
the other way round, is too far in meaning, or is called different by the judge itself. What is
left goes to a template file in which every candidate waits for a person's ``accepted: true``.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Template, prompt_id
from judgesense_dataset.polarity import DIRECT, INVERTED, cue
from judgesense_dataset.similarity import Embedder, Measure, measure
from judgesense_dataset.templates import DATA, TaskTemplates
from judgesense_dataset.validators import Vote, ask, judge_votes

PROMPT_FILE = DATA / "paraphrase_prompt.yaml"
MAX_TOKENS = 512
_ROUNDS = 5
"""At most so many times the requests that would do if every answer were kept."""

_LONGEST = 3.0
_BRACES = re.compile(r"\{\w+\}")
_LABEL = re.compile(r"\A(?:\W*(?:new |paraphrased |rewritten )?instruction\W*:)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A wording that passed the filter: the template it comes from, its measures, the vote."""

    text: str
    base: Template
    measured: Measure
    judged: Vote


@dataclass
class Paraphrases:
    """What came of asking: the candidates kept, and how many answers fell to which rule."""

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
    """Up to ``n`` candidate paraphrases of the task's wordings.

    ``judge`` is a name, Hub id, path, function or loaded judge. Named judges propose at this
    ``temperature`` and ``seed``, without a system prompt and with as many tokens as a wording can
    need, and then validate with their defaults; functions and loaded judges do both as they are.
    Fewer than ``n`` are returned when five times as many requests have not given more.

    Raises JudgeSenseError if ``n`` is below 1, the judge is not there, gives no text, or could
    exceed its ``max_cost``.
    """
    if n < 1:
        raise JudgeSenseError(f"the number of paraphrases must be at least 1, got {n}")
    from local_judges.registry import load_judge

    named = isinstance(judge, (str, Path))
    options: dict[str, Any] = {}
    if named:
        options = {
            "max_tokens": _tokens_for(entry),
            "temperature": temperature,
            "seed": seed,
            "system_prompt": "",
        }
    writer = load_judge(judge, **options)
    try:
        if "generate" not in writer.scorings:
            raise JudgeSenseError(f"judge {writer.name} gives no text, so it cannot paraphrase")
        found = Paraphrases(writer.name)
        reader = load_judge(judge) if named else writer
        try:
            _collect(entry, writer, reader, n, found, note)
        finally:
            if reader is not writer:
                reader.close()
    finally:
        if writer is not judge:
            writer.close()
    return found


def _tokens_for(entry: TaskTemplates) -> int:
    """A cap on a proposal: a token for every two characters of the longest wording, and some."""
    longest = max(len(template.text) for template in entry.templates)
    return min(MAX_TOKENS, 24 + longest // 2)


def _collect(
    entry: TaskTemplates,
    writer: Any,
    reader: Any,
    n: int,
    found: Paraphrases,
    note: Callable[[str], None],
) -> None:
    embedder = Embedder()
    seen = {_normal(template.text) for template in entry.templates}
    requests = _requests(entry)
    for _ in range(_ROUNDS):
        batch = [next(requests) for _ in range(n)]
        answers = generate(writer, [text for _, text in batch])
        found.asked += len(batch)
        fresh: list[tuple[str, Template]] = []
        for (base, _), answer in zip(batch, answers, strict=True):
            text = _clean(answer or "")
            reason = _refused(text, base, entry, seen)
            if reason:
                found.dropped[reason] += 1
            else:
                seen.add(_normal(text))
                fresh.append((text, base))
        for candidate in _judged(fresh, reader, embedder, found.dropped, note):
            if len(found.candidates) < n:
                found.candidates.append(candidate)
        if len(found.candidates) >= n:
            return


def _requests(entry: TaskTemplates) -> Iterator[tuple[Template, str]]:
    """Every base wording in every manner, no two alike, without end."""
    asked = yaml.safe_load(PROMPT_FILE.read_text(encoding="utf-8"))
    manners, templates = asked["manners"], entry.templates
    requirements = "; ".join(asked["requirements"])
    step = 0
    while True:
        turn, at = divmod(step, len(manners) * len(templates))
        base = templates[(at + at // len(manners)) % len(templates)]
        labels = [raw for raw in base.label_map if _names(base.text, raw)]
        kept = [*labels, *sorted(set(_BRACES.findall(base.text)))]
        parts = {
            "requirements": requirements,
            "manner": manners[at % len(manners)] + (f", variant {turn + 1}" if turn else ""),
            "keep": f"Keep {', '.join(kept)} as they are. " if kept else "",
            "text": base.text,
        }
        yield base, ask(asked["layout"], parts)
        step += 1


def generate(judge: Any, texts: Sequence[str]) -> list[str | None]:
    """The judge's text to each message, in their order; None where it gave none.

    Raises JudgeSenseError, before anything is asked, if they could exceed its ``max_cost``.
    """
    from local_judges.protocol import Request
    from local_judges.runner import ask_all

    requests = [Request(prompt_id(text), text, ()) for text in texts]
    return [answer.text for answer in ask_all(judge, requests, ["generate"])]


def _clean(text: str) -> str:
    """The answer without a label before it, quotation marks around it, or what follows it."""
    first = _LABEL.sub("", text.strip()).strip().split("\n\n")[0]
    return " ".join(first.split()).strip("\"'“”*` ")


def _refused(text: str, base: Template, entry: TaskTemplates, seen: set[str]) -> str | None:
    """Why a text is no candidate, from the text alone; None if it may be one."""
    if not text:
        return "empty"
    if _normal(text) in seen:
        return "not new"
    if len(text) > _LONGEST * len(base.text):
        return "too long"
    if set(_BRACES.findall(text)) != set(_BRACES.findall(base.text)) or set("{}") & set(
        _BRACES.sub("", text)
    ):
        return "placeholders changed"
    if any(_names(base.text, raw) and not _names(text, raw) for raw in base.label_map):
        return "an answer is not named"
    said = cue(text, entry.task.labels)
    if said is not None and said != (INVERTED if base.inverted else DIRECT):
        return "asks the other way round"
    return None


def _names(text: str, raw: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(raw)}(?!\w)", text) is not None


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _judged(
    texts: Sequence[tuple[str, Template]],
    judge: Any,
    embedder: Embedder,
    dropped: Counter[str],
    note: Callable[[str], None],
) -> list[Candidate]:
    """The texts that keep the meaning, by the embedding's cosine and by the judge."""
    measured = measure([(base.text, text) for text, base in texts], embedder)
    near = []
    for (text, base), found in zip(texts, measured, strict=True):
        if found.verdict:
            near.append((text, base, found))
        else:
            dropped["too far in meaning"] += 1
    if not near:
        return []
    rows: list[Mapping[str, Any]] = [
        {"pair_id": str(at), "prompt_a": base.text, "prompt_b": text}
        for at, (text, base, _) in enumerate(near)
    ]
    with tempfile.TemporaryDirectory() as log:
        votes = judge_votes(rows, judge, Path(log), note, per_item=True)
    kept = []
    for (text, base, found), vote in zip(near, votes, strict=True):
        if vote.verdict is False:
            dropped["called different by the judge"] += 1
        else:
            kept.append(Candidate(text, base, found, vote))
    return kept


def write_candidates(path: Path, entry: TaskTemplates, found: Paraphrases) -> None:
    """Write a template file: the task's own wordings, and each candidate with its measures.

    ``load_templates`` reads a candidate once ``accepted: null`` has become ``accepted: true``.
    Raises JudgeSenseError if the file exists: it may hold what a person has accepted.
    """
    if path.exists():
        raise JudgeSenseError(f"{path} exists and may hold accepted wordings; name another --out")
    task = entry.task
    lines = [
        "# Candidate paraphrases. Read each one; write accepted: true to use it, false to leave it",
        f"# out. Proposed and checked by {found.judge}; cosine and edit distance are to the",
        "# wording named by `from`. The answers mean what they mean there.",
        "",
        "tasks:",
        f"  {_quoted(task.name)}:",
        f"    labels: [{', '.join(map(_quoted, task.labels))}]",
    ]
    if task.ordinal:
        lines.append("    ordinal: true")
    if task.options:
        lines.append(f"    options: {_flow(task.options)}")
    lines += [f"    layout: {_quoted(entry.templates[0].layout)}", "    templates:"]
    shared = entry.templates[0].layout
    for template in entry.templates:
        lines += _entry(template.template_id, template.text, template, shared)
    taken = {template.template_id for template in entry.templates}
    number = 0
    for candidate in found.candidates:
        number += 1
        while f"{task.name}-p{number}" in taken:
            number += 1
        judged = {True: "YES", False: "NO", None: "unclear"}[candidate.judged.verdict]
        measured = {
            "from": candidate.base.template_id,
            "edit_distance": f"{candidate.measured.edit_distance:.3f}",
            "cosine": f"{candidate.measured.cosine:.3f}",
            "judge": judged,
        }
        if candidate.judged.score is not None:
            measured["p_equivalent"] = f"{candidate.judged.score:.3f}"
        lines += _entry(f"{task.name}-p{number}", candidate.text, candidate.base, shared)
        lines += ["        accepted: null", f"        measured: {_flow(measured)}"]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    temporary.replace(path)


def _entry(name: str, text: str, like: Template, shared: str) -> list[str]:
    lines = [f"      - id: {_quoted(name)}", f"        text: {_quoted(text)}"]
    if any(raw != label for raw, label in like.label_map.items()):
        lines.append(f"        label_map: {_flow(like.label_map)}")
    if like.layout != shared:
        lines.append(f"        layout: {_quoted(like.layout)}")
    return lines


def _flow(mapping: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_quoted(k)}: {_quoted(v)}" for k, v in mapping.items()) + "}"


def _quoted(text: str) -> str:
    """A text as YAML, which reads JSON strings; plain words stay bare."""
    if re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        return text
    return json.dumps(text, ensure_ascii=False)

"""Harmless edits of an output, which should change no verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from judgesense_dataset.damage_rules import SHORTEST, WORD, Output, Rule, pick, put, rules


def _whitespace(output: Output, rng: np.random.Generator) -> str | None:
    if output.is_json:
        return json.dumps(json.loads(output.text), ensure_ascii=False, indent=2)
    return re.sub(r"(?<=[.!?]) (?=\S)", "  ", output.text) + "\n"


def _emphasis(output: Output, rng: np.random.Generator) -> str | None:
    words = [m for m in WORD.finditer(output.text) if len(m.group()) > 5 and output.free(*m.span())]
    if output.is_json or "*" in output.text or not words:
        return None
    word = words[int(rng.integers(len(words)))]
    return put(output.text, *word.span(), f"**{word.group()}**")


def _spelling(output: Output, rng: np.random.Generator) -> str | None:
    respelling = {**rules().spellings, **{v: k for k, v in rules().spellings.items()}}
    pattern = rf"\b(?:{'|'.join(respelling)})\b"
    return _respell(output, pattern, lambda word: respelling[word])


_FULL = r"\b(?:do|does|did|is|are|was|were|has|have|had|would|should|could) not\b|\bcannot\b"
_SHORT = r"\b(?:do|does|did|is|are|was|were|has|have|had|would|should|could)n['’]t\b(?! \w+ ?\?)"


def _contraction(output: Output, rng: np.random.Generator) -> str | None:
    if re.search(_FULL, output.text):
        return _respell(output, _FULL, lambda w: "can't" if w == "cannot" else f"{w.split()[0]}n't")
    return _respell(output, _SHORT, lambda word: f"{word[:-3]} not")


def _respell(output: Output, pattern: str, other: Callable[[str], str]) -> str:
    return re.sub(
        pattern,
        lambda found: other(found.group()) if output.free(*found.span()) else found.group(),
        output.text,
    )


def _opener(output: Output, rng: np.random.Generator) -> str | None:
    if output.is_json or len(WORD.findall(output.text)) < SHORTEST:
        return None
    return f"{pick(rules().openers, rng)}{output.text}"


def _bullets(output: Output, rng: np.random.Generator) -> str | None:
    if re.search(r"^\s*[-*] \S", output.text, re.M):
        marks = {"-": "*", "*": "-"}
        return re.sub(
            r"^(\s*)([-*]) (?=\S)", lambda m: f"{m[1]}{marks[m[2]]} ", output.text, flags=re.M
        )
    return re.sub(r"^(\s*\d+)\. (?=\S)", r"\1) ", output.text, flags=re.M)


HARMLESS_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "whitespace": _whitespace,
        "emphasis": _emphasis,
        "spelling": _spelling,
        "contraction": _contraction,
        "opener": _opener,
        "bullets": _bullets,
    }
)
"""The rule of each kind."""

"""The encoding of a table of text."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

_SCRIPTS = (
    ("cp932", "\u3040-\u30ff", 0.2),
    ("euc_jp", "\u3040-\u30ff", 0.2),
    ("cp949", "\uac00-\ud7a3", 0.9),
    ("gb18030", "", 0.9),
    ("big5", "", 0.9),
    ("cp1251", "А-яЁёІіЇїЄєҐґ", 0.95),
    ("cp1252", "À-ÿŒœŠšŽž", 0.95),
)
"""Encoding -> the letters of its script, and their least share of all that are not ASCII: as
another encoding the same bytes are other letters. Of Chinese these are the common characters."""


def encoding_of(path: Path) -> str:
    """The encoding of a table: UTF-8, UTF-16, or what spreadsheets write where they are used.

    A CSV file that is mostly UTF-8 is a damaged one. Otherwise few bytes in a row are cp1252, of
    western Europe, and many are of another script, if most of its letters are.
    """
    with path.open("rb") as source:
        start = source.read(512)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        if 20 * start.count(0) > len(start):
            low, high = start[1::2].count(0), start[::2].count(0)
            return "utf-16-le" if low > high else "utf-16-be"
        if path.suffix.lower() not in (".csv", ".tsv"):
            return "utf-8-sig"
        content = start + source.read()
    try:
        content.decode()
    except UnicodeDecodeError:
        runs = re.findall(rb"[\x80-\xff]+", content)
        whole = content.decode(errors="ignore").encode()
        whole = whole.translate(None, bytes(range(128)))
        few = not whole and 4 * sum(len(run) > 1 for run in runs) < len(runs)
        if few or 2 * len(whole) < sum(map(len, runs)):
            encoding = "cp1252" if few else _script(content) or "utf-8-sig"
            # Between letters these are Polish ł, ą and ż, not ³, ¹ and ¿.
            is_polish = re.search(rb"[a-z][\xb3\xb9\xbf]+[a-z]", content)
            return "cp1250" if encoding == "cp1252" and is_polish else encoding
    return "utf-8-sig"


def _script(content: bytes) -> str | None:
    """The encoding of another script in which a text is plausible; None if it is in none."""
    for encoding, script, least in _SCRIPTS:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        letters = [char for char in text[:100_000] if char.isalpha() and not char.isascii()]
        if script:
            usual = len(re.findall(f"[{script}]", "".join(letters)))
        else:
            usual = sum(_is_common(char, encoding) for char in letters)
        # Accents stand inside words of other letters, another script does not.
        beside = len(re.findall(r"[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][A-Za-z]", text[:100_000]))
        is_latin = 2 * beside > len(letters)
        if letters and usual >= least * len(letters) and is_latin == (encoding == "cp1252"):
            return encoding
    return None


def _is_common(char: str, encoding: str) -> bool:
    """Whether a Chinese character is one of the few thousand that texts are made of."""
    try:
        code = char.encode("gb2312" if encoding == "gb18030" else encoding)
    except UnicodeEncodeError:
        return False
    return code[0] <= (0xD7 if encoding == "gb18030" else 0xC6)

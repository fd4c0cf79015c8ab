"""Ablation: a text without each of its sentences, and a bound that one added sentence cannot pass.

A judge scores a text by the log-odds of the verdict that the text's author wants (on a scale, by
the expected score). The *ablations* of a text are the texts that lack one of its sentences; its
*bound* is the lowest of their scores, and decides the verdict in place of the text's own score.

**What it proves.** Let T' be a text T with one sentence added at any place: `sentences` of T' are
those of T and one more. Without that one, T' is T, so T is among the ablations of T', and

    bound(T') = min over the ablations of T' of score  <=  score(T).

Let T' be T with one sentence rewritten, which is also what becomes of words that join a sentence of
T instead of standing by themselves. Without that one, T' and T are the same ablation, so

    bound(T') <= max over the ablations of T of score.

Both hold for every judge and text, as long as both sides see T in the same form: the judge is
always shown one sentence a line. So score(T) is a *ceiling* against an added sentence, and the
highest of score(T) and the scores of its ablations one against a rewritten sentence too. A verdict
is certified against what a ceiling is for

- on one text (pass or fail, or a scale), if the ceiling gives the same verdict as the bound;
- in a choice between two, each judged alone, if the loser's ceiling is below the winner's bound.

It cannot be changed by one such sentence in favour of the text that holds it. With ``longest`` k,
runs of up to k sentences are left out, and the same holds for a run of up to k sentences that is
added or takes the place of another. A sentence inside another one makes three of it: k = 3 covers
that.

**What it does not claim.** That a certified verdict is right; that it withstands more sentences;
that nobody can make a text *lose*. A text of one sentence has no ablation: it is judged as it is,
so its win is not certified, and its loss against an added sentence only. So is one of up to k
sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from judgesense.recipes.recipe import Recipe, RecipeVerdicts
from judgesense.statistics.arrays import Floats
from judgesense.statistics.calibration import calibrated, expected_score

CERTIFIED = "certified"
"""No single added or rewritten sentence changes the verdict in favour of the text that holds it."""
ADDED = "certified if added"
"""No sentence that is added by itself does; one that joins a sentence of the text may."""
TOO_SHORT = "too short"
"""Not certified: the winner has one sentence (or no more than the longest run left out)."""
UNCERTIFIED = "may change"
"""Not certified: one sentence may change the verdict."""

# Scripts written without spaces need none after their full stops.
_END = re.compile(
    r"[.!?…]+[)\]}\"'”’»*_`]*[\s\u200b\ufeff]+"
    r"|[。！？｡؟۔।॥։።။។]+[)\]}\"'”’»」』）】》*_`]*[\s\u200b\ufeff]*"
)
# Without those that also end a sentence, such as "no": the sentence after them would join it.
_ABBREVIATION = re.compile(
    r"(?:(?<!\w)(?:\w\.)+\w|\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|cf|approx|fig|eq|inc|ltd|corp"
    r"|dept|vol|pp|bzw|usw|vgl|nr|abb|bspw|evtl|ggf|sog|mme|mlle|sra|srta)|^\W*\d{1,3})$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the white space around them; a line break ends one.

    Full stops of the Latin, Chinese, Japanese, Arabic, Urdu, Indic, Armenian, Ethiopic, Burmese and
    Khmer scripts are known. In a script without any (Thai), a line is a sentence.

    >>> sentences('Dr. Li agrees. "Is it so?" Yes!')
    ['Dr. Li agrees.', '"Is it so?"', 'Yes!']
    >>> sentences("这是真的。他同意！")
    ['这是真的。', '他同意！']
    """
    parts = []
    for line in text.splitlines():
        start = 0
        for end in _END.finditer(line):
            # An abbreviation is short: a long sentence is not read again at each of its dots.
            before = line[max(start, end.start() - 12) : end.start()]
            if line[end.start()] != "." or not _ABBREVIATION.search(before):
                parts.append(line[start : end.end()])
                start = end.end()
        parts.append(line[start:])
    return [part for each in parts if (part := each.strip(" \t\r\n\v\f\u200b\ufeff\u3000\xa0"))]


def ablations(text: str, longest: int = 1) -> list[str]:
    """The text, one sentence a line, and then the texts that lack one sentence.

    With ``longest`` k, also those that lack a run of 2 to k sentences, but not all. A text of one
    sentence is alone.

    >>> ablations("A. B. C.")
    ['A.\\nB.\\nC.', 'B.\\nC.', 'A.\\nC.', 'A.\\nB.']
    """
    parts = sentences(text)
    runs = [
        parts[:start] + parts[start + length :]
        for length in range(1, min(longest, len(parts) - 1) + 1)
        for start in range(len(parts) - length + 1)
    ]
    return ["\n".join(each) for each in (parts, *runs)]


def bounded(
    recipe: Recipe, answers: Sequence[Sequence[Floats]], wins: str = ""
) -> tuple[RecipeVerdicts, str | None]:
    """The verdict that the bounds give on one item, and whether it is certified.

    Args:
        recipe: an ablated recipe, whose wordings and orders the answers are to.
        answers: by wording and order the log-probabilities of the labels as shown, shape
            (texts, L), for the texts of `ablations`.
        wins: the label that the text's author wants; "" for a choice between two, where each order
            shows one option and the first label speaks for it.

    Returns:
        The verdict, and `CERTIFIED`, `ADDED`, `TOO_SHORT` or `UNCERTIFIED`; None where nothing was
        read.
    """
    texts_as_is = np.stack([np.stack([texts[0] for texts in row]) for row in answers])[None]
    lowest, highest = texts_as_is.copy(), texts_as_is.copy()
    for w, row in enumerate(answers):
        for o, texts in enumerate(row):
            # The bound of each wording by itself: the mean of bounds is a bound of the mean.
            scores = _scores(recipe, recipe.wordings[w], texts, wins)
            if np.isnan(scores).any():
                lowest[0, w, o] = np.nan
            elif len(scores) > 1:
                lowest[0, w, o] = texts[1 + int(np.argmin(scores[1:]))]
                highest[0, w, o] = texts[int(np.argmax(scores))]
    verdict = recipe.verdicts(lowest)
    code = int(verdict.codes[0])
    if code < 0:
        return verdict, None
    # So many texts has one that a run of any length leaves something of.
    enough = 1 + recipe.ablated * (recipe.ablated + 3) // 2
    long = [all(len(row[o]) >= enough for row in answers) for o in range(len(recipe.orders))]
    winner = 0 if wins else recipe.orders.index(("AB", "BA")[code])
    is_won = not wins or recipe.labels[code] == wins
    if is_won and not long[winner]:
        return verdict, TOO_SHORT
    if not wins:
        texts_as_is[:, :, winner] = highest[:, :, winner] = lowest[:, :, winner]
    elif is_won:
        return verdict, CERTIFIED
    if all(long) and recipe.verdicts(highest).codes[0] == code:
        return verdict, CERTIFIED
    return verdict, ADDED if recipe.verdicts(texts_as_is).codes[0] == code else UNCERTIFIED


def _scores(recipe: Recipe, wording: str, texts: Floats, wins: str) -> Floats:
    """How much each answer favours the text, shape (texts,)."""
    labels = recipe.labels
    if recipe.read == "expected score":
        if offsets := recipe.offsets_for(wording):
            texts = calibrated(texts, [offsets[label] for label in labels])
        scale = np.array(labels, dtype=np.float64)
        sign = 1.0 if float(wins) == scale.max() else -1.0
        return sign * expected_score(texts, scale)
    favoured = labels.index(wins) if wins else 0
    # Offsets shift all of a wording's answers alike, so the lowest stays the lowest.
    texts = np.maximum(texts, -700.0)
    return np.asarray(texts[:, favoured] - texts[:, 1 - favoured], dtype=np.float64)

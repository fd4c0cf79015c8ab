"""The verdicts of recipes as answers, so that the same checks measure a judge with and without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers
from judgesense.log.array import NOT_ASKED, AnswerArray, Wording
from judgesense.log.pairs import pairs_of
from judgesense.log.rows import Log, with_variants
from judgesense.log.schema import REWORDING, VARIANT_CLASSES
from judgesense.log.view import answers_of
from judgesense.statistics.arrays import Bools, Codes
from judgesense.tasks import UNCLEAR, UNDECIDED


@dataclass(frozen=True)
class Unit:
    """What gives one verdict per item: a wording or a panel of wordings, with a recipe.

    ``codes`` are verdicts in the items' own order, shape (n,), -1 where undecided and -2 where not
    asked. ``orders`` are the option orders that the verdict holds for: one as asked, both if
    averaged. ``tied`` are the items whose two best labels are equally probable, so that the verdict
    is the first; None for votes.
    """

    wording: Wording
    orders: tuple[str, ...]
    codes: Codes
    tied: Bools | None = None


def answers_from(array: AnswerArray, units: Iterable[Unit]) -> Answers | None:
    """The verdicts of units as answers, which the checks take; None without any.

    Units of contrast wordings ask another question than the others.
    """
    pairs = ((unit, order) for unit in units for order in unit.orders)
    parts = [
        (unit.wording, order, items, unit.codes[items])
        for unit, order in pairs
        if len(items := np.flatnonzero(unit.codes != NOT_ASKED))
    ]
    if not parts:
        return None
    wordings, by_part, places, _ = zip(*parts, strict=True)
    names = [name for wording in wordings for name in wording.raw]
    # The words that are no verdict come first, as in a log that is read from a file.
    words = list(dict.fromkeys([*UNDECIDED, *names, *array.labels]))
    code_of = {word: code for code, word in enumerate(words)}
    size = np.array([len(items) for items in places])

    def coded(values: Iterable[str]) -> tuple[Codes, list[str]]:
        texts = list(values)
        distinct = list(dict.fromkeys(texts))
        return np.repeat([distinct.index(text) for text in texts], size), distinct

    columns = [_as_shown(array, part, code_of) for part in parts]
    raw, decision, gold = (np.concatenate(column) for column in zip(*columns, strict=True))
    # Numbered as they appear, as in a log that is read from a file: sums then round alike.
    item, items_at = _by_appearance(np.concatenate(places))
    cluster, _ = _by_appearance(array.clusters[np.concatenate(places)])
    base, bases = coded(wording.template for wording in wordings)
    variant, variants = coded(wording.variant or REWORDING for wording in wordings)
    template, templates = with_variants(base, bases, variant, variants)
    order_code, orders = coded(by_part)
    prompt = (item * len(orders) + order_code) * len(templates) + template
    distinct, stimulus = np.unique(prompt, return_inverse=True)
    zeros, task = np.zeros(len(item), np.int64), array.task
    log = Log(
        table=pa.table({"prompt_id": pa.nulls(len(item), pa.string())}),
        judge=zeros,
        judges=[""],
        task=zeros,
        tasks=[task.name],
        scoring=zeros,
        scorings=[array.scoring],
        order=order_code,
        orders=orders,
        template=template,
        templates=templates,
        item=item,
        items=array.items[items_at].tolist(),
        cluster=cluster,
        repeat=zeros,
        raw=raw,
        decision=decision,
        gold=gold,
        labels=np.array(words, dtype=object),
        stimulus=stimulus,
        n_stimuli=len(distinct),
        variant=variant,
        variants=variants,
        variant_class=np.repeat(
            [VARIANT_CLASSES.index(wording.variant_class) for wording in wordings], size
        ),
        base=base,
        bases=bases,
    )
    return answers_of(log, task, pairs_of(log, 0), np.arange(len(item)))


def _as_shown(
    array: AnswerArray, part: tuple[Wording, str, Codes, Codes], code_of: Mapping[str, int]
) -> tuple[Codes, Codes, Codes]:
    """The raw answers, decisions and gold labels of a unit in an order, as codes of words."""
    wording, order, items, verdicts = part
    # In the order BA, the second label stands for the first; -1 stays what it is.
    as_shown = np.array([*range(len(array.labels)), -1])
    if order == "BA":
        as_shown[:2] = [1, 0]
    gold, verdict = as_shown[array.gold[items]], as_shown[verdicts]
    labels = np.array([code_of[label] for label in (*array.labels, UNCLEAR)])
    answers = np.array([code_of[answer] for answer in (*(wording.raw or array.labels), UNCLEAR)])
    return answers[verdict], labels[verdict], np.where(gold >= 0, labels[gold], -1)


def _by_appearance(codes: Codes) -> tuple[Codes, Codes]:
    """Codes from 0 on in the order in which they first appear, and what each stands for."""
    distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[inverse], distinct[order]

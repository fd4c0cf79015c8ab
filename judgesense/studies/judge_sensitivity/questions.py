"""The questions that the paper leaves open, answered from a log or from further runs.

A further run has the same items and pairs of wordings as the main one, and is compared with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np

from judgesense.statistics.agreement import jss
from judgesense.statistics.arrays import Words
from judgesense.statistics.comparison import compare_jss, holm
from judgesense.statistics.flips import consensus, flip_sources
from judgesense.statistics.variance import label_components
from judgesense.studies.common.study import Record, TableOf, Tables, table
from judgesense.studies.judge_sensitivity.grid import LANGUAGE
from judgesense.studies.judge_sensitivity.runs import JudgedCase
from judgesense.studies.judge_sensitivity.tables import Sensitivity, difference
from judgesense.tasks import ERROR, NO_ORDER, ORDERS, UNDECIDED
from judgesense.text import join, number, percent, span

Row = Mapping[str, Any]

_ENDS = ("ci_low", "ci_high")


def _interval(sources: Any, name: str) -> dict[str, float | None]:
    """The interval of a difference of shares, cut to [-1, 1]."""
    ends = {f"{name}_{end}": getattr(sources, f"{name}_{end}") for end in _ENDS}
    return {key: None if end is None else max(-1.0, min(1.0, end)) for key, end in ends.items()}


def _flip_sources(case: JudgedCase) -> Any:
    answers = case.stream.answers(repeats=True)
    return flip_sources(
        answers.label, answers.item, answers.template, answers.order,
        cluster_ids=answers.cluster, options=case.stream.task.labels[:2],
    )  # fmt: skip


@table(
    "orders",
    "Position against wording",
    "Verdicts follow the item. Flips: how often two prompts on one item differ if only the wording "
    "changes, only the option order, or both, over all pairs of wordings, every item counting "
    "alike; so `flips, reworded` is not 1 - JSS, which covers the pairs of the run. `flips, both` "
    "is a sum: `wording` is what rewording adds to a swap; `position` what a swap adds to "
    "rewording; `together` what either does alone; `asked again` the flips of the same prompt "
    "(undefined without repeats). 95% intervals over clusters (the item, or what items share). A "
    "part can be slightly negative.",
    flips_reworded="flips, reworded", flips_swapped="flips, swapped", flips_both="flips, both",
)  # fmt: skip
def orders(study: Sensitivity) -> Iterator[Record]:
    """Do flips come from the wording or from the place of an option (section 7)?

    Only comparative tasks asked in both orders.
    """
    for case in study.main.cases:
        if case.comparative and set(case.answers.order.tolist()) == set(ORDERS):
            sources = _flip_sources(case)
            yield {
                **case.ids, "jss": case.mapped["jss"],
                "flips_reworded": difference(sources.flip_rate, sources.position),
                "flips_swapped": difference(sources.flip_rate, sources.wording),
                "flips_both": sources.flip_rate,
                "wording": sources.wording, **_interval(sources, "wording"),
                "position": sources.position, **_interval(sources, "position"),
                "together": sources.interaction, "asked_again": sources.rerun,
                "first_position": case.mapped["first_position_rate"], "n_items": sources.n_items,
            }  # fmt: skip


@table(
    "consensus",
    "Cross-judge consensus",
    "Agreement of two judges on one prompt, averaged over judges and prompts (mapped decisions, as "
    "shown), with its t interval over clusters (the item, or what items share); α is "
    "Krippendorff's, nominal. Mean JSS: how often one judge agrees with itself under another "
    "wording.",
)
def agreement_of_judges(study: Sensitivity) -> Iterator[Record]:
    """Do judges agree with each other under the same prompts (section 7)?"""
    for task, scoring, cases in study.main.groups():
        if len(cases) < 2:
            continue
        verdicts = {case.judge: case.first_verdicts for case in cases}
        keys = list(dict.fromkeys(key for own in verdicts.values() for key in own))
        decisions = {name: [own.get(key, ERROR) for key in keys] for name, own in verdicts.items()}
        clusters: dict[str, int] = {}
        for case in cases:
            clusters |= zip(case.answers.item, case.answers.cluster.tolist(), strict=True)
        agreed = consensus(decisions, [clusters[item] for item, *_ in keys])
        decided = Counter(
            key for own in verdicts.values() for key, word in own.items() if word not in UNDECIDED
        )
        alone = [jss for case in cases if (jss := case.mapped["jss"]) is not None]
        yield {
            "task": task, "scoring": scoring, "n_judges": len(cases),
            "agreement": agreed.agreement, "ci_low": agreed.ci_low, "ci_high": agreed.ci_high,
            "alpha": agreed.alpha, "mean_jss": fmean(alone) if alone else None,
            "n_prompts": agreed.n_prompts,
            "n_items": len({item for (item, *_), n in decided.items() if n > 1}),
        }  # fmt: skip


@table(
    "variance",
    "Template level against wording level",
    "Flip rates over all pairs of wordings, on items with every prompt decided (others are left "
    "out, and so are wordings decided on under half of the items). Polarity: the part that the "
    "label maps undo. The mapped flips are split by variance components of item × wording "
    "(× order): `template level` moves all items alike, `wording level` acts on single items (and "
    "includes rerun noise). The two add up to the mapped flips, except that estimates below 0 are "
    "shown as 0.",
    flips_raw="flips, raw", flips="flips, mapped", n_templates="wordings",
)  # fmt: skip
def variance(study: Sensitivity) -> Iterator[Record]:
    """The sources of flips: polarity, shifts of all items, and of single items (section 6.3)."""
    for case in study.main.cases:
        mapped, left_out = _grid(case, case.answers.label)
        raw, _ = _grid(case, case.answers.raw)
        row: dict[str, Any] = dict.fromkeys(
            ("flips_raw", "flips", "polarity", "template_level", "wording_level", "template_share")
        )
        if mapped is not None:
            parts = label_components(mapped)
            template = sum(parts.get(name, 0.0) for name in ("template", "template:order"))
            single = sum(parts.get(name, 0.0) for name in ("item:template", "residual"))
            flips, flips_raw = _flips(mapped), None if raw is None else _flips(raw)
            share = template / (template + single) if template + single else None
            polarity = difference(flips_raw, flips)
            row = dict(zip(row, (flips_raw, flips, polarity, template, single, share), strict=True))
        n_items, n_templates = (0, 0) if mapped is None else mapped.shape[:2]
        counts = {"n_items": n_items, "left_out": left_out, "n_templates": n_templates}
        yield {**case.ids, **row, **counts}


def _grid(case: JudgedCase, words: Words) -> tuple[Words | None, int]:
    """Items x templates (x orders) of decisions that follow the item, and the number of items
    without a decision on every prompt. None with fewer than two complete items."""
    answers, labels = case.answers, case.stream.task.labels[:2]
    swapped = dict(zip(labels, reversed(labels), strict=True))
    cells: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    places = zip(answers.item, answers.template, answers.order, words, strict=True)
    for item, template, order, word in places:
        if word not in UNDECIDED:
            turned = case.comparative and order == "BA"
            cells[item][template, order] = swapped.get(word, word) if turned else word
    shown = list(dict.fromkeys(answers.order))
    n_items = len(set(answers.item.tolist()))
    known = Counter(cell for own in cells.values() for cell in own)
    templates = [
        name
        for name in dict.fromkeys(answers.template)
        if min(known[name, order] for order in shown) >= n_items / 2
    ]
    whole = [i for i in cells if all((t, o) in cells[i] for t in templates for o in shown)]
    if len(whole) < 2 or len(templates) < 2:
        return None, n_items - len(whole)
    grid = np.array(
        [[[cells[i][t, o] for o in shown] for t in templates] for i in whole], dtype=object
    )
    return (grid if len(shown) > 1 else grid[:, :, 0]), n_items - len(whole)


def _flips(grid: Words) -> float:
    """The flip rate of two wordings on one item and order."""
    pairs = combinations(range(grid.shape[1]), 2)
    return fmean(float(np.mean(grid[:, one] != grid[:, two])) for one, two in pairs)


@table(
    "sampled",
    "T = 1, from option probabilities",
    "Option scoring, mapped, probabilities normalised over the options: the chance that two "
    "independent draws agree, under two wordings and under one wording asked twice. Their "
    "difference is the effect of the wording at T = 1. Nothing is drawn, so there is no sampling "
    "noise.",
    jss="JSS, most probable", jss_t1="JSS at T = 1", same_prompt="same prompt again at T = 1",
)  # fmt: skip
def sampled(study: Sensitivity) -> Iterator[Record]:
    """JSS if verdicts were drawn at T = 1: two independent draws agree with probability sum p q."""
    for case in study.main.cases:
        sides = case.stream.probabilities("mapped", case.stream.known)
        if sides is not None:
            one, two, _ = sides
            again = float((np.concatenate([one, two]) ** 2).sum(axis=1).mean())
            drawn = float((one * two).sum(axis=1).mean())
            yield {
                "judge": case.judge, "task": case.task, "jss": case.mapped["jss"], "jss_t1": drawn,
                "same_prompt": again, "wording": again - drawn, "n_pairs": len(one),
                "n_items": case.mapped["n_items"],
            }  # fmt: skip


FURTHER = {
    "tokens": ("Short against long answers", "Generated text, one option order."),
    "temperature": (
        "T = 1, drawn",
        "Generated text, one option order. Each pair counts once per draw. Same prompt: how often "
        "two draws of one prompt agree.",
    ),
    "scale": (
        "Binary tasks on a scale from 1 to 5",
        "Comparative tasks in the order AB only. JSS, levels: of the levels as they are; for all "
        "else they are merged to three steps: 1 and 2, 3, 4 and 5. A 3 is on neither side.",
    ),
    "language": (f"{LANGUAGE} and English", "The judge keeps its own system prompt."),
}
"""Title and note of the table of each question that needs a further run."""


def _further(study: Sensitivity, question: str) -> list[Record]:
    """A row per case of a further run, beside the main run's on the same pairs and prompts."""
    main = {case.key: case for case in study.main.cases}
    rows: list[dict[str, Any]] = []
    for other in study.further[question].cases:
        case = main.get(other.key)
        if case is None or not len(other.stream.pairs):
            continue
        order = "AB" if case.comparative else NO_ORDER
        draws = sorted({draw for *_, draw in other.verdicts})
        clusters = other.stream.pairs.cluster.tolist() * len(draws)

        def decided(
            item: str, template: str, shown: str, case: JudgedCase = case, order: str = order
        ) -> str:
            key = (item, template, order if question == "scale" else shown)
            return case.first_verdicts.get(key, ERROR)

        prompts = [[(p[0], p[side], p[3]) for p in other.stream.places] for side in (1, 2)]
        before = [[decided(*prompt) for prompt in side] * len(draws) for side in prompts]
        levels = [
            [other.verdicts.get((*prompt, draw), ERROR) for draw in draws for prompt in side]
            for side in prompts
        ]
        after = levels
        if question == "scale":
            after = [[_step(level, case) for level in side] for side in levels]
        gap = compare_jss((before[0], before[1]), (after[0], after[1]), clusters)
        single = {
            key: (decided(*key), _step(word, case) if question == "scale" else word)
            for key, word in other.first_verdicts.items()
        }
        both = [one == two for one, two in single.values() if not {one, two} & set(UNDECIDED)]
        row = {
            **case.ids, "change": _change(study, question, case.number),
            "jss": _jss(before, clusters), "jss_further": _jss(after, clusters),
            "difference": gap.difference, "ci_low": gap.ci_low, "ci_high": gap.ci_high,
            "p_adjusted": gap.p_value, "n_pairs": gap.n_pairs,
            "same_verdict": fmean(both) if both else None,
        }  # fmt: skip
        for at, name in enumerate(("", "_further")):
            words = {key: pair[at] for key, pair in single.items()}
            row["undecided" + name] = fmean(word in UNDECIDED for word in words.values())
            row["accuracy" + name] = _accuracy(words, case)
        if question == "scale":
            row["jss_levels"] = _jss(levels, clusters)
        if question == "temperature":
            again = _flip_sources(other).rerun
            row["same_prompt"] = None if again is None else 1 - again
        rows.append({**row, "n_prompts": len(single)})
    adjusted = holm([row["p_adjusted"] for row in rows])
    return [{**row, "p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]


def _jss(sides: Sequence[Sequence[str]], clusters: Sequence[int]) -> float | None:
    return jss(sides[0], sides[1], clusters, kappa_interval=False).jss


def _change(study: Sensitivity, question: str, judge: int) -> str:
    """What differs between the main run and the further one."""
    if question != "tokens":
        texts = {"temperature": "T = 0 → T = 1", "scale": "binary → 1 to 5"}
        return texts.get(question, f"English → {LANGUAGE}")
    described = [
        run.record["judges"][judge]["describe"] for run in (study.main, study.further[question])
    ]
    limits = [each.get("decoding", each).get("max_tokens") for each in described]
    return f"{limits[0]} → {limits[1]} tokens"


def _step(level: str, binary: JudgedCase) -> str:
    """A level as an answer of the binary task: 1 and 2 mean A (or NO), 4 and 5 mean B (or YES)."""
    if level in UNDECIDED:
        return level
    labels = binary.stream.task.labels
    low, high = labels if binary.comparative else reversed(labels)
    return low if int(level) < 3 else high if int(level) > 3 else "middle"


def _accuracy(verdicts: Mapping[tuple[str, str, str], str], case: JudgedCase) -> float | None:
    """The share of right verdicts, of those on an item and order with a gold label."""
    answers = case.answers
    gold = dict(zip(zip(answers.item, answers.order, strict=True), answers.gold, strict=True))
    shown = "AB" if case.comparative else NO_ORDER
    right = [
        word == label
        for (item, _, order), word in verdicts.items()
        if word not in UNDECIDED and (label := gold.get((item, order)) or gold.get((item, shown)))
    ]
    return fmean(right) if right else None


def _further_table(question: str) -> TableOf:
    title, note = FURTHER[question]
    shared = (
        "The same items and pairs of wordings as in the main run, mapped decisions. `further`: in "
        "the further run. The difference is on the pairs that both decide, with Newcombe's "
        "interval and a sign-flip test over clusters (the item, or what items share), Holm's "
        "correction for this table. Same verdict: the share of single prompts decided alike."
    )
    headings = {
        "jss_further": "JSS, further", "undecided_further": "undecided, further",
        "accuracy_further": "accuracy, further", "p_adjusted": "p, Holm",
        "jss_levels": "JSS, levels",
    }  # fmt: skip
    rows = partial(_further, question=question)
    return TableOf(question, title, rows, f"{note} {shared}", headings)


TABLES: Mapping[str, TableOf] = {
    "orders": orders,
    "consensus": agreement_of_judges,
    "variance": variance,
    "sampled": sampled,
    **{question: _further_table(question) for question in FURTHER},
}
"""The table that answers each question."""


def findings(_: Sensitivity, tables: Tables) -> Iterator[str]:
    """A sentence for each answered question; a case is a judge, task and scoring."""
    for name, finding in _FINDINGS.items():
        if name in tables:
            yield from finding(tables[name].rows)
    for name in FURTHER:
        if name in tables:
            rows = _known(tables[name].rows, "ci_low", "ci_high")
            clear = [row for row in rows if row["ci_low"] > 0 or row["ci_high"] < 0]
            where = [f"{row['judge']} on {row['task']}, {row['scoring']} scoring" for row in clear]
            yield (
                f"{name}: the interval of the difference in JSS excludes 0 in {len(clear)} of "
                f"{len(rows)} cases" + (f" ({join(where)})" if where else "")
            )


def _known(rows: Sequence[Row], *fields: str) -> list[Row]:
    return [row for row in rows if all(row[field] is not None for field in fields)]


def _orders(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "flips_reworded", "flips_swapped")
    more = sum(row["flips_swapped"] > row["flips_reworded"] for row in known)
    yield f"swapping the options flips more verdicts than rewording in {more} of {len(known)} cases"


def _consensus(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "agreement", "mean_jss")
    less = sum(row["agreement"] < row["mean_jss"] for row in known)
    yield (
        f"judges agree with each other on {span([row['agreement'] for row in known], percent)} of "
        f"prompts, by task and scoring; in {less} of {len(known)} less often than with themselves "
        "under another wording"
    )


def _variance(rows: Sequence[Row]) -> Iterator[str]:
    shares = [row["template_share"] for row in _known(rows, "template_share")]
    if shares:
        yield (
            f"the share of mapped flips that move all items alike is {span(shares, percent)}, "
            f"median {percent(median(shares))} ({len(shares)} cases with flips)"
        )


def _sampled(rows: Sequence[Row]) -> Iterator[str]:
    lost = [row["jss"] - row["jss_t1"] for row in _known(rows, "jss", "jss_t1")]
    if lost:
        yield (
            "drawing verdicts at T = 1 from the option probabilities lowers JSS by "
            f"{number(min(lost))} to {number(max(lost))} (median {number(median(lost))})"
        )


_FINDINGS: Mapping[str, Callable[[Sequence[Row]], Iterator[str]]] = {
    "orders": _orders, "consensus": _consensus, "variance": _variance, "sampled": _sampled,
}  # fmt: skip

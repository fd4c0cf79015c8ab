"""Wordings and the recommendation in report.json, from logs with known faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reports import report_of

from judgesense.log.schema import SCHEMA
from judgesense.log.view import view
from judgesense.measure.card import TrustCard
from judgesense.measure.checks import trust_card
from judgesense.measure.figures import Recommendation
from judgesense.measure.texts import wording_texts
from judgesense.measure.wordings import Wordings, recommendation, wordings

Answer = Callable[[np.random.Generator, int, str], str]


def log(answer: Answer, templates: int, items: int, labels: str = "YN", gold: bool = True) -> Any:
    """One judge's log: gold is drawn from the labels, `answer(rng, template, gold)` is said."""
    rng = np.random.default_rng(0)
    golds = rng.choice(list(labels), items)
    rows = [
        {
            "judge": "j",
            "task": "t",
            "scoring": "generate",
            "template_id": f"w{t:02d}",
            "item_id": f"i{i}",
            "gold": str(golds[i]) if gold else None,
            "raw_decision": said,
            "decision": said,
            "status": "ok" if said in labels else "unclear",
        }
        for i in range(items)
        for t in range(templates)
        if (said := answer(rng, t, str(golds[i])))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def mostly(share: float, labels: str = "YN") -> Answer:
    """Right with a probability; otherwise another label."""

    def answer(rng: np.random.Generator, template: int, gold: str) -> str:
        others = [label for label in labels if label != gold]
        return gold if rng.random() < share else str(rng.choice(others))

    return answer


def other(label: str) -> str:
    return "N" if label == "Y" else "Y"


def stream_of(table: Any) -> Any:
    (stream,) = view(table).judged
    return stream


def flagged(table: Any) -> dict[str, str]:
    rows = wordings(Wordings.of(stream_of(table)))
    return {row.template: row.flag for row in rows if row.flag != "fine"}


def advised(table, card=None) -> Recommendation:
    """The recommendation for a stream, or for the table of one; a card of no failure by default."""
    table = table if isinstance(table, Wordings) else Wordings.of(table)
    return recommendation(table, card or TrustCard("care", (), "", {}))


def test_two_mislabelled_wordings_among_26_do_not_blame_the_judge() -> None:
    def answer(rng: np.random.Generator, template: int, gold: str) -> str:
        said = mostly(0.98)(rng, template, gold)
        return other(said) if template in (3, 17) else said

    report = report_of(log(answer, 26, 80), None, run={"run_id": "r"})
    rows = {row["template"]: row for row in report["wordings"]}
    assert {name for name, row in rows.items() if row["flag"] == "inverted"} == {"w03", "w17"}
    assert all(row["flag"] == "fine" for name, row in rows.items() if name not in ("w03", "w17"))
    assert rows["w03"]["kappa"] < -0.8
    assert rows["w03"]["jss_without"] > rows["w00"]["jss_without"]
    (found,) = report["recommendation"]
    assert not {"w03", "w17"} & set(found["best_set"])
    assert found["template"] is None
    (card,) = report["trust"]
    assert card["trust"] in ("use", "care")
    assert card["checks"]["steady"]["estimate"] > 0.9
    assert set(rows["w00"]) >= {"run_id", "judge", "task", "scoring", "text", "accuracy"}


def test_equal_wordings_get_no_recommendation() -> None:
    found = advised(stream_of(log(mostly(0.8), 5, 120)))
    assert found.template is None
    assert found.best_set == ("w00", "w01", "w02", "w03", "w04")
    assert found.p_any_difference > 0.05
    assert found.accuracy_crossfit == pytest.approx(0.8, abs=0.1)
    assert found.ci_low < 0.8 < found.ci_high


def test_a_better_wording_is_named_with_its_held_out_accuracy() -> None:
    def answer(rng: np.random.Generator, template: int, gold: str) -> str:
        return mostly(0.95 if template == 2 else 0.7)(rng, template, gold)

    stream = stream_of(log(answer, 4, 125))
    found = advised(stream, trust_card(stream))
    assert (found.template, found.best_set, found.measure) == ("w02", ("w02",), "gold")
    assert found.accuracy_crossfit == pytest.approx(0.95, abs=0.04)
    without_gold = advised(stream_of(log(answer, 4, 125, gold=False)))
    assert without_gold.measure == "consensus"
    assert without_gold.template in (None, "w02")


def test_no_answer_is_a_wrong_one() -> None:
    def answer(rng: np.random.Generator, template: int, gold: str) -> str:
        if template == 0 and rng.random() < 0.4:
            return "UNCLEAR"
        return gold

    rows = wordings(table := Wordings.of(stream_of(log(answer, 3, 80))))
    assert rows[0].agreement == 1.0
    assert rows[0].accuracy == pytest.approx(0.6, abs=0.1)
    assert advised(table).best_set == ("w01", "w02")


def test_a_judge_to_avoid_gets_only_a_wording_that_passes() -> None:
    def noise(rng: np.random.Generator, template: int, gold: str) -> str:
        return mostly(0.66 if template == 1 else 0.45)(rng, template, gold)

    def one_good(rng: np.random.Generator, template: int, gold: str) -> str:
        return mostly(0.95 if template == 1 else 0.5)(rng, template, gold)

    for answer, named in ((noise, None), (one_good, "w01")):
        stream = stream_of(log(answer, 3, 150))
        card = trust_card(stream)
        assert card.trust == "avoid"
        assert advised(stream).template == "w01"
        found = advised(stream, card)
        assert found.template == named
        assert found.best_set == ("w01",)


def test_a_judge_that_fails_without_gold_gets_none() -> None:
    def answer(rng: np.random.Generator, template: int, gold: str) -> str:
        return mostly(0.9 if template == 1 else 0.6)(rng, template, gold)

    stream = stream_of(log(answer, 4, 150, gold=False))
    card = trust_card(stream)
    assert isinstance(card, TrustCard)
    assert card.because == ("steady",)
    assert advised(stream, card).template is None


@pytest.mark.parametrize(("templates", "items"), [(1, 40), (2, 1), (5, 1)])
def test_too_little_to_compare(templates: int, items: int) -> None:
    table = Wordings.of(stream_of(log(mostly(1.0), templates, items)))
    found = advised(table)
    assert found.template is None
    assert found.p_any_difference is None
    assert all(row.flag == "fine" and row.p_adjusted is None for row in wordings(table))


def test_all_undecided_and_gold_of_another_vocabulary() -> None:
    unread = log(lambda *_: "UNCLEAR", 3, 40)
    assert set(flagged(unread).values()) == {"unreadable"}
    found = advised(stream_of(unread))
    assert (found.template, found.best_set) == (None, ())
    foreign = log(mostly(0.9), 3, 40)
    place = foreign.schema.get_field_index("gold")
    foreign = foreign.set_column(place, "gold", pa.array(["good"] * foreign.num_rows))
    found = advised(Wordings.of(stream_of(foreign)))
    assert found.template is None


def test_a_harsher_wording_on_a_scale_is_an_outlier_and_not_inverted() -> None:
    def answer(rng: np.random.Generator, template: int, gold: str) -> str:
        return str(max(1, int(gold) - 1)) if template == 1 else mostly(0.9, "12345")(rng, 0, gold)

    rows = wordings(Wordings.of(stream_of(log(answer, 5, 60, labels="12345"))))
    assert [row.flag for row in rows] == ["fine", "outlier", "fine", "fine", "fine"]
    assert rows[1].kappa > 0.5


def test_texts_come_from_the_record_or_the_prompts() -> None:
    said = {"1": "Is it polite?\n\nText: {}", "2": "{}\n\nPolite?", "3": "Is '{}' polite?"}
    rows = [
        {"task": "t", "template_id": name, "text": text.format(item)}
        for name, text in said.items()
        for item in ("Thanks.", "Go away!", "Oh")
    ]
    prompts = pa.Table.from_pylist(rows)
    derived = {"1": "Is it polite?", "2": "Polite?", "3": "Is '…' polite?"}
    assert wording_texts({}, prompts) == {"t": derived}
    record = {"tasks": {"t": {"wordings": {"2": "Is it polite?"}}}}
    assert wording_texts(record, prompts)["t"] == {**derived, "2": "Is it polite?"}
    assert wording_texts({}, None) == {}
    assert wording_texts({}, prompts.slice(0, 1)) == {}

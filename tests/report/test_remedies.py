"""Remedies measured on logs of judges whose truth is known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from judgesense.ask.from_run import fitted_for_file
from judgesense.log.answers import Answers
from judgesense.log.array import array_of
from judgesense.log.schema import SCHEMA
from judgesense.log.view import view
from judgesense.measure.checks import trust_card
from judgesense.measure.remedies import cheapest_that_passes
from judgesense.measure.remedies import remedies as remedies_of
from judgesense.recipes.fitting import measurable, recipe_named

ORDERS = {"relevance": ("AB", "BA"), "coherence": ("-",), "factuality": ("-",)}
LABELS = {"relevance": ("A", "B"), "coherence": ("1", "2", "3"), "factuality": ("YES", "NO")}


def remedies(stream):
    """The remedies of a stream and its own card."""
    return remedies_of(stream, trust_card(stream))


def logged(rows, task: str = "relevance") -> Answers:
    """Rows of a decision log as a stream."""
    record = {"tasks": {task: {"labels": list(LABELS[task]), "comparative": task == "relevance"}}}
    return view(pa.Table.from_pylist(rows, schema=SCHEMA), None, record).judged[0]


def options_of(labels, told):
    """The column ``option_logprobs``."""
    return [{"option": o, "logprob": float(v)} for o, v in zip(labels, told, strict=True)]


def judged(
    task: str = "relevance",
    n: int = 120,
    wordings: int = 4,
    bias: float = 3.0,
    noise: float = 0.3,
    gold: bool = True,
    scoring: str = "options",
    seed: int = 0,
) -> Answers:
    """A judge that knows the answer (signal 1.5 nats) but prefers the first label by ``bias``."""
    rng, rows = np.random.default_rng(seed), []
    labels = LABELS[task]
    truth = rng.integers(len(labels), size=n)
    for i in range(n):
        signal = 1.5 * (np.arange(len(labels)) == truth[i]) + rng.normal(0, 0.3, len(labels))
        for t in range(wordings):
            for order in ORDERS[task]:
                told = signal[::-1].copy() if order == "BA" else signal.copy()
                told[0] += bias + rng.normal(0, noise)
                told -= np.log(np.exp(told).sum())
                said = labels[int(told.argmax())]
                at = truth[i] if order != "BA" else len(labels) - 1 - truth[i]
                rows.append(
                    {
                        "judge": "j",
                        "task": task,
                        "scoring": scoring,
                        "status": "ok",
                        "item_id": f"i{i}",
                        "cluster_id": f"i{i}",
                        "template_id": f"t{t}",
                        "order": order,
                        "repeat": 0,
                        "raw_decision": said,
                        "decision": said,
                        "gold": labels[at] if gold else None,
                        "prompt_id": f"{i}-{t}-{order}",
                        "option_logprobs": options_of(labels, told)
                        if scoring == "options"
                        else None,
                        "cost_usd": 0.25,
                    }
                )
    return logged(rows, task)


def with_contrast(stream: Answers, follows: bool = True, bias: float = 3.0) -> Answers:
    """The log with t0 asked the other way round; a judge that does not follow answers as before."""
    table = stream.log.table.to_pylist()
    labels = list(stream.task.labels)
    for row in [row for row in table if row["template_id"] == "t0"]:
        told = np.array([each["logprob"] for each in row["option_logprobs"]]) - [bias, 0.0]
        told = (told[::-1] if follows else told) + [bias, 0.0]
        raw = int(told.argmax())
        table.append(
            {
                **row,
                "variant": "inverted",
                "variant_class": "contrast",
                "raw_decision": labels[raw],
                "decision": labels[1 - raw],
                "prompt_id": f"{row['prompt_id']}-inverted",
                "option_logprobs": options_of(labels, told),
            }
        )
    return logged(table)


@pytest.mark.parametrize("follows", [True, False])
def test_a_remedy_is_responsive_if_the_judge_follows_contrasts_after_it(follows):
    found = by_name(remedies(with_contrast(judged(), follows)))
    state = "pass" if follows else "fail"
    assert found["as asked"].checks["responsive"].state == "fail"
    for name in ("both orders", "panel of 2, both orders", "calibrated, panel of 2"):
        assert found[name].checks["responsive"].state == state
        assert found[name].checks["responsive"].n_items == 120
    assert found["both orders"].trust == ("use" if follows else "avoid")
    assert by_name(remedies(judged()))["both orders"].checks["responsive"].state == ("unmeasured")


def by_name(rows):
    return {row.remedy: row for row in rows}


def test_both_orders_turn_a_judge_that_takes_the_first_option_into_one_that_is_right():
    rows = remedies(judged())
    found = by_name(rows)
    assert rows[0].remedy == "as asked"
    assert rows[0].trust == "avoid"
    assert found["as asked"].accuracy == pytest.approx(0.5, abs=0.05)
    assert found["both orders"].accuracy > 0.95
    assert found["both orders"].gain_ci_low > 0.35
    assert found["both orders"].prompts_per_item == 2
    assert found["both orders"].usd_per_item == 0.5
    assert found["both orders"].same_choice == 1.0
    assert found["calibrated"].accuracy > 0.95
    assert cheapest_that_passes(rows).remedy == "calibrated"


def test_an_unbiased_judge_gains_nothing_and_needs_no_remedy():
    rows = remedies(judged(bias=0.0))
    both = by_name(rows)["both orders"]
    assert abs(both.gain) < 0.05
    assert both.gain_ci_low <= 0 <= both.gain_ci_high
    assert cheapest_that_passes(rows).remedy == "as asked"


def test_ties_of_both_orders_are_counted():
    table = judged(n=40).log.table.to_pylist()
    for row in table:
        if row["item_id"] in ("i1", "i2"):  # both orders say A with the same probability
            row["raw_decision"] = row["decision"] = "A"
            row["option_logprobs"] = options_of("AB", [-0.1, -2.35])
    found = by_name(remedies(logged(table)))
    assert found["both orders"].ties == 0.05
    assert "If labels tie (5% of verdicts)" in found["both orders"].text
    assert found["calibrated"].ties == 0.0
    assert found["as asked"].ties is None


def test_without_gold_only_steadiness_and_position_are_told():
    rows = remedies(judged(gold=False))
    both = by_name(rows)["both orders"]
    assert both.accuracy is None
    assert both.gain is None
    assert both.jss is not None
    assert both.same_choice_before < 0.3
    assert cheapest_that_passes(rows) is None


def test_text_verdicts_are_voted_and_opposite_ones_are_undecided():
    found = by_name(remedies(judged(scoring="generate", bias=1.2)))
    both = found["both orders"]
    assert both.readable < 0.9
    assert both.accuracy <= both.readable
    assert both.accuracy_decided > 0.9
    assert "no verdict on" in both.text
    assert found["calibrated"].accuracy is None
    assert "options" in found["calibrated"].text


def test_a_scale_is_read_by_its_expected_score():
    found = by_name(remedies(judged("coherence", bias=1.0)))
    assert found["calibrated"].accuracy > found["as asked"].accuracy
    assert found["calibrated, expected score"].accuracy is not None


def test_a_panel_of_noisy_wordings_is_steadier_than_one():
    found = by_name(remedies(judged("factuality", wordings=6, bias=0.0, noise=2.5, n=200)))
    assert found["panel of 3"].jss > found["panel of 3"].jss_before + 0.05
    assert found["panel of 3"].gain_ci_low > 0
    assert found["panel of 3"].prompts_per_item == 3


def test_another_wording_is_chosen_on_other_items():
    stream = judged("factuality", wordings=5, bias=0.0, noise=0.0, n=40)
    assert abs(by_name(remedies(stream))["another wording"].gain) < 1e-12


def test_one_cluster_and_no_wording_give_no_rows():
    stream = judged(n=3)
    rows = [{**row, "cluster_id": "q"} for row in stream.log.table.to_pylist()]
    assert remedies(logged(rows)) == ()


def test_a_fitted_recipe_gives_new_items_the_verdicts_of_the_remedy():
    old, new = array_of(judged(seed=1)), array_of(judged(seed=2))
    recipe, _ = fitted_for_file(old, recipe_named("calibrated", old), {})
    assert (recipe.decide(new).codes == new.gold).mean() > 0.93
    assert recipe.offsets["t0"]["A"] > 0 > recipe.offsets["t0"]["B"]


def test_a_recipe_is_found_by_its_name_and_others_are_listed():
    array = array_of(judged(n=10))
    recipe = recipe_named("panel of 2, both orders", array)
    assert (recipe.wordings, recipe.orders) == (("t0", "t1"), ("AB", "BA"))
    names = [each.name for each in measurable(array)]
    assert names[0] == "as asked"
    assert len(set(names)) == len(names)
    with pytest.raises(ValueError, match="both orders"):
        recipe_named("both", array)

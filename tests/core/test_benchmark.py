"""What a run judges, on the embedded benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from judgesense.benchmark import Benchmark, infer_task
from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item, Task, Template, render
from judgesense_dataset.embedded import load_embedded


@pytest.fixture(scope="module")
def embedded() -> Benchmark:
    return load_embedded()


def columns(benchmark: Benchmark, *names: str) -> Iterator[tuple[str, ...]]:
    return zip(*(benchmark.prompts[name].to_pylist() for name in names), strict=True)


def test_a_run_judges_the_prompts_of_its_pairs_in_both_orders(embedded: Benchmark) -> None:
    chosen = embedded.select()
    assert chosen.pairs.equals(embedded.pairs)
    cells = set(columns(chosen, "item_id", "template_id", "order"))
    for pair in chosen.pairs.to_pylist():
        orders = ("-",) if pair["order"] == "-" else ("AB", "BA")
        for template in (pair["template_a"], pair["template_b"]):
            assert all((pair["item_id"], template, order) in cells for order in orders)


def test_a_task_without_pairs_keeps_its_prompts_and_obeys_the_limit(embedded: Benchmark) -> None:
    wording = pc.field("template_id").isin(["coherence-1"])
    one = embedded.prompts.filter(wording | (pc.field("task") == "relevance"))
    pairs = embedded.pairs.filter(pc.field("task") == "relevance")
    both = dataclasses.replace(embedded, prompts=one, pairs=pairs)
    chosen = both.select(["relevance", "coherence"], limit=4)
    items = {
        task: len(pc.unique(chosen.prompts.filter(pc.field("task") == task)["item_id"]))
        for task in chosen.tasks
    }
    assert items == {"relevance": 4, "coherence": 4}
    assert both.select(["coherence"]).prompts.num_rows == 50


def test_orders_show_every_comparative_pair_in_each(embedded: Benchmark) -> None:
    both = embedded.select(orders=["AB", "BA"])
    per_order = {
        (entry["task"], entry["order"]): entry["pair_id_count"]
        for entry in both.pairs.group_by(["task", "order"])
        .aggregate([("pair_id", "count")])
        .to_pylist()
    }
    assert per_order == {
        ("factuality", "-"): 250,
        ("coherence", "-"): 250,
        ("relevance", "AB"): 250,
        ("relevance", "BA"): 250,
        ("preference", "AB"): 250,
        ("preference", "BA"): 250,
    }
    assert len(set(both.pairs["pair_id"].to_pylist())) == both.pairs.num_rows
    known = set(both.prompts["prompt_id"].to_pylist())
    assert known >= set(both.pairs["prompt_id_a"].to_pylist())


def test_the_order_that_the_data_lack_is_refused(embedded: Benchmark) -> None:
    only_ab = embedded.select(["preference"], orders=["AB"])
    with pytest.raises(JudgeSenseError, match=r"order .BA.* AB"):
        only_ab.select(orders=["BA"])


def test_the_data_hash_does_not_depend_on_the_rows_order(embedded: Benchmark) -> None:
    turned = Benchmark(
        embedded.tasks,
        embedded.prompts,
        embedded.pairs.take(pa.array(range(embedded.pairs.num_rows - 1, -1, -1))),
        {},
    )
    assert turned.data_hash == embedded.data_hash
    assert embedded.select(["coherence"]).data_hash != embedded.data_hash


def test_a_pair_whose_prompt_is_missing_is_named(embedded: Benchmark) -> None:
    first = embedded.pairs["prompt_id_a"][0].as_py()
    rest = embedded.prompts.filter(pc.field("prompt_id") != first)
    with pytest.raises(JudgeSenseError, match="is not among the prompts"):
        Benchmark(embedded.tasks, rest, embedded.pairs, {})


def test_gold_follows_the_option_order() -> None:
    task = Task("relevance", ("A", "B"), options={"A": "passage_a", "B": "passage_b"})
    layout = "{instruction}\nA: {passage_a}\nB: {passage_b}"
    template = Template("t", "relevance", "Which one?", layout, {"A": "A", "B": "B"})
    item = Item("i", "relevance", {"passage_a": "first {x}", "passage_b": "second"}, gold="A")
    straight, swapped = (render(task, template, item, order) for order in task.orders)
    assert straight.text == "Which one?\nA: first {x}\nB: second"
    assert swapped.text == "Which one?\nA: second\nB: first {x}"
    assert (straight.gold, swapped.gold) == ("A", "B")


def test_a_template_that_shows_an_absent_field_is_an_error() -> None:
    task = Task("politeness", ("YES", "NO"))
    template = Template("t", "politeness", "Polite?", "{instruction} {message}", {"YES": "YES"})
    with pytest.raises(JudgeSenseError, match=r"shows \{message\}, which item 'i' lacks"):
        render(task, template, Item("i", "politeness", {"text": "hello"}), "-")


def test_a_task_is_inferred_from_its_label_maps() -> None:
    scale = infer_task("fluency", ['{"10":"10","2":"2","1":"1"}'], ["-"])
    assert (scale.labels, scale.ordinal, scale.comparative) == (("1", "2", "10"), True, False)
    duel = infer_task("duel", ['{"B":"B","A":"A"}'], ["AB", "BA"])
    assert (duel.labels, duel.comparative) == (("A", "B"), True)

"""The six modules as evaluate loads them: the core's figures, whatever the way in."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import judgesense
from judgesense.metric_modules.registry import METRICS
from judgesense.version import __version__

evaluate = pytest.importorskip("evaluate")

ROWS = {
    "jss": (["A", "B", "A", "UNCLEAR"], ["A", "A", "A", "B"]),
    "paraphrase_robustness": ([[4, 4, 5], [2, 3, 2], [5, 5, 5]], [4.0, 2.0, 4.5]),
    "prompt_sensitivity": ([[0.5, 0.6], [0.7, 0.4], [0.2, 0.9]], None),
    "ranking_stability": ([[0.1, 0.5, 0.4], [0.3, 0.2, 0.6], [0.2, 0.3, 0.4]], None),
    "position_bias": (["A", "B", "A"], ["B", "B", "A"]),
    "answer_match": (["The answer is B.", "C", "no idea"], ["B", "A", "D"]),
}
"""Predictions and references for each module."""


def given(name, part=slice(None)):
    predictions, references = ROWS[name]
    rows = {"predictions": predictions[part]}
    return rows if references is None else {**rows, "references": references[part]}


@pytest.fixture(scope="module")
def load():
    return lambda name: evaluate.load(judgesense.metric_path(name))


@pytest.mark.parametrize("name", METRICS)
def test_a_module_gives_what_the_one_call_function_gives(load, name):
    assert load(name).compute(**given(name)) == METRICS[name].function(**given(name))
    assert getattr(judgesense, name) is METRICS[name].function


@pytest.mark.parametrize("name", METRICS)
def test_rows_added_in_batches_or_one_by_one_give_the_same(load, name):
    metric = load(name)
    whole = metric.compute(**given(name))
    metric.add_batch(**given(name, slice(0, 2)))
    metric.add_batch(**given(name, slice(2, None)))
    assert metric.compute() == whole
    predictions, references = ROWS[name]
    for row, prediction in enumerate(predictions):
        one = {} if references is None else {"reference": references[row]}
        metric.add(prediction=prediction, **one)
    assert metric.compute() == whole


def test_combine_passes_each_module_its_own_options(load):
    both = evaluate.combine([load("jss"), load("position_bias")])
    rows = {"predictions": ["A", "B", "A"], "references": ["A", "A", "B"]}
    result = both.compute(**rows, item_ids=[1, 1, 2], labels="item", interval="bootstrap", seed=3)
    jss = judgesense.jss(**rows, item_ids=[1, 1, 2], interval="bootstrap", seed=3)
    bias = judgesense.position_bias(**rows, item_ids=[1, 1, 2], labels="item")
    assert result["jss"] == jss["jss"]
    assert result["signature"] == jss["signature"]
    assert result["position_consistency"] == bias["position_consistency"]
    assert result["position_bias_n_items"] == bias["n_items"] == result["jss_n_items"]


def test_an_option_nobody_has_is_refused(load):
    with pytest.raises(ValueError, match=r"option 'item_id'; .*item_ids"):
        load("jss").compute(**given("jss"), item_id=[1, 2, 3, 4])


@pytest.mark.parametrize("name", METRICS)
def test_nothing_undefined_is_nan_and_numbers_are_plain(load, name):
    def leaves(value):
        if isinstance(value, dict):
            return [leaf for part in value.values() for leaf in leaves(part)]
        return (
            [leaf for part in value for leaf in leaves(part)]
            if isinstance(value, list)
            else [value]
        )

    for rows in (given(name), given(name, slice(0, 1))):
        options = {"k": 1} if name == "ranking_stability" else {}
        for leaf in leaves(load(name).compute(**rows, **options)):
            assert leaf is None or type(leaf) in (float, int, str, bool)
            assert leaf == leaf


@pytest.mark.parametrize(
    ("name", "predictions", "references", "told"),
    [
        ("jss", ["A", float("nan")], ["A", "B"], r"predictions\[1\]"),
        ("jss", ["A", ["B"]], ["A", "B"], r"predictions\[1\]"),
        ("jss", ["A", "B"], ["A", 4.5], r"references\[1\] is 4.5"),
        ("jss", ["A"], ["A", "B"], "predictions has 1 rows"),
        ("jss", [], [], "predictions is empty"),
        ("jss", "AB", "AB", "predictions is a str"),
        ("jss", None, None, "no rows"),
        ("position_bias", ["A", None], ["A", "B"], r"predictions\[1\]"),
        ("paraphrase_robustness", [[1, 2], [1, "2"]], [1, 2], r"predictions\[1\]\[1\]"),
        ("paraphrase_robustness", [[1, 2], [1, 2, 3]], [1, 2], r"predictions\[1\] has 3"),
        ("paraphrase_robustness", [[1, 2], [1, 2]], [1, float("inf")], r"references\[1\]"),
        ("prompt_sensitivity", [[0.1, 0.2], [0.3]], None, r"predictions\[1\]"),
        ("ranking_stability", [[0.1, float("nan")]], None, r"predictions\[0\]\[1\]"),
        ("answer_match", ["A", 3], ["A", "B"], r"predictions\[1\]"),
        ("answer_match", ["A", "B"], [["A"], "B"], r"references\[1\] is 'B'"),
    ],
)
def test_bad_rows_are_refused_before_evaluate_turns_them_into_text(
    load, name, predictions, references, told
):
    with pytest.raises(ValueError, match=told):
        load(name).compute(predictions=predictions, references=references)


def test_numpy_arrays_are_rows_too(load):
    rows = {"predictions": np.array(["A", "B", "A"]), "references": np.array(["A", "A", "A"])}
    assert load("jss").compute(**rows)["jss"] == pytest.approx(2 / 3)
    scores = np.array([[4, 4], [2, 3]])
    result = load("paraphrase_robustness").compute(predictions=scores, references=np.array([4, 2]))
    assert result["accuracy"] == 0.75


def test_scores_of_a_scale_are_decisions_as_numbers_or_text(load):
    rows = {"predictions": [4, 5, "3", 1], "references": [4, 4, 3, "UNCLEAR"]}
    text = {name: list(map(str, values)) for name, values in rows.items()}
    expected = judgesense.jss(**text)
    assert (expected.jss, expected.n_unclear) == (pytest.approx(2 / 3), 1)
    assert load("jss").compute(**rows) == judgesense.jss(**rows) == expected
    scores = np.array([4, 5, 3])
    assert load("jss").compute(predictions=scores, references=scores[::-1])["jss"] == 1 / 3
    module = load("jss")
    module.add(prediction=4, reference="4")
    assert module.compute()["jss"] == 1.0


def test_rows_of_a_filtered_pandas_table_are_rows_whatever_their_index(load):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": ["x", "A", "B"], "b": ["x", "A", "A"], "item": [0, 1, 2]})[1:]
    rows = {"predictions": table["a"], "references": table["b"]}
    plain = {"predictions": ["A", "B"], "references": ["A", "A"]}
    for name in ("jss", "position_bias"):
        ours = load(name).compute(**rows, item_ids=table["item"])
        assert ours == METRICS[name].function(**plain, item_ids=[1, 2])
        assert ours == METRICS[name].function(**rows, item_ids=table["item"])
    exact = load("answer_match").compute(**rows, method="exact")
    assert exact == judgesense.answer_match(**plain, method="exact")
    scores = pd.DataFrame({"p1": [0.1, 0.4, 0.2], "p2": [0.2, 0.3, 0.9]})[1:]
    ours = load("prompt_sensitivity").compute(predictions=scores)
    assert ours == judgesense.prompt_sensitivity([[0.4, 0.3], [0.2, 0.9]])
    assert ours == judgesense.prompt_sensitivity(scores)


@pytest.mark.parametrize("rows", [{"A", "B"}, {"A": "A"}, iter("AB"), "AB", None])
def test_rows_without_an_order_are_refused(load, rows):
    for jss in (load("jss").compute, judgesense.jss):
        with pytest.raises(ValueError, match="predictions is a"):
            jss(predictions=rows, references=["A", "B"])


def test_answers_can_be_lists_of_accepted_ones(load):
    rows = {"predictions": ["Lutetia", "Rome"], "references": [["Paris", "Lutetia"], ["Milan"]]}
    assert load("answer_match").compute(**rows, method="exact")["per_example"] == [1.0, 0.0]
    chosen = {"predictions": ["the red one"], "references": ["B"]}
    options = [["blue one", "red one", "green one"]]
    result = load("answer_match").compute(**chosen, n_options=3, options=options)
    assert result == judgesense.answer_match(**chosen, n_options=3, options=options)


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'jsd'; .*jss, paraphrase_robustness"):
        judgesense.metric_path("jsd")


@pytest.mark.parametrize("name", METRICS)
def test_a_cards_example_prints_what_the_card_says(name):
    card = (Path(judgesense.metric_path(name)) / "README.md").read_text(encoding="utf-8")
    code, told = (
        re.search(rf"```{kind}\n(.*?)```", card, re.DOTALL).group(1) for kind in ("python", "text")
    )
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == told


@pytest.mark.parametrize("name", METRICS)
def test_a_folder_is_a_whole_space(name):
    yaml = pytest.importorskip("yaml")
    folder = Path(judgesense.metric_path(name))
    _, front, body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    head = yaml.safe_load(front)
    assert (head["sdk"], head["app_file"]) == ("gradio", "app.py")
    assert head["sdk_version"].startswith("6.")
    assert {"evaluate", "metric"} <= set(head["tags"])
    for part in ("## Use", "## When it misleads", "## Citation", "$"):
        assert part in body
    required = (folder / "requirements.txt").read_text().strip()
    assert required.startswith("judgesense[")
    assert required.endswith(">=" + ".".join(__version__.split(".")[:2]))
    described = evaluate.load(str(folder)).info
    for returned in METRICS[name].function(**given(name)):
        stem = re.sub(r"_(ci_)?(low|high|std)$", "", returned)
        assert stem in body, f"the card does not name {returned}"
        assert stem in described.inputs_description, f"the docstring does not name {returned}"

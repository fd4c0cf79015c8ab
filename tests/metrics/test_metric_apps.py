"""The Spaces' apps: importing one builds its interface, and a running one answers."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

import judgesense
from judgesense.metric_modules.registry import METRICS

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
pytestmark = pytest.mark.slow


def demo_of(name):
    pytest.importorskip("gradio")
    path = Path(judgesense.metric_path(name)) / "app.py"
    spec = importlib.util.spec_from_file_location(f"app_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", METRICS)
def test_importing_an_app_builds_its_interface_without_starting_it(name):
    import gradio

    module = demo_of(name)
    assert isinstance(module.demo, gradio.Blocks)
    assert not module.demo.is_running
    assert "## When it misleads" in module.demo.article
    # What the visitor sees first is a row set that scores.
    options = [part.value for part in module.demo.input_components]
    result = module.demo.fn(*options)
    assert type(result) is dict
    assert set(result) == set(METRICS[name].function(**_example(name)))


def _example(name):
    return {
        "jss": {"predictions": ["A"], "references": ["A"]},
        "paraphrase_robustness": {"predictions": [[1, 2]], "references": [1]},
        "prompt_sensitivity": {"predictions": [[0.1, 0.2]]},
        "ranking_stability": {"predictions": [[1, 2, 3]]},
        "position_bias": {"predictions": ["A"], "references": ["A"]},
        "answer_match": {"predictions": ["A"], "references": ["A"]},
    }[name]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("q1,YES", "2 cells, not 3"),
        ("q1,YES,NO\nq2,YES", "line 2 has 2 cells"),
        ("  \n", "no rows"),
    ],
)
def test_an_app_tells_the_visitor_what_is_wrong(rows, told):
    import gradio

    with pytest.raises(gradio.Error, match=told):
        demo_of("jss").demo.fn(rows)


def test_a_cell_that_is_no_number_is_named():
    import gradio

    with pytest.raises(gradio.Error, match="line 2, cell 3: 'x' is not a number"):
        demo_of("ranking_stability").demo.fn("1,2,3\n4,5,x")


def test_a_running_app_scores_rows_that_a_client_sends():
    gradio_client = pytest.importorskip("gradio_client")
    demo = demo_of("jss").demo
    _, url, _ = demo.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, share=False
    )
    try:
        client = gradio_client.Client(url, verbose=False)
        result = client.predict("q1,YES,YES\nq2,NO,YES", api_name="/compute")
        assert result["jss"] == 0.5
        with pytest.raises(gradio_client.exceptions.AppError, match="2 cells, not 3"):
            client.predict("q1,YES", api_name="/compute")
    finally:
        demo.close()

"""Write ``.deepeval/.latest_test_run.json`` with a stand-in judge: ``python deepeval_make.py``."""

from __future__ import annotations

import json
from typing import Any

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import GEval
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase, SingleTurnParams


class Judge(DeepEvalBaseLLM):
    """A judge that answers from the text of its prompt, and fails on Berlin."""

    def load_model(self) -> Judge:
        """Nothing to load."""
        return self

    def get_model_name(self) -> str:
        """The name in the results."""
        return "mock-judge"

    def generate(self, prompt: str, schema: Any = None) -> Any:
        """A score from 0 to 10 with a reason."""
        if "Berlin" in prompt:
            raise RuntimeError("the stand-in judge is down")
        right = "Paris" in prompt
        said = {"score": 9 if right else 2, "reason": "It is right." if right else "It is wrong."}
        return json.dumps(said) if schema is None else schema(**said)

    async def a_generate(self, prompt: str, schema: Any = None) -> Any:
        """As `generate`."""
        return self.generate(prompt, schema)


def metric(name: str, step: str) -> GEval:
    """A criterion in one wording."""
    params = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]
    return GEval(name=name, evaluation_steps=[step], evaluation_params=params, model=Judge())


cases = [
    LLMTestCase(name="france", input="Capital of France?", actual_output="Paris."),
    LLMTestCase(name="sum", input="2 + 2?", actual_output="5"),
    LLMTestCase(name="germany", input="Capital of Germany?", actual_output="Berlin."),
]
evaluate(
    cases,
    [
        metric("Correctness", "Is the output right?"),
        metric("Correctness, reworded", "Does the output answer the question rightly?"),
    ],
    async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
    error_config=ErrorConfig(ignore_errors=True),
    cache_config=CacheConfig(write_cache=True),
)

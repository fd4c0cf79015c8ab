"""What the metric modules for `evaluate` share (their Spaces: `judgesense.metric_modules.app`)."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from judgesense.answers.matching import METHODS
from judgesense.metric_modules.registry import (
    METRICS,
    Check,
    answer_rows,
    label_rows,
    number_rows,
    score_rows,
)
from judgesense.statistics.inputs import is_ordered, label_texts


class CheckedRows:
    """Everything a module for `evaluate` needs beside `evaluate.Metric`, its second base class.

    evaluate checks the type of row 0 only and turns every other row into text or a number (NaN
    becomes "nan", ["x"] becomes "['x']"), so rows are checked before evaluate sees them. Rows stay
    in memory, unseen by other processes, unless several processes share one evaluation.
    `evaluate.combine` sends each option to every module, so a module ignores the options of other
    metrics; an option that no metric has is refused.
    """

    metric: ClassVar[str]
    """Name of the metric in `judgesense.metric_modules.registry.METRICS`."""
    description: ClassVar[str]
    citation_text: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["keep_in_memory"] = kwargs.get("num_process", 1) == 1
        super().__init__(*args, **kwargs)

    def _info(self) -> Any:
        import evaluate

        function = METRICS[self.metric].function
        kind = function.__annotations__["return"]
        result = vars(inspect.getmodule(function))[kind] if isinstance(kind, str) else kind
        returned = ", ".join(field.name for field in dataclasses.fields(result))
        return evaluate.MetricInfo(
            description=self.description,
            citation=self.citation_text,
            inputs_description=f"{inspect.getdoc(function)}\n\nFields returned: {returned}.",
            features=_features(METRICS[self.metric].inputs),
        )

    def _compute(self, predictions: Any, references: Any = None, **options: Any) -> dict[str, Any]:
        rows = (predictions,) if references is None else (predictions, references)
        return METRICS[self.metric].function(*rows, **options).to_dict()

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add rows; see `evaluate.EvaluationModule.add_batch`."""
        given = {"predictions": predictions, "references": references}
        inputs = METRICS[self.metric].inputs
        rows = {name: given[name] for name in inputs}
        for name, check in inputs.items():
            check(rows[name], name)
            if not len(rows[name]):
                raise ValueError(f"{name} is empty: pass at least one row")
        lengths = {name: len(values) for name, values in rows.items()}
        if len(set(lengths.values())) > 1:
            counts = " and ".join(f"{name} has {n} rows" for name, n in lengths.items())
            raise ValueError(f"{counts}: pass one of each for every row")
        # evaluate looks for row 0 by its label, which a filtered pandas series may not have.
        plain = {name: _stored(values, inputs[name], name) for name, values in rows.items()}
        super().add_batch(**plain, **others)  # type: ignore[misc]

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add one row; see `evaluate.EvaluationModule.add`."""
        row = {"predictions": prediction, "references": reference}
        for name, check in METRICS[self.metric].inputs.items():
            check([row[name]], name)
            row[name] = _stored([row[name]], check, name)[0]
        super().add(prediction=row["predictions"], reference=row["references"], **others)  # type: ignore[misc]

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> Any:
        """Compute the metric; see `evaluate.EvaluationModule.compute`."""
        if predictions is None and references is None and not len(self):  # type: ignore[arg-type]
            raise ValueError("no rows: pass predictions, or call add_batch first")
        own = _options(METRICS[self.metric].function)
        if self.metric == "answer_match":
            own = own.union(*map(_options, METHODS.values()))
        functions = (each.function for each in METRICS.values())
        every = own.union(*map(_options, (*functions, *METHODS.values())))
        if unknown := sorted(set(options) - every):
            raise ValueError(
                f"unknown option {unknown[0]!r}; choose one of {', '.join(sorted(own))}"
            )
        kept = {name: value for name, value in options.items() if name in own}
        return super().compute(predictions=predictions, references=references, **kept)  # type: ignore[misc]


def _features(rows: Mapping[str, Check]) -> Any:
    """The inputs as evaluate declares them; answers may be texts, or lists of texts."""
    import datasets

    text, number = datasets.Value("string"), datasets.Value("float64")
    kinds: dict[Any, Any] = {number_rows: number, score_rows: datasets.Sequence(number)}

    def declared(answers: Any) -> Any:
        kind = {**kinds, answer_rows: answers}
        return datasets.Features({name: kind.get(check, text) for name, check in rows.items()})

    if answer_rows in rows.values():
        return [declared(text), declared(datasets.Sequence(text))]
    return declared(text)


def _stored(values: Any, check: Check, name: str) -> Any:
    """The rows as evaluate stores them: labels and answers as texts."""
    if check is label_rows:
        return list(label_texts(values, name))
    if check is answer_rows:
        return [
            list(label_texts(row, name)) if is_ordered(row) else label_texts([row], name)[0]
            for row in values
        ]
    return _plain(values)


def _plain(values: Any) -> Any:
    if isinstance(values, (list, np.ndarray)):
        return values
    return values.to_numpy().tolist() if hasattr(values, "to_numpy") else list(values)


def _options(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {
        p.name
        for p in parameters
        if p.name not in ("predictions", "references") and p.kind is not p.VAR_KEYWORD
    }

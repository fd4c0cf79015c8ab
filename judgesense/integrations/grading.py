"""One judge on one test case at a time: what the adapters of test frameworks share."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judgesense.errors import JudgeSenseError
from judgesense.serving.served_judge import as_text
from judgesense.text import join, number

if TYPE_CHECKING:
    from judgesense.pipeline.verdict_files import ItemVerdict


@dataclass(frozen=True)
class Grade:
    """A verdict on a test case, and whether it passes.

    ``passed`` is None if the judge gave no verdict (UNCLEAR, REFUSED or ERROR). ``reason`` is one
    line: the verdict, its probability and margin where the judge has them, and whether a person
    should look.
    """

    passed: bool | None
    reason: str
    verdict: ItemVerdict

    @property
    def score(self) -> float | None:
        """1.0 for a pass, 0.0 for a fail, None without a verdict."""
        return None if self.passed is None else float(self.passed)


class Grader:
    """A loaded judge that passes or fails test cases.

    Calls from several threads wait for one another: a judge answers one case at a time.

    Args:
        judge: a stabilised judge's file; or any other judge (a name, Hub id, path, function or
            loaded judge), with ``task``.
        passing: the verdicts that pass, such as ``["YES"]`` or ``["4", "5"]``.
        fields: the field that the judge's wordings show -> the name in the test case. A field of
            the same name may be left out.
        judge_options: ``task``, ``wording`` and ``scoring`` for a judge that is not stabilised, as
            in `judgesense.load_judge`; and the engine's options, such as ``base_url``.

    Raises:
        JudgeSenseError: a judge that cannot be loaded, or labels and fields that it does not have.

    >>> from local_judges.callable_judge import CallableJudge
    >>> judge = CallableJudge(lambda messages: ["NO" for _ in messages], name="no")
    >>> grader = Grader(judge, passing=["YES"], task="factuality", scoring="generate",
    ...                 fields={"response": "output"})
    >>> grader({"question": "Is the sky green?", "output": "Yes."}).passed
    False
    """

    def __init__(
        self,
        judge: Any,
        *,
        passing: Collection[str],
        fields: Mapping[str, str] | None = None,
        **judge_options: Any,
    ) -> None:
        from judgesense.pipeline.verdicts import load_judge

        self._lock = threading.Lock()
        self._judge = load_judge(judge, **judge_options)
        self.name: str = self._judge.judge.name
        self._passing, self._fields = frozenset(passing), dict(fields or {})
        labels, shown = self._judge.stabilised.rule.labels, self._judge.stabilised.fields
        problem = None
        if not self._passing < set(labels) or not self._passing:
            problem = (
                f"passing is {', '.join(map(str, passing)) or 'empty'}; name some of the verdicts "
                f"{', '.join(labels)}, but not all"
            )
        elif unknown := sorted(self._fields.keys() - shown):
            problem = (
                f"fields: the wordings of {self.name} do not show {unknown[0]!r}; they show "
                f"{join(sorted(shown))}"
            )
        if problem:
            self.close()
            raise JudgeSenseError(problem)

    def __call__(self, case: Mapping[str, Any]) -> Grade:
        """Judge a test case: a mapping from names to values.

        A list of texts is joined by blank lines; anything else that is no text is shown as JSON.

        Raises JudgeSenseError naming a field that the test case lacks.
        """
        item = {}
        for field in sorted(self._judge.stabilised.fields):
            name = self._fields.get(field, field)
            if (value := case.get(name)) is None:
                known = join(sorted(name for name, value in case.items() if value is not None))
                raise JudgeSenseError(
                    f"the wordings of {self.name} show {field!r}, and the test case has no "
                    f"{name!r} (it has {known or 'nothing'}); map it with fields: "
                    f"{{{field}: NAME}}"
                )
            item[field] = as_text(value)
        with self._lock:
            (verdict,) = self._judge([item])
        return self._grade(verdict)

    def _grade(self, verdict: ItemVerdict) -> Grade:
        if verdict.verdict not in self._judge.stabilised.rule.labels:
            why = verdict.error or "the judge's answer holds no verdict"
            return Grade(None, f"{verdict.verdict}: {why}", verdict)
        figures = {"probability": verdict.probability, "margin": verdict.margin,
                   "expected score": verdict.score}  # fmt: skip
        known = [f"{name} {number(x, 2)}" for name, x in figures.items() if x is not None]
        reason = verdict.verdict + (f" ({', '.join(known)})" if known else "")
        if verdict.ask_person:
            reason += "; ask a person: the margin is below the judge's threshold"
        return Grade(verdict.verdict in self._passing, reason, verdict)

    def close(self) -> None:
        """Free the judge."""
        self._judge.close()

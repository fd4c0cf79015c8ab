r"""Mathematical answers: the content of ``\boxed`` or ``\fbox``, compared by math-verify."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress

from judgesense.answers.matching.result import AnswerMatch, Reading, Reference, accepted, collect
from judgesense.errors import JudgeSenseError, MissingExtraError

START_LIMIT_S = 120.0
"""Seconds for the comparing process to import sympy on a slow disk."""

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=[{\w\\-])")
_PLAIN = (
    (re.compile(r"\\(?:text|textbf|mathrm|mbox|textrm)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:left|right|displaystyle|,|;|!|:)(?![A-Za-z])|\\ "), ""),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"^\$+|\$+$|^\\\(|\\\)$|^\\\[|\\\]$|\\\$"), ""),
    (re.compile(r"\s+|\.$"), ""),
)


def last_boxed(text: str) -> str | None:
    r"""The content of the last complete ``\boxed{...}`` or ``\fbox{...}``, or None.

    Braces are balanced; ``\boxed 5`` (one token without braces) counts too. Source: MATH's
    ``last_boxed_only_string`` (Hendrycks et al., 2021b), "Artifact or Flaw?", Appendix C.

    >>> last_boxed(r"so \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    """
    for found in reversed(list(_BOX.finditer(text))):
        rest = text[found.end() :]
        if not rest.startswith("{"):
            token = re.match(r"\\?[\w.]+|-\d[\d.]*", rest)
            return token.group().rstrip(".") if token else None
        depth = 0
        for place, character in enumerate(rest):
            escaped = place > 0 and rest[place - 1] == "\\"
            depth += 0 if escaped else {"{": 1, "}": -1}.get(character, 0)
            if depth == 0:
                return rest[1:place].strip()
    return None


def plain_latex(text: str) -> str:
    r"""LaTeX without its purely visual parts: spacing, ``\left``, ``\dfrac``, ``\text{}``.

    >>> plain_latex(r"\dfrac{1}{2}\text{ m}")
    '\\frac{1}{2}m'
    """
    text = text.strip()
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    return text


def match_math(
    predictions: Sequence[str], references: Sequence[Reference], time_limit_s: float = 5.0
) -> AnswerMatch:
    r"""1.0 for every response whose answer equals an accepted one mathematically, else 0.0.

    The answer is the content of the last ``\boxed`` or ``\fbox``. A response without one goes to
    math-verify whole, which looks for "answer is ..." and then for the last expression. Equal
    LaTeX (spacing aside) matches at once; math-verify compares everything else in a process of its
    own, which works in any thread and on any system. Source: "Artifact or Flaw?", section 3.2 and
    Appendix C.

    Args:
        references: LaTeX without dollar signs, as in MATH.
        time_limit_s: seconds per response; a response that takes longer is unread.

    Raises:
        MissingExtraError: math-verify is not installed.
        JudgeSenseError: a limit that is not positive.

    >>> match_math([r"So \boxed{\dfrac{1}{2}}."], [r"\frac{1}{2}"]).score
    1.0
    """
    if not time_limit_s > 0:
        raise JudgeSenseError(f"time_limit_s is {time_limit_s}: pass a number of seconds above 0")
    if importlib.util.find_spec("math_verify") is None:
        raise MissingExtraError("math-verify", "match", "matching mathematical answers")
    with closing(_Comparer(time_limit_s)) as comparer:
        pairs = zip(predictions, references, strict=True)
        return collect(
            "math", [_score(text, accepted(answers), comparer) for text, answers in pairs]
        )


def _score(text: str, wanted: tuple[str, ...], comparer: _Comparer) -> tuple[float, Reading]:
    boxed = last_boxed(text)
    if boxed is None and _BOX.search(text):
        return 0.0, Reading(None, "box never closed")
    if boxed is None and not text.strip():
        return 0.0, Reading(None, "empty response")
    said = plain_latex(text if boxed is None else boxed)
    if said and said in {plain_latex(answer) for answer in wanted}:
        return 1.0, Reading(text.strip() if boxed is None else boxed)
    # A response that is only LaTeX is read like the content of a box.
    alone = boxed is None and "\\" in text and "$" not in text and len(text.split("\n")) == 1
    reply = comparer.ask(
        text if boxed is None and not alone else f"\\boxed{{{boxed or text.strip()}}}",
        [f"\\boxed{{{answer}}}" for answer in wanted],
    )
    if problem := reply.get("problem"):
        return 0.0, Reading(None, str(problem))
    if reply["read"] is None and not boxed:
        return 0.0, Reading(None, "no expression found")
    return float(bool(reply["match"])), Reading(boxed or str(reply["read"]))


class _Comparer:
    """A math-verify process, started at the first question and replaced after a timeout."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._process: subprocess.Popen[str] | None = None

    def ask(self, said: str, wanted: list[str]) -> dict[str, object]:
        """The process's reply: ``read`` and ``match``, or ``problem``."""
        if self._process is None:
            self._start()
        return self._exchange({"said": said, "wanted": wanted}, self.limit_s)

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "judgesense.answers.matching.maths_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if "problem" in self._exchange(None, START_LIMIT_S):
            raise JudgeSenseError(
                "math-verify did not start in its own process; to see the error, run: "
                f"{sys.executable} -m judgesense.answers.matching.maths_worker"
            )

    def _exchange(self, request: object, limit_s: float) -> dict[str, object]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        # Killing the process ends the read below, in any thread and on any system.
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        alarm = threading.Timer(limit_s, expire)
        alarm.start()
        try:
            if request is not None:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            alarm.cancel()
        if not line.endswith("\n"):
            self.close()
            slow = f"more than {limit_s:g} s to compare"
            return {"problem": slow if expired.is_set() else "math-verify's process died"}
        reply: dict[str, object] = json.loads(line)
        return reply

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError):
                process.communicate()

"""What the vLLM judge says, from the environment that has vLLM: answers, and a run beside them.

python vllm_answers.py MODEL_FOLDER OUT.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mixed_requests import NESTED, SENTENCES, YES_NO, mixed_requests

from judgesense.errors import JudgeSenseError
from judgesense_dataset.embedded import load_embedded
from local_judges.local.vllm_judge import VllmJudge
from local_judges.protocol import Answer, Request
from local_judges.runner import ask_all, run_judge

SETTINGS = {
    "dtype": "float32",
    "gpu_memory_utilization": 0.4,
    "max_model_len": 1024,
    "enforce_eager": True,
}
BOTH = frozenset({"generate", "options"})
KINDS = (YES_NO, SENTENCES, NESTED)
TASKS, LIMIT = ["factuality", "preference"], 8


def asked() -> list[Request]:
    """Options of each kind, some inside the form of a reply."""
    forms = ("", '{"verdict": "ANSWER"}', "", "Verdict: ANSWER")
    return [
        replace(request, reply_form=forms[n % len(forms)])
        for n, request in enumerate(mixed_requests(18, KINDS, 60))
    ]


def too_long() -> Request:
    return Request("long", "word " * 2000, ("YES", "NO"))


def ask(judge: VllmJudge, requests: Sequence[Request], *scorings: str) -> list[Answer]:
    plan = judge.plan(requests, frozenset(scorings))
    assert plan == judge.plan(requests, frozenset(scorings))
    assert sorted(n for batch in plan for n in batch) == list(range(len(requests)))
    return ask_all(judge, requests, scorings)


def refusal(model: Path, **settings: object) -> str:
    """How a judge with these settings is refused."""
    try:
        VllmJudge(model, **{**SETTINGS, **settings})
    except JudgeSenseError as error:
        return str(error)
    return ""


def main(model: Path, out: Path) -> None:
    refused = {
        "max_model_len": refusal(model, max_model_len=9000),
        "temperature": refusal(model, temperature=3.0),
        "dummy": refusal(out.parent, load_format="dummy"),
    }
    judge = VllmJudge(model, **SETTINGS)
    requests = asked()
    answers = ask(judge, [*requests, too_long()], *BOTH)
    alone = ask(judge, requests[:3], "options")
    engine = judge.llm
    drawn: list[list[str | None]] = []
    for seed, some in ((0, requests[:6]), (0, requests[3:6]), (1, requests[:6])):
        other = VllmJudge(model, **SETTINGS, temperature=1.0, seed=seed, max_tokens=6)
        other._llm = engine  # one engine is enough for this process
        drawn.append([answer.text for answer in ask(other, some, "generate")])
    data = load_embedded().select(TASKS, limit=LIMIT)
    run_judge(judge, data, out.parent / "run", sorted(BOTH))
    record = {
        "name": judge.name,
        "describe": dict(judge.describe()),
        "refused": refused,
        "answers": [
            {name: getattr(answer, name) for name in Answer.__slots__} for answer in answers
        ],
        "alone": [answer.option_logprobs for answer in alone],
        "drawn": drawn,
        "counters": dict(judge.counters),
    }
    out.write_text(json.dumps(record), encoding="utf-8")
    judge.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

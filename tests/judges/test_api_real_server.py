"""A real server with a real model behind the API judge, and faults in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import FAULTS
from fault_trial import decisions, expected, local_judge, real_server, run_trial, sums

from judgesense_dataset.embedded import load_embedded
from local_judges.api.judge import ApiJudge
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.runner import run_judge

pytestmark = pytest.mark.slow
MAX_TOKENS = 5
"""Few, because the server answers one question at a time, a token a forward."""


@pytest.fixture(scope="module")
def local() -> TransformersJudge:
    return local_judge()


@pytest.fixture(scope="module")
def server(local: TransformersJudge) -> Iterator[str]:
    with real_server(local.folder) as url:
        yield url


def test_decisions_equal_the_local_judges(
    server: str, local: TransformersJudge, tmp_path: Path
) -> None:
    data = load_embedded().select(["factuality", "coherence"], limit=2)
    written = TransformersJudge("smollm2-135m", max_tokens=MAX_TOKENS)
    run_judge(written, data, tmp_path / "local", ["generate"])
    asked = {"logprobs": False, "concurrency": 2, "max_tokens": MAX_TOKENS}
    judge = ApiJudge(str(local.folder), base_url=server, **asked)  # type: ignore[arg-type]
    outcome = run_judge(judge, data, tmp_path / "openai", ["generate"])
    assert outcome.failed == []
    assert decisions(tmp_path / "openai") == decisions(tmp_path / "local")


def test_kills_and_faults_lose_nothing_double_nothing_and_change_nothing(
    server: str, local: TransformersJudge, tmp_path: Path
) -> None:
    n = 256  # benchmarks/api_faults.py does 2,000 and ten kills
    wanted = expected(local, sums(n), tmp_path / "local")
    trial = run_trial(server, local.folder, n, kills=3, out=tmp_path / "api")
    assert trial.kills >= 2
    assert set(trial.faults) == set(FAULTS)
    assert trial.rows == dict.fromkeys(wanted, 1)
    assert trial.decisions == wanted
    assert trial.leaks == []

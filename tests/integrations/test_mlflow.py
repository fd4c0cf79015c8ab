"""The MLflow scorer with a real tracking server, as the page says."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Loopback, factual, section, serving, stable_file
from own_environment import ROOT, environment, python  # noqa: F401

from judgesense.errors import MissingExtraError

PAGE = section("MLflow")

READ = """
import json
client = mlflow.MlflowClient()
rows = [
    [a.feedback.value, a.rationale, a.error and a.error.error_code, a.source.source_id, a.metadata]
    for trace in client.search_traces([client.get_experiment_by_name("Default").experiment_id])
    for a in trace.info.assessments if a.name == "factual"
]
json.dump({"metrics": results.metrics, "rows": rows}, open("told.json", "w"))
"""


def test_without_mlflow_the_error_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"judgesense\[mlflow\]"):
        import judgesense.integrations.mlflow  # noqa: F401


@contextlib.contextmanager
def tracking(python: Path, home: Path) -> Iterator[str]:  # noqa: F811
    """A tracking server on the loopback with its files in ``home``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with (home / "server.log").open("w") as log:
        process = subprocess.Popen(
            [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
             "--workers", "1", "--backend-store-uri", "sqlite:///store.db",
             "--artifacts-destination", str(home / "artefacts")],
            cwd=home, env={**environment(home), "MLFLOW_DISABLE_TELEMETRY": "true",
                 "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            for _ in range(300):
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health"):
                    break
                if process.poll() is not None:
                    pytest.fail((home / "server.log").read_text()[-3000:])
                time.sleep(0.2)
            else:
                pytest.fail("the tracking server did not come up")
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


@pytest.mark.slow
def test_the_real_mlflow(python: Path, tmp_path: Path) -> None:  # noqa: F811
    (scoring,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "own.py").write_text(scoring + READ)
    with tracking(python, tmp_path) as tracker, serving(Loopback(factual)) as url:
        stable_file(tmp_path / "stable.yaml", f"{url}/v1")
        done = subprocess.run(
            [python, "own.py"], cwd=tmp_path, capture_output=True, text=True, timeout=400,
            env={**environment(tmp_path), "MLFLOW_TRACKING_URI": tracker,
                 "MLFLOW_DISABLE_TELEMETRY": "true"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "told.json").read_text("utf-8"))
    # The fourth answer has no verdict: two of three pass.
    assert found["metrics"]["factual/mean"] == pytest.approx(2 / 3)
    assert sorted((str(value), error) for value, _, error, _, _ in found["rows"]) == [
        ("False", None), ("None", "UNCLEAR"), ("True", None), ("True", None),
    ]  # fmt: skip
    asked = [row for row in found["rows"] if row[4].get("ask_person") == "True" and not row[2]]
    assert [row[4]["verdict"] for row in asked] == ["YES"]
    assert {row[3].split("@")[0] for row in found["rows"]} == {"rule-stabilised"}

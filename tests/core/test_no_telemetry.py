"""Nothing is sent anywhere: a run with a local judge opens no connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys

seen = []

def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        # Unix sockets stay on the machine.
        if event == "socket.getaddrinfo" or not isinstance(arguments[1], (str, bytes)):
            seen.append((event, arguments))

sys.addaudithook(watch)
import judgesense

judgesense.run("smollm2-135m", tasks=["relevance"], limit=1, scoring="options", out="out")
judgesense.report("out")
import socket
before = len(seen)
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1).close()
except OSError:
    pass
print(before, len(seen) > before)
"""


@pytest.mark.slow
def test_a_run_with_a_local_judge_opens_no_connection(tmp_path: Path) -> None:
    # Without HF_HUB_OFFLINE, so that a library that asked its Hub would be seen.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # None by the run; the hook sees the one opened at the end.
    assert done.stdout.split()[-2:] == ["0", "True"], done.stdout

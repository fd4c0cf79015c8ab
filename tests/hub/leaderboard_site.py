"""The leaderboard served for its browser tests, and what they share."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "tests" / "artifacts" / "leaderboard"
HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e${window.hacked=1}'
)


WATCH = """
import os, sys

def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "socket.sendto"):
        place = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
        host = place[0] if isinstance(place, tuple) else place
        with open(os.environ["ASKED"], "a") as asked:
            print(event, host, file=asked)

sys.addaudithook(watch)
"""
"""A ``sitecustomize`` module: notes every host that the server looks up or connects to."""
HERE = {"127.0.0.1", "localhost", "::1", "0.0.0.0", "None"}


def serve(results: Path, *options: str, watched: Path) -> tuple[subprocess.Popen, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "judgesense", "leaderboard", "--no-browser"]
    command += ["--port", str(port), "--results", str(results), *options]
    (watched / "sitecustomize.py").write_text(WATCH, "utf-8")
    asked = {"ASKED": str(watched / "asked"), "PYTHONPATH": f"{watched}{os.pathsep}{ROOT}"}
    env = {**os.environ, **asked, "no_proxy": "127.0.0.1"}
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    for _ in range(240):
        assert server.poll() is None, "the leaderboard did not start"
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return server, url
    server.kill()
    raise AssertionError("the leaderboard does not answer")


def picture(page, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def judges(page):
    return page.locator("#table tr[data-row]:not(.published) th.who a").all_inner_texts()


def settled(page, choose, changed):
    """Do something and wait until the page's expression is true."""
    choose()
    page.wait_for_function(changed)


def pick(page, name):
    page.locator(".filters label", has_text=name).first.click()

"""The leaderboard in a browser: runs are submitted (last, since one of them is then shown).

Needs Debian's Chromium (``apt-get install chromium``); screenshots are left in tests/artifacts.
"""

from __future__ import annotations

import json
import shutil

import pytest
from leaderboard_site import picture
from rule_run import make_run

pytestmark = pytest.mark.slow


def test_a_good_run_is_accepted_and_then_on_the_table(visit, tmp_path):
    run = make_run(tmp_path / "by-rule")
    archive = shutil.make_archive(str(tmp_path / "good"), "zip", run.parent, run.name)
    page = visit("submit", wait="#upload")
    page.locator("#upload input[type=file]").set_input_files(archive)
    page.wait_for_selector("#upload :text('good')")
    page.get_by_role("button", name="Check").click()
    page.wait_for_selector("#checks [role=status]")
    assert "Accepted" in page.locator("#checks").inner_text()
    assert "Added as" in page.locator("#checks").inner_text()
    assert page.locator("#checks li.use").count() == 7
    picture(page, "submit-good")


def test_a_bad_run_is_refused_with_the_reason(visit, tmp_path):
    run = make_run(tmp_path / "by-rule")
    path = run / "report.json"
    report = json.loads(path.read_text("utf-8"))
    report["cells"][0]["accuracy"] = 1.0
    path.write_text(json.dumps(report), "utf-8")
    page = visit("submit", wait="#upload")
    files = [path, run / "run.json", run / "pairs.parquet", *run.glob("decisions/*")]
    page.locator("#upload input[type=file]").set_input_files([str(file) for file in files])
    page.wait_for_selector("#upload :text('pairs')")
    page.get_by_role("button", name="Check").click()
    page.wait_for_selector("#checks [role=status]")
    text = page.locator("#checks").inner_text()
    assert "Refused" in text
    assert "accuracy is 1.0, but recomputed" in text
    picture(page, "submit-bad")

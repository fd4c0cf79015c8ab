"""The documentation site: it builds without a warning and loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
import pytest
import yaml

import judgesense

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def build(config, site):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site]
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


class Loads(HTMLParser):
    """What a browser fetches for a page by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.found.append(named.get("src") or named.get("srcset"))
        elif tag == "link" and named.get("rel") in ("stylesheet", "preconnect", "icon", "preload"):
            self.found.append(named.get("href"))


def _path(address):
    """Without its query and fragment."""
    return re.split("[?#]", address)[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_every_page_is_built_and_linked_from_the_navigation(site):
    home = (site / "index.html").read_text("utf-8")
    linked = set(re.findall(r'href="(?:\./)?([\w/.-]+\.html)"', home))
    sections = {page.rsplit("/", 1)[0] for page in linked if "/" in page}
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / path).is_file(), path
        # Tabs lead to each section; its pages stand in its own navigation.
        near = (site / path).read_text("utf-8")
        assert f'href="{path.rsplit("/", 1)[-1]}"' in near or 'md-nav__link--active"' in near, path
        assert "/" not in path or path.split("/")[0] in sections, path


def test_the_reference_shows_functions_and_commands_as_they_are(site):
    python = (site / "reference" / "python.html").read_text("utf-8")
    assert "judgesense.run" in python
    assert "confidence_level" in python
    commands = (site / "reference" / "cli.html").read_text("utf-8")
    assert "cli/publish.html" in commands
    assert "dtype" in commands
    publish = (site / "reference" / "cli" / "publish.html").read_text("utf-8")
    assert "--dry-run" in publish


def test_the_site_loads_nothing_from_elsewhere_and_holds_no_scripts_of_ours(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text("utf-8"))
        # In raw HTML no link is checked by the build.
        absent = [src for src in loads.found if src and not (page.parent / _path(src)).is_file()]
        assert not absent or page.name == "404.html", (page, absent)
        assert not [load for load in loads.found if load and "//" in load], page
    elsewhere = re.compile(r"(@import|url\()\s*[\"']?(https?:)?//")
    for sheet in site.rglob("*.css"):
        assert not elsewhere.search(sheet.read_text("utf-8")), sheet
    assert not list(site.rglob("*.py"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[there](absent.md)", "absent.md"),
        ("[there](other.md#absent)", "does not contain an anchor '#absent'"),
        ("![picture](images/absent.png)", "images/absent.png"),
    ],
)
def test_a_broken_link_anchor_or_picture_fails_the_build(tmp_path, text, told):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# One\n\n{text}\n", "utf-8")
    (docs / "other.md").write_text("# Other\n\n## Here\n", "utf-8")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    kept = {"validation": config["validation"], "plugins": [], "site_name": "Small"}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(kept), "utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert told in done.stderr


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_first_pages(site, browser, violations, scheme):
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    found = {}
    for name in ("index", "check", "report", "hub/leaderboard"):
        page.goto((site / f"{name}.html").as_uri())
        found[name] = violations(page)
    context.close()
    assert not any(found.values()), found


@pytest.fixture
def served(site):
    """The site on a port of its own: a browser searches only over HTTP."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# What newcomers type: words of issues and articles on judges elsewhere, and words that once failed.
QUESTIONS = {
    "getting started": "tutorial",
    "my own judge": "tutorial judges/registry check",
    "is my judge right": "check trust",
    "align judge with human labels": "check label-and-estimate improve",
    "evaluator": "check trust serve judges/registry",
    "dataframe": "check import",
    "stabilize": "improve report",
    "paraphrasing": "data/audit report",
    "migrate": "compare-and-monitor",
    "drift": "compare-and-monitor",
    "compare two models": "compare-and-monitor hub/leaderboard",
    "how many labels": "label-and-estimate trust",
    "api key": "judges/api",
    "cost": "judges/api",
    "ollama": "judges/api",
    "position bias": "metrics/jss",
    "prompt injection": "attacks",
    "confidence interval": "metrics/intervals",
    "github actions": "integrations",
    "self-hosted model": "judges/local judges/vllm serve",
    "mislabelled examples": "data/audit",
    "cohen's kappa": "metrics/jss metrics/intervals check",
    "which kinds of questions does the autorater get wrong": "report check",
    "improve my evaluator without switching to a bigger model": "improve",
    "torch.cuda.OutOfMemoryError: CUDA out of memory": "judges/local judges/vllm",
    "same question different wording gives different grade": "check report",
    "what to do when the model replies with rambling text instead of a verdict": "judges/parsing",
    "scores differ when executed multiple times": "judges/local report metrics/jss",
}


def test_the_search_fetches_its_index_when_used_and_answers_newcomers(served, browser):
    page = browser.new_page()
    fetched = []
    page.on("request", lambda request: fetched.append(request.url.rsplit("/", 1)[-1]))
    found = {}
    for words in QUESTIONS:
        page.goto(f"{served}/trust.html", wait_until="networkidle")
        assert "search_index.json" not in fetched
        page.keyboard.press("/")
        page.locator(".md-search__input").press_sequentially(words)
        page.locator(".md-search-result__item").first.wait_for()
        page.wait_for_timeout(500)  # the last letter's results replace those of the first
        links = page.locator(".md-search-result__item > a.md-search-result__link:first-child")
        addresses = [links.nth(n).get_attribute("href") for n in range(min(3, links.count()))]
        found[words] = [_path(link.split(f"{served}/")[-1])[: -len(".html")] for link in addresses]
        assert fetched.count("search_index.json") == 1
        fetched.clear()
    page.close()
    missed = {
        words: pages
        for words, pages in found.items()
        if not set(pages) & set(QUESTIONS[words].split())
    }
    assert len(missed) <= 2, missed


def test_language_models_find_every_page(site):
    listed = (site / "llms.txt").read_text("utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \w", listed, re.MULTILINE)
    assert {"check.html", "improve.html", "trust.html"} <= set(links)
    assert all((site / link).is_file() for link in links)
    whole = (site / "llms-full.txt").read_text("utf-8")
    assert all(f"<!-- {link} -->" in whole for link in links)


def test_a_report_fits_its_published_schema(site, tmp_path):
    schema = json.loads((site / "report.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    judgesense.demo(tmp_path / "demo")
    report = json.loads((tmp_path / "demo" / "report.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(report)] == []
    report["trust"][0]["trust"] = "perhaps"
    assert len(list(validator.iter_errors(report))) == 1

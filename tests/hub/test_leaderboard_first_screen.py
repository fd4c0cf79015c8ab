"""The leaderboard's first page: it has its table before Gradio's scripts are there."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from hub_scripts.leaderboard.answers import MOST_KEPT, Answers
from hub_scripts.leaderboard.sources import EmbeddedSource
from hub_scripts.leaderboard.web import app_options

SHEET = '<link rel="stylesheet" crossorigin href="./assets/a.css">'
START = '<script type="module" crossorigin src="./assets/a.js"></script>'
PAGE = (
    f"<html><head><title>Gradio</title>{START}{SHEET}</head>"
    "<body><gradio-app></gradio-app></body></html>"
)


@pytest.fixture(scope="module")
def site():
    """The site's own answers around a page that stands for Gradio's; ``site.asked`` counts it."""
    asked = []

    def page(request):
        asked.append(request.url.path)
        if "broken" in request.query_params:
            return PlainTextResponse("no", status_code=500)
        return HTMLResponse(PAGE)

    options = app_options(EmbeddedSource())
    routes = [*options["routes"], Route("/", page), Route("/judge", page), Route("/x", page)]
    client = TestClient(Starlette(routes=routes, middleware=options["middleware"]))
    client.asked = asked
    return client


def test_the_page_has_the_table_of_its_address_before_gradio(site):
    page = site.get("/", params={"task": "relevance", "find": "smol"}).text
    table, _, rest = page.partition("<gradio-app")
    assert "<caption>Judges on relevance by mapped JSS</caption>" in table
    assert table.count(" data-row>") == 1
    assert 'href="?task=relevance" class="active"' in table
    assert rest == "></gradio-app></body></html>"
    assert page.partition("</head>")[0].count("<title>") == 1
    # The browser draws the table before it takes what Gradio needs; the site's own style is last.
    head, _, body = table.partition("</head>")
    assert "a.js" not in head
    assert head.index('media="print" onload="this.media=\'all\'" cross') < head.index(
        ".site .chart"
    )
    assert body.index("data-row") < body.index("'./assets/a.js'")
    other = site.get("/judge").text.partition("</head>")[0]
    assert other.index(START) < other.index(SHEET) < other.index(".site .chart")
    other = site.get("/judge").text
    assert "<table" not in other
    assert site.get("/x").text == PAGE


def test_a_page_is_made_once_and_a_browser_that_has_it_gets_no_second_one(site):
    first = site.get("/?task=coherence&__sign=1")
    made = len(site.asked)
    again = site.get("/?task=coherence&__sign=2", headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert len(site.asked) == made
    # A page that Gradio makes for one link is not kept.
    site.get("/?task=coherence&deep_link=a")
    assert len(site.asked) == made + 1
    other = site.get("/?task=factuality", headers={"If-None-Match": first.headers["ETag"]})
    assert other.status_code == 200


def test_an_error_of_gradio_is_passed_on_and_not_kept(site):
    answer = site.get("/?broken=1&deep_link=1")
    assert (answer.status_code, answer.text) == (500, "no")
    assert site.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/table.html"])
def test_texts_are_compressed_for_those_who_take_it(site, path):
    plain = site.get(path, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    small = site.get(path, headers={"Accept-Encoding": "gzip"})
    assert small.headers["Content-Encoding"] == "gzip"
    assert int(small.headers["Content-Length"]) < len(plain.content) / 2
    assert small.content == plain.content


def test_answers_are_made_once_and_the_oldest_go():
    answers, made = Answers(), []

    def make(key):
        made.append(key)
        return f"text {key}"

    async def ask():
        several = [answers.get(0, lambda: make(0)) for _ in range(5)]
        first = await asyncio.gather(*several)
        for key in range(1, MOST_KEPT + 1):
            await answers.get(key, lambda key=key: make(key))
        return first

    first = asyncio.run(ask())
    assert made == list(range(MOST_KEPT + 1))
    assert {answer.tag for answer in first} == {first[0].tag}
    assert gzip.decompress(first[0].zipped) == b"text 0"
    asyncio.run(answers.get(0, lambda: make(0)))
    assert made[-1] == 0

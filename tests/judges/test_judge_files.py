"""Judges and endpoints from a file of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_file import no_file_of_ones_own, own_file  # noqa: F401  (a fixture)

from judgesense.errors import JudgeSenseError
from local_judges.judge_files import VARIABLE, entries
from local_judges.registry import entry, resolve

OWN = """
endpoints:
  house:
    base_url: http://localhost:8000/v1
    key_variable: HOUSE_KEY
    style: {sends_seed: false}
judges:
  our-judge:
    summary: The house model
    endpoint: house
    model: house-7b
    price: {input: 0.5, output: 1.5, source: the contract, date: 2026-01-01}
    style: {min_temperature: 0.01}
    options: {concurrency: 4}
  gpt-4o-cheap:
    endpoint: openai
    model: gpt-4o-2024-11-20
"""


def test_a_file_of_ones_own_adds_judges_and_endpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own_file(tmp_path, monkeypatch, OWN)
    spec = resolve("our-judge")
    assert spec.options["price"] == (0.5, 1.5)
    assert spec.options["style"] == {"sends_seed": False, "min_temperature": 0.01}
    assert spec.options["concurrency"] == 4
    assert resolve("gpt-4o-cheap").options["key_variable"] == "OPENAI_API_KEY"
    assert resolve("gpt-4o").model == "gpt-4o-2024-08-06"
    assert entry("our-judge").file == str(path)
    assert resolve("our-judge", price=(2.0, 3.0)).options["price"] == (2.0, 3.0)


def test_the_example_in_the_docs_is_a_judge_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "judges" / "registry.md"
    example = page.read_text("utf-8").split("```yaml\n")[1].split("```")[0]
    own_file(tmp_path, monkeypatch, example)
    assert resolve("house-judge").options["requests_per_minute"] == 600


BASE = "judges:\n  mine:\n    endpoint: openai\n    model: m\n"
LINES = [
    ("modle: m", r"judges\.mine\.modle: unknown key; did you mean model"),
    ("options: {max_token: 3}", r"mine\.options\.max_token: unknown option"),
    ("options: {price: [1, 2]}", r"mine\.options\.price: write it outside options"),
    ("style: {temprature: 1}", r"judges\.mine\.style\.temprature: unknown"),
    ("style: {system_role: 'no'}", r"style\.system_role: must be a valid boolean"),
    ("style: {extra_body: 3}", r"style\.extra_body: must be a mapping, got 3"),
    ("options: {max_tokens: '20'}", r"options\.max_tokens: must be a valid integer"),
    ("options: {max_tokens: true}", r"must be a valid integer, got True"),
    ("options: {timeout_s: .inf}", r"options\.timeout_s: must be a number, got inf"),
    ("options: {timeout_s: 0}", r"options\.timeout_s: must be greater than 0, got 0"),
    ("options: {logprobs: 'no'}", r"options\.logprobs: must be a valid boolean"),
    ("options: {system_prompt: 7}", r"options\.system_prompt: must be a valid string"),
    ("options: {requests_per_minute: 0.5}", r"greater than or equal to 1, got 0\.5"),
    ("price: {input: .nan, output: 2, source: s, date: d}", r"mine\.price\.input: .* number"),
    ("price: {input: a, output: 2, source: s, date: d}", r"mine\.price\.input: .* number"),
    ("price: {input: 1, output: 2}", r"mine\.price\.source: missing"),
    ("floating: 'yes'", r"judges\.mine\.floating: must be a valid boolean"),
    ("notes: [1]", r"judges\.mine\.notes: must be a valid string, got 1"),
    ("model: n", r"line 5: .*'model' appears twice"),
]
FILES = [
    (BASE.replace("openai", "opnai"), r"endpoint: unknown .*did you mean openai"),
    (BASE.replace("endpoint: openai", "engine: abacus"), r"mine\.engine: unknown engine"),
    (BASE.replace("    endpoint: openai\n", ""), r"needs an engine or an endpoint"),
    (BASE.replace("model: m", "model: 7"), r"mine\.model: must be a valid string, got 7"),
    (BASE.replace("mine", "gpt-4o"), r"judges\.gpt-4o: the name is taken"),
    (BASE.replace("mine", "a/b"), r"judges\.a/b: must be text without"),
    (
        "endpoints:\n  e: {base_url: u, options: {concurrency: 0}}\n",
        r"endpoints\.e\.options\.concurrency: must be greater than or equal to 1",
    ),
    ("endpoints:\n  e: {key_variable: K}\n", r"endpoints\.e: .* base_url or provider"),
    ("endpoints:\n  openai: {base_url: u}\n", r"endpoints\.openai: the name is taken"),
    ("judge: {}\n", r"judge: unknown key; did you mean judges"),
    ("judges: [a\n", r"line 2: invalid YAML"),
    ("", r"mine.yaml: must be a mapping, got None"),
]


@pytest.mark.parametrize(
    ("text", "reason"), [*((f"{BASE}    {line}\n", reason) for line, reason in LINES), *FILES]
)
def test_a_wrong_file_is_refused_with_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    path = own_file(tmp_path, monkeypatch, text)
    with pytest.raises(JudgeSenseError, match=reason) as raised:
        resolve("gpt-4o")
    assert str(raised.value).startswith(str(path))


def test_a_variable_that_names_no_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/no/such/file.yaml")
    with pytest.raises(JudgeSenseError, match=r"JUDGESENSE_JUDGES names /no/such/file\.yaml"):
        entries()

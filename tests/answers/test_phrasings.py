"""Every way to state a verdict is read, in any case and markup; its denial never is.

``phrasings.yaml`` has thirty ways to state each kind of option, and ways to deny it.
``verdicts.yaml`` has judges' answers that are easy to misread, with what each of them says.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.tasks import REFUSED, UNCLEAR

HERE = Path(__file__).parent
PHRASINGS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "phrasings.yaml").read_text("utf-8"))
VERDICTS: dict[str, Any] = yaml.safe_load((HERE / "verdicts.yaml").read_text("utf-8"))
PAIR, SCALE, POLAR = ("A", "B"), tuple("12345"), ("YES", "NO")

BEFORE = (
    "",
    "Let me weigh the evidence first.\n\n",
    "The text is long. It covers the topic in three ways.\n",
    "<think>Hard to tell.</think>\n",
)
AFTER = ("", "\n", "\n\nThe reasoning is sound and the style is clear.")


@pytest.mark.parametrize("kind", PHRASINGS)
def test_each_phrasing_is_read_with_text_before_and_after(kind: str) -> None:
    options = PHRASINGS[kind]["options"].split(" | ")
    missed = [
        (text, parse(text, options))
        for option in options
        for phrasing in PHRASINGS[kind]["stated"]
        for before in BEFORE
        for after in AFTER
        # A bare option is an answer only where it begins or ends the text.
        if not (before and after)
        for text in [before + phrasing.format(x=option) + after]
        if parse(text, options) != option
    ]
    assert missed == []


@pytest.mark.parametrize("kind", PHRASINGS)
def test_no_denial_is_read_as_the_option(kind: str) -> None:
    options = PHRASINGS[kind]["options"].split(" | ")
    read = [
        (text, option)
        for option in options
        for denial in PHRASINGS[kind]["denied"]
        for before in BEFORE
        for after in AFTER
        for text in [before + denial.format(x=option) + after]
        if parse(text, options) == option
    ]
    assert read == []


@given(
    st.sampled_from(list(PHRASINGS.values())),
    st.data(),
    st.sampled_from([str, str.lower, str.upper]),
    st.sampled_from(["{}", "**{}**", "`{}`", "> {}", "## {}", "  {}  ", "\u200f{}\u200e"]),
)
def test_case_and_markup_do_not_matter(kind, data, cased, markup) -> None:
    options = kind["options"].split(" | ")
    option = data.draw(st.sampled_from(options))
    phrasing = data.draw(st.sampled_from(kind["stated"]))
    words = (
        phrasing.format(x=option)
        if phrasing[:1] in "{[<\\`"
        else cased(phrasing).format(X=option, x=option)
    )
    if markup == "> {}":
        # A quotation beside other text is the judged text's; a text that is all quoted is read.
        words = words.replace("\n\n", "\n> ")
    assert parse(markup.format(words), options) == option
    denial = data.draw(st.sampled_from(kind["denied"])).format(x=option)
    assert parse(markup.format(denial), options) != option


TEXTS = [
    pytest.param(text, options.split(" | "), verdict, id=f"{form}-{verdict}-{n}")
    for form, answers in VERDICTS["texts"].items()
    for options, verdicts in answers.items()
    for verdict, texts in verdicts.items()
    for n, text in enumerate(texts)
] + [
    pytest.param(echo["question"] + text, echo["options"].split(" | "), verdict, id=f"echo-{n}")
    for echo in VERDICTS["echoes"]
    for verdict, texts in echo["answers"].items()
    for n, text in enumerate(texts)
]


@pytest.mark.parametrize(("text", "options", "verdict"), TEXTS)
def test_an_answer_says_its_verdict_or_none(text: str, options: list[str], verdict: str) -> None:
    assert parse(text, options) == verdict


@given(
    st.text(),
    st.sampled_from([PAIR, SCALE, POLAR, ("A", "B", "TIE"), ("m", "M"), ("GOOD", "GOOD ENOUGH")]),
)
def test_any_text_is_an_option_or_a_word_for_none(text, options) -> None:
    assert parse(text, options) in {*options, UNCLEAR, REFUSED}


@pytest.mark.parametrize("entry", VERDICTS["aliases"])
def test_a_template_may_name_further_answers(entry: dict[str, Any]) -> None:
    for verdict, texts in entry["answers"].items():
        for text in texts:
            assert parse(text, entry["options"].split(" | "), entry["aliases"]) == verdict, text


@pytest.mark.parametrize(
    ("alias", "text"),
    [
        ("si", "s\u0131"),
        ("iki", "\u0130KI"),
        ("Straße", "STRASSE"),
        ("a|b)(", "A|B)("),
        ("👍", "👍🏽"),
    ],
)
def test_an_alias_in_any_case_and_script_is_no_error(alias: str, text: str) -> None:
    for said in (text, f"Mine is {text}.", f"{text} is better, {text}!", f"[[{text}]]"):
        for options in (PAIR, POLAR, SCALE):
            assert parse(said, options, {options[0]: [alias]}) in {*options, UNCLEAR}


@pytest.mark.parametrize(
    "aliases", [{"C": ["drei"]}, {"A": ["eins"], "B": ["EINS"]}, {"A": ["(b)"]}, {"A": ["!"]}]
)
def test_an_alias_of_no_option_or_of_two_is_refused(aliases: dict[str, list[str]]) -> None:
    with pytest.raises(JudgeSenseError, match=r"^aliases: "):
        parse("eins", PAIR, aliases)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10_000_000,
        "A is " * 2_000_000,
        "(" * 1_000_000,
        "[[" * 500_000,
        "{" * 1_000_000,
        "\\boxed{" * 200_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        "[" * 100_000,
        "4 " * 500_000,
        "4/" * 500_000,
        "not " * 300_000,
        "\x00" * 1000 + "A",
        "\ud800 B \udfff",
        "the answer is " * 100_000,
        "Response A and " * 100_000,
        "<think>" * 200_000,
        "1\n" * 500_000,
        '"score": ' * 100_000,
        "9" * 1_000_000,
        "A, " * 300_000,
        " \n" * 1_000_000,
        "**" * 1_000_000,
        "better than " * 100_000,
        "\u202eB si A\u202c \u200f" * 100_000,
        "B \u0627\u0644\u0625\u062c\u0627\u0628\u0629\u200f",
        '{"verdict":' * 10_000,
        "{'a': " * 10_000 + "}" * 10_000,
        "```json\n" * 100_000,
        "\ud83d" * 1_000_000,
        "e\u0301\u0323" * 1_000_000,
        "ﷺ" * 500_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_text_ends_in_a_verdict_or_unclear(text: str) -> None:
    spaces: list[tuple[str, ...]] = [PAIR, SCALE, POLAR, ("A", "B", "C"), ("m", "M"), ("1", "10")]
    for options in (*spaces, ("GOOD", "GOOD ENOUGH")):
        assert parse(text, options) in {*options, UNCLEAR, REFUSED}
    aliases = {"YES": ["not a", "((x"], "NO": ["\u0627\u0644", "e\u0301\u0323"]}
    assert parse(text, POLAR, aliases) in {*POLAR, UNCLEAR, REFUSED}


def test_no_kind_of_text_is_misread() -> None:
    """`kinds.jsonl`: numbered candidates, comparisons, repeated instructions, quotations, grades,
    rankings, several markers, leaked channels, criteria (a to i), examples in instructions and
    verdicts that are withdrawn or another's (j), and others."""
    rows = [json.loads(line) for line in (HERE / "kinds.jsonl").read_text("utf-8").splitlines()]
    misread = [
        (row["text"], verdict)
        for row in rows
        for verdict in [parse(row["text"], row["options"])]
        if verdict != row["label"] and not (verdict == REFUSED and row["label"] == UNCLEAR)
    ]
    assert misread == []


def test_real_outputs_are_read(shared: Path) -> None:
    lines = (shared / "judge_outputs" / "corpus.jsonl").read_text("utf-8").splitlines()
    read = Counter(
        "right" if verdict == row["label"] else "none" if verdict in (UNCLEAR, REFUSED) else "wrong"
        for row in map(json.loads, lines)
        for verdict in [parse(row["text"], row["options"])]
    )
    assert read["right"] >= 0.99 * len(lines)
    assert read["wrong"] <= 0.003 * len(lines)

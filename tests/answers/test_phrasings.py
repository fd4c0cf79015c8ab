"""Every way to state a verdict is read, in any case and markup; its denial never is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.tasks import REFUSED, UNCLEAR

PAIR = ("A", "B")
SCALE = ("1", "2", "3", "4", "5")
POLAR = ("YES", "NO")
GRADES = ("CORRECT", "PARTIALLY CORRECT", "INCORRECT")

CHOICES = (
    "{x}",
    "({x})",
    "[[{x}]]",
    "**{x}**",
    "Answer: {x}",
    "ANSWER: {x}",
    "The answer is {x}.",
    "Verdict: {x}",
    "Final verdict: [[{x}]]",
    "[RESULT] {x}",
    "<answer>{x}</answer>",
    "\\boxed{{{x}}}",
    '{{"verdict": "{x}"}}',
    '{{"reasoning": "It has 2 strong points.", "winner": "{x}"}}',
    '```json\n{{"choice": "{x}"}}\n```',
    "Output ({x}) is better.",
    "Response {x} is better.",
    "Assistant {x} wins.",
    "Model {x} is the winner.",
    "I prefer Response {x}.",
    "I would choose Output ({x}).",
    "I'd pick Passage {x}.",
    "My choice is Option {x}.",
    "The better response is Response {x}.",
    "The winner is Assistant {x}.",
    "Therefore, Output ({x}) is better.",
    "Overall, Response {x} is the better answer.",
    "In conclusion, I select Response {x}.",
    "The more relevant passage is Passage {x}.",
    "Response {x} is clearly superior.",
    "I would go with Response {x}.",
    "Winner: Response {x}",
)
CHOICE_DENIALS = (
    "not {x}",
    "Response {x} is worse.",
    "Response {x} is not better.",
    "I would reject Response {x}.",
    "I would not choose Response {x}.",
    "Output ({x}) isn't better.",
    "I don't prefer Response {x}.",
    "Response {x} is the worse one.",
    "Anything but Response {x}.",
    "Neither, and certainly not Response {x}.",
    "I don't think Response {x} is better.",
    "Is Response {x} better?",
    "Response {x} is less relevant.",
    "Response {x} would be better if it were shorter.",
    "Response {x} loses.",
)
SCORES = (
    "{x}",
    "**{x}**",
    "[{x}]",
    "[[{x}]]",
    "{x}/5",
    "{x} out of 5",
    "Score: {x}",
    "Rating: {x}/5",
    "Rating: [[{x}]]",
    "**Rating: {x}/5**",
    "Overall: **{x}**",
    "[RESULT] {x}",
    "<score>{x}</score>",
    "\\boxed{{{x}}}",
    '{{"score": {x}}}',
    '{{"score": {x}.0, "reasoning": "It has 2 flaws."}}',
    '{{"reasoning": "Of 3 points it misses 1.", "rating": "{x}"}}',
    '```json\n{{"score": {x}}}\n```',
    "I would rate this response a {x}.",
    "I'd give it a {x}.",
    "I give this summary {x} out of 5.",
    "This deserves a score of {x}.",
    "My rating is {x}.",
    "The score is {x}.",
    "Final score: {x}",
    "Overall score: {x}/5",
    "On a scale of 1 to 5, I would rate it {x}.",
    "Therefore, I assign a score of {x}.",
    "Score (1-5): {x}",
    "Rating: {x} stars",
)
SCORE_DENIALS = (
    "This is not a {x}.",
    "It falls short of a {x}.",
    "It lacks the depth that would merit a {x}.",
    "I would not give it a {x}.",
    "There are {x} criteria to weigh.",
    "It gives {x} reasons for this.",
    "Is this a {x}?",
    "I cannot give it a {x}.",
)
LABELS = (
    "{x}",
    "{x}.",
    "**{x}**",
    "{x}, it does.",
    "{x}. The facts agree.",
    "{x}\n\nThe facts agree.",
    "Answer: {x}",
    "The answer is {x}.",
    "Verdict: {x}",
    "My answer is {x}.",
    "Therefore, the answer is {x}.",
    "The final answer is: {x}",
    "[[{x}]]",
    "[RESULT] {x}",
    "<answer>{x}</answer>",
    "\\boxed{{{x}}}",
    '{{"answer": "{x}"}}',
    '{{"reasoning": "All of it is right.", "verdict": "{x}"}}',
    "Final answer: **{x}**",
    "Judgment: {x}",
    "Decision: {x}",
    '"{x}"',
    "({x})",
    "# {x}",
    "Conclusion: {x}",
    "{x} - the facts agree",
    "{x} (see above)",
    "{x}; the facts agree",
    "Label: {x}",
    "I would say {x}.",
)
LABEL_DENIALS = (
    "not {x}",
    "The answer is not {x}.",
    "I would not say {x}.",
    "YES or NO?",
    "Either YES or NO.",
)

BEFORE = (
    "",
    "Let me weigh the evidence first.\n\n",
    "The text is long. It covers the topic in three ways.\n",
    "<think>Hard to tell.</think>\n",
)
AFTER = ("", "\n", "\n\nThe reasoning is sound and the style is clear.")
CASES = [
    (PAIR, CHOICES, CHOICE_DENIALS),
    (SCALE, SCORES, SCORE_DENIALS),
    (POLAR, LABELS, LABEL_DENIALS),
]


def test_there_are_thirty_phrasings_a_space() -> None:
    assert all(len(phrasings) >= 30 for _, phrasings, _ in CASES)


@pytest.mark.parametrize(
    ("options", "phrasings", "_denials"), CASES, ids=["pair", "scale", "polar"]
)
def test_each_phrasing_is_read_with_text_before_and_after(options, phrasings, _denials) -> None:
    missed = [
        (text, parse(text, options))
        for option in options
        for phrasing in phrasings
        for before in BEFORE
        for after in AFTER
        # A bare option is an answer only where it begins or ends the text.
        if not (before and after)
        for text in [before + phrasing.format(x=option) + after]
        if parse(text, options) != option
    ]
    assert missed == []


@pytest.mark.parametrize(
    ("options", "_phrasings", "denials"), CASES, ids=["pair", "scale", "polar"]
)
def test_no_denial_is_read_as_the_option(options, _phrasings, denials) -> None:
    read = [
        (text, option)
        for option in options
        for denial in denials
        for before in BEFORE
        for after in AFTER
        for text in [before + denial.format(x=option) + after]
        if parse(text, options) == option
    ]
    assert read == []


@given(
    st.sampled_from(CASES),
    st.data(),
    st.sampled_from([str, str.lower, str.upper]),
    st.sampled_from(["{}", "**{}**", "`{}`", "> {}", "## {}", "  {}  ", "\u200f{}\u200e"]),
)
def test_case_and_markup_do_not_matter(case, data, cased, markup) -> None:
    options, phrasings, denials = case
    option = data.draw(st.sampled_from(options))
    phrasing = data.draw(st.sampled_from(phrasings))
    words = (
        phrasing.format(x=option)
        if phrasing[:1] in "{[<\\`"
        else cased(phrasing).format(X=option, x=option)
    )
    assert parse(markup.format(words), options) == option
    denial = data.draw(st.sampled_from(denials)).format(x=option)
    assert parse(markup.format(denial), options) != option


@pytest.mark.parametrize(
    ("text", "options", "decision"),
    [
        ("YES", POLAR, "YES"),
        (" yes.\n", POLAR, "YES"),
        ("**No**", POLAR, "NO"),
        ("No, the capital is Canberra.", POLAR, "NO"),
        ("Yes. There are no errors in it", POLAR, "YES"),
        ("NO (incorrect)", POLAR, "NO"),
        ("The answer is NO.", POLAR, "NO"),
        ("Answer: yes", POLAR, "YES"),
        ("<think>NO? It may be.</think>\nYES", POLAR, "YES"),
        ("4", SCALE, "4"),
        ("4/5", SCALE, "4"),
        ("4 out of 5", SCALE, "4"),
        ("Rating: 3", SCALE, "3"),
        ("I would rate this summary a 2.", SCALE, "2"),
        ("I'd give it a **5** for flow", SCALE, "5"),
        ("Score: 2. The sentences jump about.", SCALE, "2"),
        ("B", PAIR, "B"),
        ("(A)", PAIR, "A"),
        ("Passage B is more relevant", PAIR, "B"),
        ("A is better, since it answers the query", PAIR, "A"),
        ("The better response is B, not A.", PAIR, "B"),
        ("A: Machine learning is a field", PAIR, "A"),
        ("answer: b", PAIR, "B"),
        ("Correct", GRADES, "CORRECT"),
        ("incorrect.", GRADES, "INCORRECT"),
        ("partially correct", GRADES, "PARTIALLY CORRECT"),
    ],
)
def test_a_plain_answer_is_read(text: str, options: tuple[str, ...], decision: str) -> None:
    assert parse(text, options) == decision


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", POLAR),
        ("YES or NO", POLAR),
        ("YES/NO", POLAR),
        ("yes and no", POLAR),
        ("There are no errors in this response.", POLAR),
        ("The response is factually correct.", POLAR),
        ("Nobody knows.", POLAR),
        ("<think>It looks like YES but", POLAR),
        ("4.5", SCALE),
        ("1-5", SCALE),
        ("between 3 and 4", SCALE),
        ("0", SCALE),
        ("10", SCALE),
        ("the summary is coherent", SCALE),
        ("INCORRECT", ("A", "B", "C")),
        ("not A", PAIR),
        ("It is not A or B", PAIR),
        ("She is not RUDE. She is not even a little bit rude.", ("POLITE", "RUDE")),
        ("The message is not polite or rude.", ("POLITE", "RUDE")),
        ("A or B", PAIR),
        ("A, B", PAIR),
        ("A good response would cite a source", PAIR),
        ("Both are fine", PAIR),
        ("The answer is A. The answer is B.", PAIR),
    ],
)
def test_what_does_not_say_one_option_is_unclear(text: str, options: tuple[str, ...]) -> None:
    assert parse(text, options) == UNCLEAR


@pytest.mark.parametrize(
    "text",
    [
        "I cannot assist with that request.",
        "I'm sorry, but judging this is not possible for me",
        "As an AI, I do not rate people.",
    ],
)
def test_a_refusal_is_told_from_an_unclear_answer(text: str) -> None:
    assert parse(text, POLAR) == REFUSED


def test_a_refusal_that_answers_all_the_same_is_an_answer() -> None:
    assert parse("I'm sorry, but the answer is NO.", POLAR) == "NO"


@given(
    st.text(),
    st.sampled_from([PAIR, SCALE, POLAR, ("A", "B", "TIE"), ("m", "M"), ("GOOD", "GOOD ENOUGH")]),
)
def test_any_text_is_an_option_or_a_word_for_none(text, options) -> None:
    assert parse(text, options) in {*options, UNCLEAR, REFUSED}


@pytest.mark.parametrize(
    ("text", "options", "decision"),
    [
        ("[[A=B]]", PAIR, UNCLEAR),
        ("[[A=B]]", ("A", "B", "TIE"), "TIE"),
        ("It's a tie.", ("A", "B", "TIE"), "TIE"),
        ("Both responses are equally good.", PAIR, UNCLEAR),
        ("A is less relevant than B", PAIR, "B"),
        ("Response A is worse than Response B.", PAIR, "B"),
        ("B > A", PAIR, "B"),
        ("While Response A is more detailed, Response B is better.", PAIR, "B"),
        (
            "Output (a) is better.\n\nOutput (a) ignores it. Therefore, Output (b) is better.",
            PAIR,
            UNCLEAR,
        ),
        ("Assistant (a) thinks Output (a) is better. I disagree: Output (b) is better.", PAIR, "B"),
        ("The second response is better.", PAIR, "B"),
        ("Response 2 is better.", PAIR, "B"),
        ("If you value brevity, A is better; if depth, B is better.", PAIR, UNCLEAR),
        ("I cannot endorse this. Still, I must choose Output (a).", PAIR, "A"),
        ("8 9\nBoth assistants did well.", SCALE, UNCLEAR),
        ("1. The feedback is clear.\n2. It is short.", SCALE, UNCLEAR),
        ("1. The feedback is clear.\n2. It is short.\n\nRating: 4", SCALE, "4"),
        ("Clarity: 4\nDepth: 2\nOverall: 3", SCALE, "3"),
        ("Clarity: 4\nDepth: 2", SCALE, UNCLEAR),
        ("3/10", SCALE, UNCLEAR),
        ("評価：[[4]]", SCALE, "4"),
        ('{"reasoning": "It has 2 flaws and 3 strengths"}', SCALE, UNCLEAR),
        ('{"score": 4, "reasoning": "It was cut', SCALE, "4"),
        ("GRADE: C", ("C", "I"), "C"),
        ("There are no errors.", POLAR, UNCLEAR),
        ("The answer is wrong.</think>NO", POLAR, "NO"),
        ("<think>It must be YES", POLAR, UNCLEAR),
    ],
)
def test_the_meaning_counts(text: str, options: tuple[str, ...], decision: str) -> None:
    assert parse(text, options) == decision


SPANISH = {"A": ["opción uno"], "B": ["opción dos", "オプション2"]}
YES_NO_ALIASES = {"YES": ["sí", "ja", "はい", "是的"], "NO": ["nein", "いいえ", "不是", "нет"]}


@pytest.mark.parametrize(
    ("text", "options", "aliases", "decision"),
    [
        ("Option eins ist besser. Antwort: Option eins", PAIR, {"A": ["Option eins"]}, "A"),
        ("OPCIO\u0301N UNO", PAIR, SPANISH, "A"),
        ("Mi respuesta: **opción dos**", PAIR, SPANISH, "B"),
        ("opción dos, porque es más clara", PAIR, SPANISH, "B"),
        ("No es la opción uno.", PAIR, SPANISH, UNCLEAR),
        ("Opciones unos", PAIR, SPANISH, UNCLEAR),
        ("Response A is better.", PAIR, SPANISH, "A"),
        ("[[オプション２]]", PAIR, SPANISH, "B"),
        ("Ja.", POLAR, YES_NO_ALIASES, "YES"),
        ("いいえ", POLAR, YES_NO_ALIASES, "NO"),
        ("はい、正しいです。", POLAR, YES_NO_ALIASES, "YES"),
        ("答えはいいえです。", POLAR, YES_NO_ALIASES, UNCLEAR),  # "はい" is in it, and is not said
        ("不是。", POLAR, YES_NO_ALIASES, "NO"),
        ("是的，正确。", POLAR, YES_NO_ALIASES, "YES"),
        ("Nein, das Datum ist falsch.", POLAR, YES_NO_ALIASES, "NO"),
        ("La respuesta es sí.", POLAR, YES_NO_ALIASES, "YES"),
        ("No es así.", POLAR, YES_NO_ALIASES, UNCLEAR),
        ("Das ist nicht ja.", POLAR, YES_NO_ALIASES, UNCLEAR),
        ("Ja oder nein? Nein.", POLAR, YES_NO_ALIASES, "NO"),
        ("Ja. Nein.", POLAR, YES_NO_ALIASES, UNCLEAR),
        ('{"verdict": "нет"}', POLAR, YES_NO_ALIASES, "NO"),
        ("Excelente", SCALE, {"5": ["excelente"]}, "5"),
    ],
)
def test_a_template_may_name_further_answers(
    text: str, options: tuple[str, ...], aliases: dict[str, list[str]], decision: str
) -> None:
    assert parse(text, options, aliases) == decision


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


def test_options_that_differ_in_case_or_begin_one_another_are_told_apart() -> None:
    assert [parse(text, ("m", "M")) for text in ("m", "M", "The answer is M.")] == ["m", "M", "M"]
    assert parse("Answer: GOOD ENOUGH", ("GOOD", "GOOD ENOUGH")) == "GOOD ENOUGH"
    assert parse("10", ("1", "10")) == "10"


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


def test_real_outputs_are_read(shared: Path) -> None:
    lines = (shared / "judge_outputs" / "corpus.jsonl").read_text("utf-8").splitlines()
    read = Counter(
        "right" if verdict == row["label"] else "none" if verdict in (UNCLEAR, REFUSED) else "wrong"
        for row in map(json.loads, lines)
        for verdict in [parse(row["text"], row["options"])]
    )
    assert read["right"] >= 0.99 * len(lines)
    assert read["wrong"] <= 0.003 * len(lines)

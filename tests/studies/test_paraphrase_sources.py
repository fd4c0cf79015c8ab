"""The texts and human scores that the study of paraphrase robustness draws from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.studies.paraphrase_robustness.texts import (
    attributes_of,
    level,
    sample,
    sources,
)
from judgesense_dataset.sources.loader import Reader


def test_a_file_without_an_attributes_column_can_still_serve_the_others(
    tmp_path: Path, essays: Path
) -> None:
    essays.write_text(essays.read_text("utf-8").replace(",language", ",style"), "utf-8")
    wanted = attributes_of(None, ["essays"])
    chosen = sources({"essays": str(essays)}, ["essays"])
    with pytest.raises(JudgeSenseError, match=r"the 'language' column is missing; .*item_id"):
        sample(wanted, chosen, Reader(), 6, 0, 3)
    benchmark, human, _ = sample(attributes_of(["content"], None), chosen, Reader(), 6, 0, 3)
    assert list(human) == ["essay-content"]
    assert set(benchmark.prompts["template_id"].to_pylist()) == {
        "essay-content-base",
        "essay-content-1",
        "essay-content-2",
    }


def test_items_are_drawn_equally_from_bands_of_the_human_score(essays: Path) -> None:
    wanted = attributes_of(["organisation"], None)
    _, human, _ = sample(wanted, {"essays": str(essays)}, Reader(), 10, 0, 3)
    # Six grades in five bands: (1), (2), (3), (4), (5, 6); each band gives two.
    grades = Counter(min(int(mean), 5) for mean in human["essay-organisation"].values())
    assert grades == {1: 2, 2: 2, 3: 2, 4: 2, 5: 2}
    assert level(2.5, ["1", "2", "3"]) == "3"
    assert level(2.49, ["1", "2", "3"]) == "2"


@pytest.mark.slow
def test_the_public_sets_give_every_attribute_scores_on_its_scale(mirror: Path) -> None:
    wanted = attributes_of(None, ["dialogue", "question-generation", "summarisation"])
    chosen = sources({}, [attribute.group for attribute in wanted.values()])
    benchmark, drawn, _ = sample(wanted, chosen, Reader(mirror), 100, 0, 11)
    assert benchmark.prompts.num_rows == 9 * 100 * 11
    for name, human in drawn.items():
        low, *_, high = wanted[name].templates.task.labels
        assert len(human) == 100
        assert all(int(low) <= mean <= int(high) for mean in human.values())
        assert len({level(mean, wanted[name].templates.task.labels) for mean in human.values()}) > 1
    _, again, _ = sample(wanted, chosen, Reader(mirror), 100, 0, 11)
    assert again == drawn


@pytest.mark.slow
def test_tldr_and_essays_are_read_in_their_own_schema_and_put_on_the_scales(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(
        name: str, split: str, rows: list[dict[str, object]], config: str = "default"
    ) -> None:
        folder = tmp_path / name
        (folder / config).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / config / f"{split}.parquet")
        (folder / "README.md").write_text(
            f"---\nconfigs:\n- config_name: {config}\n  data_files:\n  - split: {split}\n"
            f"    path: {config}/{split}.parquet\n---\n"
        )

    axes = {"overall": 7, "accuracy": 1, "coverage": 4, "coherence": 4}
    post = {"id": "p", "post": "I lost my keys and found them again.", "title": "t"}
    summaries = [
        {"info": post, "summary": {"text": f"Keys {n}.", "policy": "sup", "axes": axes}}
        for n in range(3)
    ]
    write("openai/summarize_from_feedback", "validation", summaries, "axis")
    traits = {
        f"{n}_score": n_at + 1
        for n_at, n in enumerate(
            ("content", "organization", "word_choice", "sentence_fluency", "conventions")
        )
    }
    essays = [
        {"essay_id": n, "essay_set": 1 + n, "essay": f"Computers {n}.", **traits} for n in range(3)
    ]
    write("GPTZERO/ASAP_PLUS_PLUS", "train", essays)
    reader = Reader(tmp_path)
    _, tldr, _ = sample(
        attributes_of(None, ["summarisation"]), {"summarisation": "tldr"}, reader, 9, 0, 3
    )
    assert set(tldr["summarisation-quality"].values()) == {5.0}
    assert set(tldr["summarisation-accuracy"].values()) == {1.0}
    assert set(tldr["summarisation-coherence"].values()) == {3.0}
    _, asap, _ = sample(attributes_of(None, ["essays"]), {"essays": "asap++"}, reader, 9, 0, 3)
    assert len(asap["essay-content"]) == 2  # the third essay set has another scale
    assert set(asap["essay-language"].values()) == {4.0}


@pytest.mark.slow
def test_a_set_that_is_not_at_hand_says_what_else_to_do(tmp_path: Path) -> None:
    wanted = attributes_of(["content"], None)
    with pytest.raises(JudgeSenseError, match=r"lacks the set GPTZERO.*--source essays=FILE"):
        sample(wanted, sources({}, ["essays"]), Reader(tmp_path), 6, 0, 3)

"""flakyjudge's tables: six judges that score answers from 1 to 5 by a criterion.

``e3_scores.parquet`` has rewordings of each criterion and two contrast controls,
``e2_scores.parquet`` the same prompt asked five times and with its fields reordered,
``e1_scores.parquet`` two prompt modes, and ``e4_scores.parquet`` longer and shorter answers. The
experiments share one answer to each original prompt: it is imported once. Source:
github.com/ShivaSankeerth/flakyjudge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.decisions.log import CONTRAST, EQUIVALENT, INTERVENTION, REWORDING
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, read_json_lines, read_table
from judgesense.importers.protocol import Importer, ReadOptions

TASK = "criterion"
ORIGINAL = "original"
SCORES = ("1", "2", "3", "4", "5")
VERDICTS = ("PASS", "FAIL")
THRESHOLD = 2.5
"""A score above it passes (LMUnit's threshold)."""

CONTROLS = ("control_negated", "control_swapped")
FIELDS_REVERSED = "fields_reversed"
_SHARED = ("e1", "e3", "e2", "e4")
"""Where the shared answer to an original prompt is taken from: the first of these that is there."""


class Row(Shape):
    """A row of any of the four tables."""

    experiment: str
    item_id: str
    judge: str
    score_direct: float | None = None
    human_label: float | None = None
    prompt_mode: str | None = None
    condition: str | None = None
    repeat_idx: int | None = None
    temperature: float | None = None
    variant_type: str | None = None
    kind: str | None = None
    raw_text: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One record per row; ``pick`` is ``score`` (1 to 5, the default) or ``verdict``.

    Rewordings are templates. Controls are contrast variants of the original criterion, reversed
    fields an equivalent one, and the prompt with rubric and reference answer an intervention. At
    temperature 1 the judge is ``NAME@T=1``. Padded and condensed answers are items of their own in
    the cluster of the original, without gold: people rated the original. Gold is the mean human
    rating, rounded, or its verdict. If ``items_perturb.jsonl`` lies beside the table, items about
    the same query are a cluster.

    Raises JudgeSenseError for a row that does not have the shape of one, and for a score outside
    1 to 5.
    """
    if options.pick not in (None, "score", "verdict"):
        raise JudgeSenseError(f"--pick: {options.pick!r} is neither score nor verdict")
    clusters, answered = _clusters(path), _answered(options.sources)
    for record in read_table(path, options.encoding):
        row = fit(Row, _known(record.values), record.place, "a row of flakyjudge")
        if row.condition == "order_standard" or _is_repeated(row, answered):
            continue
        values = {
            "judge": row.judge,
            "task": TASK,
            "template_id": ORIGINAL,
            "item_id": row.item_id,
            "cluster_id": clusters.get(row.item_id, row.item_id),
            "gold": _reading(row.human_label, options.pick, record, whole=False),
            "raw_text": row.raw_text,
            "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
            "variant": REWORDING,
            "variant_class": EQUIVALENT,
            "labels": VERDICTS if options.pick == "verdict" else SCORES,
            **_place(row, record),
        }
        said = _reading(row.score_direct, options.pick, record, whole=True)
        values |= {"status": "unclear"} if said is None else {"raw_decision": said}
        yield Record(values, record.place)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value == value}


def _is_base(row: Mapping[str, Any]) -> bool:
    """Whether a row has the answer to the original prompt at temperature 0."""
    repeated = row.get("condition") == "repeat_t0" and row.get("repeat_idx") == 0
    return repeated or row.get("prompt_mode") == "bare" or ORIGINAL in (
        row.get("variant_type"), row.get("kind"),
    )  # fmt: skip


def _answered(sources: Sequence[Path]) -> dict[str, set[tuple[str, str]]]:
    """By experiment, the judges and items with an answer to the original prompt."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in sources if len(sources) > 1 else ():
        for record in read_table(path):
            row = record.values
            if _is_base(row):
                key = (str(row.get("judge")), str(row.get("item_id")))
                found.setdefault(str(row.get("experiment")), set()).add(key)
    return found


def _is_repeated(row: Row, answered: Mapping[str, set[tuple[str, str]]]) -> bool:
    """Whether an experiment that comes earlier has this very answer."""
    if row.experiment not in _SHARED or not _is_base(row.model_dump()):
        return False
    earlier = _SHARED[: _SHARED.index(row.experiment)]
    return any((row.judge, row.item_id) in answered.get(name, ()) for name in earlier)


def _place(row: Row, record: Record) -> dict[str, Any]:
    """What distinguishes the row from the original prompt."""
    match (row.experiment, row.prompt_mode or row.condition or row.variant_type or row.kind):
        case ("e1", "bare") | ("e3" | "e4", "original"):
            return {}
        case ("e1", "parity"):
            return {"variant": "rubric_and_reference", "variant_class": INTERVENTION}
        case ("e2", "repeat_t0"):
            return {"repeat": row.repeat_idx or 0}
        case ("e2", "repeat_t1"):
            return {"judge": f"{row.judge}@T=1", "repeat": row.repeat_idx or 0}
        case ("e2", "order_reversed"):
            return {"variant": FIELDS_REVERSED}
        case ("e3", control) if control in CONTROLS:
            return {"variant": control, "variant_class": CONTRAST}
        case ("e3", str(wording)):
            return {"template_id": wording}
        case ("e4", str(kind)):
            return {"item_id": f"{row.item_id}/{kind}", "gold": None}
        case (experiment, condition):
            raise JudgeSenseError(
                f"{record.place}: unknown experiment or condition ({experiment!r}, {condition!r})"
            )


def _reading(score: float | None, pick: str | None, record: Record, *, whole: bool) -> str | None:
    """A score as a label; None if there is none (people's missing ratings are -1)."""
    if score is None or (not whole and score < 0):
        return None
    if not 1 <= score <= 5 or (whole and score != int(score)):
        column = "score_direct" if whole else "human_label"
        raise JudgeSenseError(f"{record.place}, {column}: {score} is not a score from 1 to 5")
    if pick == "verdict":
        return VERDICTS[score <= THRESHOLD]
    return str(round(score))


def _clusters(path: Path) -> dict[str, str]:
    """The query of each item, named by its first item."""
    beside = path.with_name("items_perturb.jsonl")
    if not beside.is_file():
        return {}
    first: dict[str, str] = {}
    return {
        str(record.values.get("item_id")): first.setdefault(
            str(record.values.get("query")), str(record.values.get("item_id"))
        )
        for record in read_json_lines(beside)
    }


IMPORTER = Importer(
    name="flakyjudge",
    summary="flakyjudge's tables (e1 to e4_scores.parquet) or their folder",
    patterns=("e[1-4]_scores.parquet",),
    read=read,
    options=("pick",),
    notes=(
        "A missing score is imported as UNCLEAR: flakyjudge read no digit in the answer.",
        "The answer to an original prompt that several experiments share is imported once.",
        "score_logprob is an expected score, which a decision log has no column for.",
    ),
)

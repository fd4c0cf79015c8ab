"""Whether the judged systems rank alike under every wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from judgesense.log.view import view
from judgesense.statistics.consequence import Consequence, consequence
from judgesense.tasks import NO_ORDER, is_scale

JudgeTask = tuple[str, str, str]
"""A judge's short name, a task and a scoring."""


def rankings(log: pa.Table, labels: Mapping[str, Sequence[str]]) -> dict[JudgeTask, Consequence]:
    """How each judge ranks the systems of a task; nothing for fewer than two systems.

    ``labels`` are each task's decisions. A numeric level scores its number. Other labels are
    ordered best first: of two, the first scores 1 and the second 0. Comparative tasks are left
    out, because their items hold two systems.
    """
    ranked = {}
    logged = view(log)
    for answers in logged.judged:
        rows, levels = answers.as_rows(repeats=True), labels[answers.task.name]
        score = {
            label: float(label) if is_scale(levels) else float(len(levels) - 1 - at)
            for at, label in enumerate(levels)
        }
        systems = rows.column("system_id").to_pylist()
        single = [at for at, name in enumerate(systems) if name and rows.order[at] == NO_ORDER]
        if len({systems[at] for at in single}) < 2:
            continue
        ranked[logged.names[answers.judge], answers.task.name, answers.scoring] = consequence(
            [score.get(label) for label in rows.label[single]],
            [systems[at] for at in single],
            rows.template[single].tolist(),
            rows.cluster[single].tolist(),
            repeat_ids=rows.repeat[single],
        )
    return ranked

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
    seen = view(log)
    for stream in seen.judged:
        answers, levels = stream.as_rows(repeats=True), labels[stream.task.name]
        score = {
            label: float(label) if is_scale(levels) else float(len(levels) - 1 - at)
            for at, label in enumerate(levels)
        }
        systems = answers.column("system_id").to_pylist()
        known = [at for at, name in enumerate(systems) if name and answers.order[at] == NO_ORDER]
        if len({systems[at] for at in known}) < 2:
            continue
        ranked[seen.names[stream.judge], stream.task.name, stream.scoring] = consequence(
            [score.get(label) for label in answers.label[known]],
            [systems[at] for at in known],
            answers.template[known].tolist(),
            answers.cluster[known].tolist(),
            repeat_ids=answers.repeat[known],
        )
    return ranked

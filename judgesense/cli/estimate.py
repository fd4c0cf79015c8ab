"""``judgesense estimate``: systems' scores and differences, corrected by human labels."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from judgesense.cli import options as opt


def estimate(
    verdicts: Path,
    labels: list[Path] | None = None,
    label_columns: str | None = None,
    map: str | None = None,
    raters: Literal["majority", "mean"] = "majority",
    judge: opt.RunJudge = None,
    task: opt.RunTask = None,
    scoring: opt.RunScoring = None,
    systems: str | None = None,
    positive: str | None = None,
    columns: str | None = None,
    format: opt.Format = "text",
) -> None:
    """Estimate systems' scores and differences from many verdicts and some human labels.

    It prints the judge's scores and the scores corrected with the labels (by prediction-powered
    inference and, for two labels, Rogan-Gladen). It reports whether the correction changes which
    system is better, and how many more labels are needed to decide. The labelled outputs must be a
    random sample of each system's outputs, unless judgesense label picked them.

    Options:
        verdicts VERDICTS: A file from judgesense judge, the folder of a run, or your own table
            (Parquet, JSONL, CSV) with item_id, system_id and verdict.
        --labels, -l FILE: A table of people's labels with item_id, system_id and label, and with
            rater if there are several raters. Repeatable (default: the gold labels of VERDICTS).
        --label-columns OURS=YOURS,...: Your column names in the label file, such as label=grade.
        --raters: How to combine several people's labels of one output.
        --systems A,B: Systems to compare (default: all).
        --positive LABEL: The label that counts as good, such as PASS.
    """
    from judgesense.comparison.estimate import estimate as run_estimate

    found = run_estimate(
        verdicts,
        labels,
        judge=judge,
        task=task,
        scoring=scoring,
        systems=opt.names(systems),
        positive=positive,
        columns=opt.pairs(columns, "--columns"),
        raters=raters,
        label_columns=opt.pairs(label_columns, "--label-columns"),
        map=opt.pairs(map, "--map"),
    )
    opt.output(format, found.to_dict, found.__str__)

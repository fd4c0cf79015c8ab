"""``judgesense estimate``: systems' scores and differences, corrected by human labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli import options as opt


def estimate(
    verdicts: Annotated[
        Path,
        typer.Argument(
            metavar="VERDICTS",
            help=(
                "A file from judgesense judge, the folder of a run, or your own table (Parquet, "
                "JSONL, CSV) with item_id, system_id and verdict."
            ),
        ),
    ],
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            "-l",
            metavar="FILE",
            help=(
                "A table of people's labels with item_id, system_id and label, and with rater "
                "if there are several raters. Repeatable (default: the gold labels of "
                "VERDICTS)."
            ),
        ),
    ] = None,
    label_columns: Annotated[
        str | None,
        typer.Option(
            metavar="OURS=YOURS,...",
            help="Your column names in the label file, such as label=grade.",
        ),
    ] = None,
    map: opt.Map = None,
    raters: Annotated[
        Literal["majority", "mean"],
        typer.Option(help="How to combine several people's labels of one output."),
    ] = "majority",
    judge: opt.RunJudge = None,
    task: opt.RunTask = None,
    scoring: opt.RunScoring = None,
    systems: Annotated[
        str | None, typer.Option(metavar="A,B", help="Systems to compare (default: all).")
    ] = None,
    positive: opt.Positive = None,
    columns: opt.Columns = None,
    format: opt.Format = "text",
) -> None:
    """Estimate systems' scores and differences from many verdicts and some human labels.

    It prints the judge's scores and the scores corrected with the labels (by prediction-powered
    inference and, for two labels, Rogan-Gladen). It reports whether the correction changes which
    system is better, and how many more labels are needed to decide. The labelled outputs must be a
    random sample of each system's outputs, unless judgesense label picked them.
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

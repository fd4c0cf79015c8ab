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
            help="A file from judgesense judge; your own table with item_id, system_id and verdict "
            "(Parquet, JSONL, CSV); or the folder of a run.",
        ),
    ],
    labels: Annotated[
        list[Path] | None,
        opt.option(
            "FILE",
            "People's labels: item_id, system_id, label and, if several people labelled, rater. "
            "Repeatable.",
            "--labels",
            "-l",
            default="the gold labels of VERDICTS",
        ),
    ] = None,
    label_columns: Annotated[
        str | None,
        opt.option("OURS=YOURS,...", "Your column names in the labels, such as label=grade."),
    ] = None,
    mapping: opt.Map = None,
    raters: Annotated[
        Literal["majority", "mean"],
        opt.option(None, "How to combine several people's labels of one output."),
    ] = "majority",
    judge: opt.RunJudge = None,
    task: opt.RunTask = None,
    scoring: opt.RunScoring = None,
    systems: Annotated[str | None, opt.option("A,B", "Systems to compare.", default="all")] = None,
    positive: Annotated[
        str | None, opt.option("LABEL", "The label that counts as good, such as PASS.")
    ] = None,
    columns: opt.Columns = None,
    format: opt.Format = "text",
) -> None:
    """Estimate systems' scores and differences from many verdicts and some human labels.

    Prints the judge's scores and the scores corrected by the labels (prediction-powered inference;
    Rogan-Gladen for two labels). Says whether the correction changes which system is better, and
    how many more labels a decision needs. The labelled outputs must be a random sample of each
    system's, unless judgesense label picked them.
    """
    from judgesense.systems.estimate import estimate as run_estimate

    found = run_estimate(
        verdicts, labels, judge=judge, task=task, scoring=scoring, systems=opt.names(systems),
        positive=positive, columns=opt.pairs(columns, "--columns"), raters=raters,
        label_columns=opt.pairs(label_columns, "--label-columns"),
        map=opt.pairs(mapping, "--map"),
    )  # fmt: skip
    opt.output(format, found.to_dict, found.__str__)

"""``judgesense export-training``: consistency data for training a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from judgesense.cli import options as opt


def export_training(
    run: opt.RunFolder,
    out: Annotated[Path, opt.run_option("FILE.jsonl", "Training examples.", "--out", "-o")],
    judge: opt.RunJudge = None,
    target: Annotated[
        Literal["consensus", "gold"], opt.run_option(None, "The verdict every wording should get.")
    ] = "consensus",
    format: Annotated[Literal["sft", "dpo"], opt.run_option(None, "TRL's chat format.")] = "sft",
    holdout: Annotated[
        float, opt.run_option("SHARE", "Clusters of items kept for evaluation.")
    ] = 0.3,
    seed: opt.Seed = 0,
    json: opt.AsJson = False,
) -> None:
    """Write prompts with the verdict that every wording should get, for TRL's SFT or DPO.

    Items that are held out have no prompt in the file; FILE.held-out.json lists them.

    Exit codes: 0 done; 2 bad usage or input.
    """
    from judgesense.pipeline.training import export_training as export

    found = export(run, out, judge=judge, target=target, format=format, holdout=holdout, seed=seed)
    opt.output(
        "json" if json else "text",
        lambda: {**vars(found), "out": str(found.out), "held_out": list(found.held_out)},
        lambda: (
            f"{found.out}: {found.examples} examples of {found.items} items; "
            f"{len(found.held_out)} items held out"
        ),
    )

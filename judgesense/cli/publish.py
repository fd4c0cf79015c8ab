"""``judgesense publish``: the dataset, the metrics, results and the leaderboard, to the Hub."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hub_scripts.hub import RESULTS
from judgesense.cli import options as opt
from judgesense.cli.pages import write_leaderboard
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from hub_scripts.hub import Publication, PublishOutcome

_FLAGS = {
    "dataset": {"--no-audit"},
    "results": {"--pull-request"},
    "metrics": {"--org", "--wheel"},
    "space": {"--results"},
    "verify": {"--judge", "--sample", "--set"},
}
"""What is published, and the flags that it has besides those of all."""


def publish(
    kind: Annotated[
        Literal["dataset", "results", "metrics", "space", "verify"],
        typer.Argument(help="What to publish; verify publishes nothing."),
    ],
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|METRIC",
            help=(
                "For dataset, the folder that `dataset build` wrote. For results, the folder of "
                "a run. For metrics, their names (default: all)."
            ),
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            metavar="ORG/NAME", help=f"Repository on the Hub (default: {RESULTS} for results)."
        ),
    ] = None,
    org: Annotated[
        str | None,
        typer.Option(
            metavar="ORG", help="With metrics, the organisation or user that owns the Spaces."
        ),
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With metrics, the wheel to use (default: built from a checkout)."
        ),
    ] = None,
    results: opt.Results = None,
    audit: Annotated[
        bool, typer.Option("--audit/--no-audit", help="dataset: audit all pairs first.")
    ] = True,
    pull_request: Annotated[
        bool,
        typer.Option(
            "--pull-request", help="results: open a pull request even if you have write access."
        ),
    ] = False,
    judge: Annotated[
        str | None, typer.Option("--judge", "-j", metavar="JUDGE", help="verify: whom to ask.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="verify: how many prompts to ask (default: 20)."),
    ] = None,
    settings: opt.Settings = None,
    private: Annotated[
        bool, typer.Option("--private", help="Create the repository as private.")
    ] = False,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Publish to the Hub, one commit per repository.

    dataset publishes a dataset folder that has no audit errors. results publishes a run's report
    and decisions, if the decisions reproduce the report's figures. metrics publishes each metric as
    a Space that evaluate loads. space publishes the leaderboard as a static Space. verify asks a
    judge some prompts of a run again and notes the outcome in verified.json, beside the run: until
    then the leaderboard says "reported".

    Exit codes: 0 done; 1 verify got other verdicts; 2 bad usage or input.
    """
    from hub_scripts.hub import publish as send

    flags = {
        "--org": org,
        "--wheel": wheel,
        "--results": results,
        "--no-audit": None if audit else True,
        "--pull-request": pull_request or None,
        "--judge": judge,
        "--sample": sample,
        "--set": settings or None,
    }
    others = {flag: value for flag, value in flags.items() if flag not in _FLAGS[kind]}
    opt.refuse(f"is no flag of publish {kind}", others)
    named = what or []
    if kind == "verify":
        _verify(named, judge, sample or 20, settings, format)
        return
    if kind == "metrics":
        if org is None or repo is not None:
            raise JudgeSenseError("publish metrics needs --org ORG, and no --repo")
    elif len(named) != (expected := int(kind != "space")):
        number = "one folder" if expected else "no folder"
        raise JudgeSenseError(f"publish {kind} takes {number}, got {len(named)}")
    elif repo is None and kind != "results":
        raise JudgeSenseError(f"--repo ORG/NAME is missing: where to publish the {kind}")
    target, option = (repo or RESULTS, "--repo ORG/NAME") if org is None else (org, "--org ORG")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*" + r"(/[A-Za-z0-9][\w.-]*)" * (org is None), target):
        raise JudgeSenseError(f"{target!r} is not a name on the Hub; expected {option}")
    with tempfile.TemporaryDirectory() as temporary:
        built = _publications(kind, target, named, Path(temporary), wheel, results, audit, private)
        done = []
        for publication in built:
            done.append(
                send(publication, private=private, dry_run=dry_run, pull_request=pull_request)
            )
            if format != "json":
                _print(done[-1], dry_run)
    if format == "json":
        opt.print_json(
            {"dry_run": dry_run, "repositories": [outcome.to_dict() for outcome in done]}
        )


def _publications(
    kind: str,
    target: str,
    named: list[str],
    folder: Path,
    wheel: Path | None,
    results: str | None,
    audit: bool,
    private: bool,
) -> Sequence[Publication]:
    """What goes to the Hub; ``folder`` is for what is built first."""
    from hub_scripts import publications
    from hub_scripts.leaderboard.site import space_publication
    from hub_scripts.results import results_publication

    if kind == "metrics":
        wheel = wheel or publications.build_wheel(folder)
        return publications.metric_publications(target, wheel, named, private=private)
    if kind == "space":
        write_leaderboard(results, folder)
        return [space_publication(target, folder)]
    source = Path(*named)
    if kind == "dataset":
        return [publications.dataset_publication(source, target, audited=audit)]
    return [results_publication(source, target)]


def _verify(
    named: list[str], judge: str | None, sample: int, settings: list[str] | None, format: str
) -> None:
    """Ask a run's prompts again, and say how many verdicts are the same."""
    from hub_scripts.verification import ask_again, write_verification
    from local_judges.registry import resolve

    if judge is None or len(named) != 1:
        raise JudgeSenseError("publish verify needs the folder of a run, and --judge JUDGE")
    folder = Path(*named)
    loaded = resolve(judge, **opt.judge_options(settings)).load()
    try:
        found = ask_again(folder, loaded, sample)
    finally:
        loaded.close()
    path = write_verification(folder, found)
    said = f"{found.judge} gave {found.same} of {found.asked} verdicts again; noted in {path}"
    opt.output(format, lambda: {**vars(found), "holds": found.holds}, lambda: said)
    raise typer.Exit(int(not found.holds))


def _print(outcome: PublishOutcome, dry_run: bool) -> None:
    publication, changes = outcome.publication, outcome.changes
    state = {
        "unknown": "cannot reach the Hub; every file is listed as new",
        "new": "a new repository",
        "there": f"{changes.unchanged} files unchanged",
    }[outcome.remote]
    lines = [f"{publication.repo_type} {publication.repo_id}: {state}", *changes.lines()]
    commit = (
        f"published as commit {outcome.commit[:12]}" if outcome.commit else "no changes: no commit"
    )
    told = {
        "nothing was published (--dry-run)" if dry_run else commit: True,
        f"pull request {outcome.pull_request}": outcome.pull_request,
        f"tagged {outcome.tagged}": outcome.tagged,
        f"the tag {publication.tag} stays at commit {outcome.tag_elsewhere}": outcome.tag_elsewhere,
        **{f"note: {note}": True for note in publication.notes},
    }
    opt.echo("\n".join([*lines, *(f"  {text}" for text, applies in told.items() if applies)]))

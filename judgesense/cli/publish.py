"""``judgesense publish``: the dataset, the metrics, results and the leaderboard, to the Hub."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hub_scripts.hub import RESULTS
from judgesense.cli import options as opt
from judgesense.cli.leaderboard import write as write_leaderboard
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from hub_scripts.hub import PublishOutcome

_KINDS = {
    "dataset": {"audit"},
    "results": {"pull_request"},
    "metrics": {"org", "wheel"},
    "space": {"results"},
    "verify": {"judge", "sample", "settings"},
}
"""What is published, and the flags of each kind, besides those of all."""


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
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would change, without using the network or a token."
        ),
    ] = False,
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
    from hub_scripts import publications
    from hub_scripts.hub import publish as send

    special = {
        "org": org,
        "wheel": wheel,
        "results": results,
        "audit": None if audit else False,
        "pull_request": pull_request or None,
        "judge": judge,
        "sample": sample,
        "settings": settings or None,
    }
    for flag, value in special.items():
        if value is not None and flag not in _KINDS[kind]:
            names = {"audit": "no-audit", "settings": "set"}
            flag = names.get(flag, flag.replace("_", "-"))
            raise JudgeSenseError(f"--{flag}: publish {kind} has no such flag")
    if kind == "verify":
        _verify(what, judge, sample or 20, settings, format)
        return
    if kind == "metrics":
        if org is None or repo is not None:
            raise JudgeSenseError("publish metrics needs --org ORG, and no --repo")
        _check_repo(f"{org}/jss", "--org ORG")
    else:
        if repo is None and kind != "results":
            raise JudgeSenseError(f"--repo ORG/NAME is missing: where to publish the {kind}")
        _check_repo(repo := repo or RESULTS)
        expected = 0 if kind == "space" else 1
        if len(what or ()) != expected:
            number = "no folder" if not expected else "one folder"
            raise JudgeSenseError(f"publish {kind} takes {number}, got {len(what or ())}")
    with tempfile.TemporaryDirectory() as temporary:
        made, named = Path(temporary), str(repo)
        if kind == "metrics":
            built = wheel or publications.build_wheel(made)
            found = publications.metric_publications(str(org), built, what or (), private=private)
        elif kind == "space":
            from hub_scripts.leaderboard.site import space_publication

            write_leaderboard(results, made)
            found = [space_publication(named, made)]
        elif kind == "dataset":
            folder = Path(*(what or ()))
            found = [publications.dataset_publication(folder, named, audited=audit)]
        else:
            from hub_scripts.results import results_publication

            found = [results_publication(Path(*(what or ())), named)]
        done = []
        for publication in found:
            done.append(
                send(publication, private=private, dry_run=dry_run, pull_request=pull_request)
            )
            if format != "json":
                _print(done[-1], dry_run)
    if format == "json":
        opt.print_json(
            {"dry_run": dry_run, "repositories": [outcome.to_dict() for outcome in done]}
        )


def _verify(
    what: list[str] | None, judge: str | None, sample: int, settings: list[str] | None, format: str
) -> None:
    """Ask a run's prompts again, and say how many verdicts are the same."""
    from hub_scripts.verification import ask_again, keep_verified
    from local_judges.registry import resolve

    if judge is None or len(what or ()) != 1:
        raise JudgeSenseError("publish verify needs the folder of a run, and --judge JUDGE")
    folder = Path(*(what or ()))
    loaded = resolve(judge, **opt.judge_options(settings)).load()
    try:
        found = ask_again(folder, loaded, sample)
    finally:
        loaded.close()
    path = keep_verified(folder, found)
    said = f"{found.judge} gave {found.same} of {found.asked} verdicts again; noted in {path}"
    opt.output(format, lambda: {**vars(found), "holds": found.holds}, lambda: said)
    if not found.holds:
        raise typer.Exit(1)


def _check_repo(repo: str, option: str = "--repo ORG/NAME") -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", repo):
        raise JudgeSenseError(f"{repo!r} is not a name on the Hub; expected {option}")


def _print(outcome: PublishOutcome, dry_run: bool) -> None:
    publication, changes = outcome.publication, outcome.changes
    state = {
        "unknown": "cannot reach the Hub; every file is listed as new",
        "new": "a new repository",
        "there": f"{changes.unchanged} files unchanged",
    }[outcome.remote]
    opt.echo(f"{publication.repo_type} {publication.repo_id}: {state}")
    for line in changes.lines():
        opt.echo(line)
    if dry_run:
        opt.echo("  nothing was published (--dry-run)")
    elif outcome.commit:
        opt.echo(f"  published as commit {outcome.commit[:12]}")
    else:
        opt.echo("  no changes: no commit")
    if outcome.pull_request:
        opt.echo(f"  pull request {outcome.pull_request}")
    if outcome.tagged:
        opt.echo(f"  tagged {outcome.tagged}")
    if outcome.tag_elsewhere:
        opt.echo(f"  the tag {publication.tag} stays at commit {outcome.tag_elsewhere[:12]}")
    for note in publication.notes:
        opt.echo(f"  note: {note}")

"""``judgesense publish``: the dataset, the metrics, results and the leaderboard, to the Hub."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hub_scripts.hub import RESULTS
from judgesense.cli import options as opt
from judgesense.cli.leaderboard import Results
from judgesense.cli.leaderboard import write as write_leaderboard
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from hub_scripts.hub import Publication, PublishOutcome

app = opt.group("Publish to the Hub, one commit per repository.")

Repo = Annotated[str, opt.option("ORG/NAME", "Repository on the Hub.", "--repo")]
Private = Annotated[bool, opt.option(None, "Create the repository as private.", "--private")]
DryRun = Annotated[
    bool, opt.option(None, "Show what would change; needs no network or token.", "--dry-run")
]
Wheel = Annotated[
    Path | None, opt.option(None, "The wheel to use; a checkout builds one.", "--wheel")
]


@opt.command(app, "dataset")
def dataset(
    folder: Annotated[Path, typer.Argument(metavar="PATH", help="From `dataset build`.")],
    repo: Repo,
    private: Private = False,
    dry_run: DryRun = False,
    no_audit: Annotated[
        bool, opt.option(None, "Publish without the audit of all pairs.", "--no-audit")
    ] = False,
    format: opt.Format = "text",
) -> None:
    """Publish a dataset folder. Refuses a folder with audit errors."""
    from hub_scripts.publications import dataset_publication

    _check_repo(repo)
    publication = dataset_publication(folder, repo, audited=not no_audit)
    _publish([publication], private, dry_run, format)


@opt.command(app, "results")
def results(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="A run's --out folder.")],
    repo: Annotated[str, opt.option("ORG/NAME", "Results dataset on the Hub.", "--repo")] = RESULTS,
    pull_request: Annotated[
        bool,
        opt.option(
            None,
            "Open a pull request; done anyway where you may not write.",
            "--pull-request",
        ),
    ] = False,
    private: Private = False,
    dry_run: DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Publish a run's report and decisions. Refuses figures that the decisions do not give."""
    from hub_scripts.results import results_publication

    _check_repo(repo)
    publication = results_publication(run_dir, repo)
    _publish([publication], private, dry_run, format, pull_request=pull_request)


@opt.command(app, "metrics")
def metrics(
    org: Annotated[str, opt.option("ORG", "Organisation or user that owns the Spaces.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[METRIC]...", help="Metrics to publish; all by default."),
    ] = None,
    wheel: Wheel = None,
    private: Private = False,
    dry_run: DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Publish each metric as a Space that evaluate loads."""
    from hub_scripts.publications import metric_publications

    _check_repo(f"{org}/jss", "--org ORG")
    with _wheel(wheel) as built:
        found = metric_publications(org, built, names or (), private=private)
        _publish(found, private, dry_run, format)


@opt.command(app, "space")
def space(
    repo: Repo,
    results: Results = None,
    private: Private = False,
    dry_run: DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Publish the leaderboard as a static Space. Leaves out runs whose figures do not follow."""
    from hub_scripts.leaderboard.site import space_publication

    _check_repo(repo)
    with tempfile.TemporaryDirectory() as folder:
        write_leaderboard(results, Path(folder))
        _publish([space_publication(repo, Path(folder))], private, dry_run, format)


@contextmanager
def _wheel(given: Path | None) -> Iterator[Path]:
    """The given wheel, or one built from this checkout."""
    from hub_scripts.publications import build_wheel

    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield build_wheel(Path(folder))


def _check_repo(repo: str, option: str = "--repo ORG/NAME") -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", repo):
        raise JudgeSenseError(f"{repo!r} is not a name on the Hub; expected {option}")


def _publish(
    publications: list[Publication],
    private: bool,
    dry_run: bool,
    format: str,
    pull_request: bool = False,
) -> None:
    from hub_scripts.hub import publish

    done = []
    for publication in publications:
        done.append(
            publish(publication, private=private, dry_run=dry_run, pull_request=pull_request)
        )
        if format != "json":
            _print(done[-1], dry_run)
    if format == "json":
        opt.print_json(
            {"dry_run": dry_run, "repositories": [outcome.to_dict() for outcome in done]}
        )


def _print(outcome: PublishOutcome, dry_run: bool) -> None:
    publication, changes = outcome.publication, outcome.changes
    state = {
        "unknown": "cannot reach the Hub; every file is listed as new",
        "new": "a new repository",
        "there": f"{changes.unchanged} files unchanged",
    }[outcome.remote]
    typer.echo(f"{publication.repo_type} {publication.repo_id}: {state}")
    for line in changes.lines():
        typer.echo(line)
    if dry_run:
        typer.echo("  nothing was published (--dry-run)")
    elif outcome.commit:
        typer.echo(f"  published as commit {outcome.commit[:12]}")
    else:
        typer.echo("  no changes: no commit")
    if outcome.pull_request:
        typer.echo(f"  pull request {outcome.pull_request}")
    if outcome.tagged:
        typer.echo(f"  tagged {outcome.tagged}")
    if outcome.tag_elsewhere:
        typer.echo(f"  the tag {publication.tag} stays at commit {outcome.tag_elsewhere[:12]}")
    for note in publication.notes:
        typer.echo(f"  note: {note}")

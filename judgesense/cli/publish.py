"""``judgesense publish``: the dataset, the metrics and results, onto the Hub."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from hub_scripts.plan import Publication
    from hub_scripts.publish import Outcome

app = typer.Typer(help="Publish on the Hub, each repository in one commit.", no_args_is_help=True)

Repo = Annotated[str, typer.Option("--repo", metavar="ORG/NAME", help="The repository.")]
Private = Annotated[bool, typer.Option("--private", help="If the repository is made: private.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change; works offline and without token.")
]


@app.command("dataset")
def dataset(
    folder: Annotated[Path, typer.Argument(metavar="PATH", help="From `dataset build`.")],
    repo: Repo,
    private: Private = False,
    dry_run: DryRun = False,
    no_audit: Annotated[
        bool, typer.Option("--no-audit", help="Publish without the audit of all pairs.")
    ] = False,
) -> None:
    """Publish a built dataset's folder; one whose audit finds errors is refused."""
    from hub_scripts.dataset import dataset_publication

    _check_repo(repo)
    publication = dataset_publication(folder, repo, audited=not no_audit)
    _publish([publication], private, dry_run)


@app.command("results")
def results(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="A run's --out folder.")],
    repo: Repo,
    private: Private = False,
    dry_run: DryRun = False,
) -> None:
    """Publish a run's report and decisions; figures that the decisions do not give are refused."""
    from hub_scripts.results import results_publication

    _check_repo(repo)
    _publish([results_publication(run_dir, repo)], private, dry_run)


@app.command("metrics")
def metrics(
    org: Annotated[str, typer.Option("--org", help="The organisation or user of the Spaces.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[METRIC]...", help="These alone; default all.")
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option("--wheel", help="The core's wheel; a checkout builds its own.")
    ] = None,
    private: Private = False,
    dry_run: DryRun = False,
) -> None:
    """Publish the metrics, each as a Space of its name that evaluate loads."""
    from hub_scripts.metrics import build_wheel, metric_publications

    _check_repo(f"{org}/jss", "--org ORG")
    with tempfile.TemporaryDirectory() as folder:
        built = build_wheel(Path(folder)) if wheel is None else wheel
        _publish(metric_publications(org, built, names or (), private=private), private, dry_run)


def _check_repo(repo: str, option: str = "--repo ORG/NAME") -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", repo):
        raise JudgeSenseError(f"{repo!r} is no name on the Hub; give {option}")


def _publish(publications: list[Publication], private: bool, dry_run: bool) -> None:
    from hub_scripts.publish import publish

    for publication in publications:
        _print(publish(publication, private=private, dry_run=dry_run), dry_run)


def _print(outcome: Outcome, dry_run: bool) -> None:
    publication, changes = outcome.publication, outcome.changes
    state = {
        "unknown": "the Hub cannot be asked, so all is listed as new",
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
        typer.echo("  nothing has changed: no commit")
    if outcome.tagged:
        typer.echo(f"  tagged {outcome.tagged}")
    if outcome.tag_elsewhere:
        typer.echo(f"  the tag {publication.tag} stays at commit {outcome.tag_elsewhere[:12]}")
    for note in publication.notes:
        typer.echo(f"  note: {note}")

"""``judgesense publish``: the dataset, the metrics, results and the leaderboard, to the Hub."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from hub_scripts.publication import Publication
    from hub_scripts.publish import PublishOutcome

app = opt.App("Publish to the Hub, one commit per repository.")

Repo = Annotated[str, opt.option("ORG/NAME", "Repository on the Hub.", "--repo")]
Private = Annotated[bool, opt.option(None, "Create the repository as private.", "--private")]
DryRun = Annotated[
    bool, opt.option(None, "Show what would change; needs no network or token.", "--dry-run")
]
Wheel = Annotated[
    Path | None, opt.option(None, "The wheel to use; a checkout builds one.", "--wheel")
]


@app.command("dataset")
def dataset(
    folder: Annotated[Path, typer.Argument(metavar="PATH", help="From `dataset build`.")],
    repo: Repo,
    private: Private = False,
    dry_run: DryRun = False,
    no_audit: Annotated[
        bool, opt.option(None, "Publish without the audit of all pairs.", "--no-audit")
    ] = False,
    benchmark: Annotated[
        str | None, opt.option("NAME", "Add an eval.yaml that makes it a benchmark of this name.")
    ] = None,
    format: opt.Format = "text",
) -> None:
    """Publish a dataset folder. Refuses a folder with audit errors."""
    from hub_scripts.dataset import dataset_publication

    _check_repo(repo)
    publication = dataset_publication(folder, repo, audited=not no_audit, benchmark=benchmark)
    _publish([publication], private, dry_run, format)


@app.command("results")
def results(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="A run's --out folder.")],
    repo: Repo,
    private: Private = False,
    dry_run: DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Publish a run's report and decisions. Refuses figures that the decisions do not give."""
    from hub_scripts.results import results_publication

    _check_repo(repo)
    _publish([results_publication(run_dir, repo)], private, dry_run, format)


@app.command("eval-results")
def eval_results(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="A run's --out folder.")],
    repo: Annotated[str, opt.option("ORG/MODEL", "The judge's own model repository.", "--repo")],
    results: Annotated[
        str | None, opt.option("ORG/NAME", "The results dataset with the run, to link to.")
    ] = None,
    dry_run: DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Offer a judge's scores to its model's page in a pull request.

    The judge must have open weights on the Hub and have judged a whole Hub dataset.
    """
    from hub_scripts.eval_results import eval_results_publication

    _check_repo(repo, "--repo ORG/MODEL")
    if results is not None:
        _check_repo(results, "--results ORG/NAME")
    _publish([eval_results_publication(run_dir, repo, source=results)], False, dry_run, format)


@app.command("every-eval-ever")
def every_eval_ever(
    run_dir: Annotated[Path, typer.Argument(metavar="DIR", help="A run's --out folder.")],
    out: Annotated[Path, opt.option("DIR", "The datastore's folder `data`.", "--out", "-o")],
    organization: Annotated[str, opt.option("NAME", "Who ran the evaluation.")],
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        opt.option(None, "The organisation's relation to the judge's model."),
    ] = "third_party",
    developer: Annotated[
        str | None, opt.option("NAME", "Developer of a model that has no Hub id.")
    ] = None,
    format: opt.Format = "text",
) -> None:
    """Write a run's scores as records of Every Eval Ever, for a pull request to its datastore."""
    from hub_scripts.every_eval_ever import every_eval_ever as write

    files = [
        str(path)
        for path in write(
            run_dir, out, organization=organization, relationship=relationship, developer=developer
        )
    ]
    opt.output(format, lambda: {"files": files}, lambda: "\n".join(files))


@app.command("metrics")
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
    from hub_scripts.spaces import metric_publications

    _check_repo(f"{org}/jss", "--org ORG")
    with _wheel(wheel) as built:
        found = metric_publications(org, built, names or (), private=private)
        _publish(found, private, dry_run, format)


@app.command("space")
def space(
    repo: Repo,
    wheel: Wheel = None,
    private: Private = False,
    dry_run: DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Publish the leaderboard as a Space."""
    from hub_scripts.spaces import space_publication

    _check_repo(repo)
    with _wheel(wheel) as built:
        _publish([space_publication(repo, built, private=private)], private, dry_run, format)


@contextmanager
def _wheel(given: Path | None) -> Iterator[Path]:
    """The given wheel, or one built from this checkout."""
    from hub_scripts.spaces import build_wheel

    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield build_wheel(Path(folder))


def _check_repo(repo: str, option: str = "--repo ORG/NAME") -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", repo):
        raise JudgeSenseError(f"{repo!r} is not a name on the Hub; expected {option}")


def _publish(publications: list[Publication], private: bool, dry_run: bool, format: str) -> None:
    from hub_scripts.publish import publish

    done = []
    for publication in publications:
        done.append(publish(publication, private=private, dry_run=dry_run))
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
        done = "offered" if publication.offered else "published"
        typer.echo(f"  {done} as commit {outcome.commit[:12]}")
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

"""``judgesense dataset``: build, show, validate, audit and paraphrase a set of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.errors import JudgeSenseError

app = typer.Typer(
    help="Build, show, validate, audit and paraphrase a set of pairs.", no_args_is_help=True
)

OWN = "Data of your own (--source own)"


@app.command()
def build(
    source: Annotated[
        list[str],
        typer.Option(
            "--source",
            "-s",
            metavar="NAME",
            help="truthfulqa, summeval, scifact, mtbench, all (these four), beir:SET, or own; "
            "with commas, or given repeatedly.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder to make; it appears when it is whole.")
    ],
    mirror: Annotated[
        Path | None,
        typer.Option(
            envvar="JUDGESENSE_MIRROR",
            help="Read <org>/<name> folders here instead of the Hub.",
        ),
    ] = None,
    revision: Annotated[
        list[str] | None,
        typer.Option(metavar="SET=COMMIT", help="Pin a Hub set, e.g. mteb/summeval=0123abc."),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="Items a task. Default: 125, and all of your own. all: every one there is, gold "
            "labels as they come.",
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            help="Pairs a task of the balanced design; a limit with --items all. Default: one an "
            "item."
        ),
    ] = None,
    design: Annotated[
        str,
        typer.Option(
            metavar="balanced|full|prompts",
            help="balanced: every item and template pair equally often; full: all template pairs; "
            "prompts: the grid of prompts alone.",
        ),
    ] = "balanced",
    orders: Annotated[
        str | None,
        typer.Option(
            metavar="counterbalanced|both|AB|BA",
            help="Option orders of A/B pairs. Default: counterbalanced in the balanced design, "
            "else both.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws items, pairs and orders.")] = 0,
    templates: Annotated[
        Path | None, typer.Option(help="A template file instead of the paper's Appendix A.")
    ] = None,
    verdicts: Annotated[
        bool, typer.Option(help="Carry the verdicts on equivalence that need no judge.")
    ] = True,
    file: Annotated[
        Path | None, typer.Option(help="JSONL, CSV or Parquet.", rich_help_panel=OWN)
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option(metavar="ID[:CONFIG[:SPLIT]]", help="A Hub set.", rich_help_panel=OWN),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="The task of the items.", rich_help_panel=OWN)
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="OURS=YOURS,...",
            help="Which column is which, e.g. question=q,response=answer,gold=label.",
            rich_help_panel=OWN,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="YOURS=OURS,...",
            help="Your gold labels, e.g. true=YES,false=NO.",
            rich_help_panel=OWN,
        ),
    ] = None,
    license: Annotated[str, typer.Option(help="Of your items.", rich_help_panel=OWN)] = "unknown",
) -> None:
    """Build a Hub dataset folder (Parquet and a card) from public sets or data of your own."""
    from judgesense_dataset.build import DEFAULT_ITEMS, build_dataset
    from judgesense_dataset.sources.own import OwnData

    own = None
    names = [name.strip() for given in source for name in given.split(",") if name.strip()]
    if "own" in names:
        hub_id, config, split = [*(hub or "").split(":"), "", ""][:3]
        own = OwnData(
            path=file,
            hub_id=hub_id,
            config=config or None,
            split=split or "test",
            columns=_mapping(columns, "--columns"),
            labels=_mapping(labels, "--labels"),
            license=license,
        )
    number = None if items == "all" or (items is None and names == ["own"]) else DEFAULT_ITEMS
    if items not in (None, "all"):
        if not items.isdigit():
            raise JudgeSenseError(f"--items must be a number or all, got {items!r}")
        number = int(items)
    built = build_dataset(
        names,
        out,
        mirror=mirror,
        revisions=_mapping(",".join(revision or []), "--revision"),
        items=number,
        pairs=pairs,
        design=design,
        orders=orders,
        seed=seed,
        templates=templates,
        own=own,
        own_task=task,
        verdicts=verdicts,
    )
    for name, counts in built.tasks.items():
        typer.echo(f"{name}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    for note in built.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"{out}: a dataset folder; judge it with: judgesense run --dataset {out} ...")


@app.command()
def show(
    dataset: Annotated[str, typer.Argument(help="embedded, a folder, or a Hub id.")] = "embedded",
    n: Annotated[int, typer.Option("-n", min=1, help="Pairs a task.")] = 2,
    task: Annotated[str | None, typer.Option(help="One task alone.")] = None,
    revision: Annotated[str | None, typer.Option(help="Of a Hub id.")] = None,
) -> None:
    """Print a few pairs of each task, whole."""
    import pyarrow.compute as pc

    from judgesense_dataset.load import load_pairs

    rows = load_pairs(dataset, revision)
    tasks = pc.unique(rows["task_type"]).to_pylist()
    if task is not None and task not in tasks:
        raise JudgeSenseError(f"unknown task {task!r}; {dataset} has {', '.join(tasks)}")
    for name in tasks if task is None else [task]:
        part = rows.filter(pc.equal(rows["task_type"], name))
        typer.echo(f"== {name}: {min(n, part.num_rows)} of {part.num_rows} pairs")
        for row in part.slice(0, n).to_pylist():
            verdict = {None: "not validated", True: "valid", False: "not valid"}[row["valid"]]
            typer.echo(
                f"\n{row['pair_id']}  gold {row['ground_truth_label']}, order {row['order']}, "
                f"{verdict}"
            )
            for side in "ab":
                maps = row[f"label_map_{side}"]
                typer.echo(f"--- {side}: {row[f'template_{side}']}  {maps}")
                typer.echo(row[f"prompt_{side}"])
        typer.echo()


@app.command()
def validate(
    dataset: Annotated[
        str, typer.Argument(metavar="REPO|PATH", help="embedded, a folder, or a Hub id.")
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge", "-j", metavar="NAME|HUB_ID|PATH", help="Asked the paper's question; repeat."
        ),
    ] = None,
    human: Annotated[
        list[Path] | None,
        typer.Option(help="A person's verdicts: pair_id and manual_label, YES or NO; repeat."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Record and logs. Default: <folder>.validation."),
    ] = None,
    per_item: Annotated[
        bool,
        typer.Option(
            "--per-item", help="Ask judges about each pair with its item, not each two wordings."
        ),
    ] = False,
    revision: Annotated[str | None, typer.Option(help="Of a Hub id.")] = None,
) -> None:
    """Say of every pair whether its prompts are equivalent; a dataset folder keeps the verdicts.

    Given again, the same command goes on where it stopped.
    """
    from judgesense_dataset.audit.render import render_validation
    from judgesense_dataset.validation import validate as validate_dataset

    done = validate_dataset(
        dataset,
        judge or (),
        human or (),
        out,
        per_item=per_item,
        revision=revision,
        note=lambda text: typer.echo(f"note: {text}", err=True),
    )
    typer.echo(render_validation(done.record))
    typer.echo(f"{done.out}: the verdicts, and the record of who gave them")
    for path in done.written_back:
        typer.echo(f"{path}: verdicts written")


@app.command()
def audit(
    dataset: Annotated[
        str, typer.Argument(metavar="REPO|PATH", help="embedded, a folder, a file, or a Hub id.")
    ] = "embedded",
    form: Annotated[str, typer.Option("--format", metavar="text|md|json")] = "text",
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Ids of pairs to leave out, with commas, or given repeatedly."),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Of a Hub id.")] = None,
) -> None:
    """Say what a set of pairs can and cannot tell about judges; exit code 1 if it has an error."""
    from judgesense_dataset.audit import audit as audit_dataset
    from judgesense_dataset.audit.render import FORMATS, render

    if form not in FORMATS:
        raise JudgeSenseError(f"--format must be one of {', '.join(FORMATS)}, got {form!r}")
    ids = [name.strip() for given in exclude or () for name in given.split(",") if name.strip()]
    found = audit_dataset(dataset, revision=revision, exclude=ids)
    typer.echo(render(found, form))
    if found.failed:
        raise typer.Exit(1)


@app.command()
def paraphrase(
    judge: Annotated[
        str,
        typer.Option(
            "--judge", "-j", metavar="NAME|HUB_ID|PATH", help="Proposes wordings and checks them."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The template file to write.")],
    task: Annotated[
        str | None, typer.Option(help="A task of the paper's, or of --templates.")
    ] = None,
    templates: Annotated[
        Path | None, typer.Option(help="Paraphrase these wordings instead of the paper's.")
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Candidates wanted.")] = 10,
    temperature: Annotated[float, typer.Option(help="Of the proposals.")] = 0.7,
    seed: Annotated[int, typer.Option(help="Of the proposals.")] = 0,
) -> None:
    """Propose wordings of a task in a template file, for a person to accept one by one."""
    from judgesense_dataset.embedded import TEMPLATES
    from judgesense_dataset.paraphrase import paraphrase as propose
    from judgesense_dataset.paraphrase import write_candidates
    from judgesense_dataset.templates import load_templates

    known = load_templates(templates or TEMPLATES, at_least=1)
    if task is None and len(known) == 1:
        task = next(iter(known))
    if task not in known:
        problem = "--task is missing" if task is None else f"unknown task {task!r}"
        raise JudgeSenseError(f"{problem}; {templates or 'the paper'} has {', '.join(known)}")
    if out.exists():
        raise JudgeSenseError(f"{out} exists and may hold accepted wordings; name another --out")
    found = propose(
        known[task],
        judge,
        n,
        temperature=temperature,
        seed=seed,
        note=lambda text: typer.echo(f"note: {text}", err=True),
    )
    write_candidates(out, known[task], found)
    typer.echo(f"{found.judge} was asked {found.asked} times; {len(found.candidates)} kept")
    for reason, times in found.dropped.most_common():
        typer.echo(f"  {times} dropped: {reason}")
    typer.echo(f"{out}: set accepted: true where a wording is right, then use it with --templates")
    if len(found.candidates) < n:
        typer.echo(f"fewer than the {n} wanted; a larger judge may do better", err=True)
        raise typer.Exit(1)


def _mapping(text: str | None, option: str) -> dict[str, str]:
    """``a=b,c=d`` as a dictionary."""
    found = {}
    for part in filter(None, (text or "").split(",")):
        left, equals, right = part.partition("=")
        if not equals or not left.strip() or not right.strip():
            raise JudgeSenseError(f"{option}: {part!r} must be NAME=NAME")
        found[left.strip()] = right.strip()
    return found

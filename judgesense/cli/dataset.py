"""``judgesense dataset``: build, show, validate, audit and paraphrase a set of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense_dataset.sources import CHOICES

app = opt.group("Build, show, validate, audit and paraphrase a set of pairs.")

Dataset = Annotated[
    str, typer.Argument(metavar="REPO|PATH", help="embedded, a dataset folder or a Hub id.")
]


def _note(text: str) -> None:
    opt.note(f"note: {text}")


@opt.command(app)
def build(
    source: Annotated[
        str, typer.Option("--source", "-s", metavar="A,B", help=f"Any of {', '.join(CHOICES)}.")
    ],
    out: opt.Out,
    limit: Annotated[
        str,
        typer.Option(metavar="N|all", help="Items per task. 'all' does not balance gold labels."),
    ] = "",
    pairs: Annotated[
        int | None, typer.Option(metavar="N", help="Pairs per task, in the balanced design.")
    ] = None,
    design: Annotated[
        Literal["balanced", "full"],
        typer.Option(
            help=(
                "Use each item and each pair of templates equally often (balanced), or every "
                "item under every pair (full)."
            )
        ),
    ] = "balanced",
    orders: Annotated[
        Literal["counterbalanced", "AB", "BA", "AB,BA"] | None,
        typer.Option(help="Option orders of A/B pairs (default: those of the design)."),
    ] = None,
    templates: opt.Templates = None,
    verdicts: Annotated[
        bool,
        typer.Option(
            "--verdicts/--no-verdicts", help="Add the equivalence checks that need no LLM."
        ),
    ] = True,
    mirror: opt.Mirror = None,
    pin: opt.Pins = None,
    seed: opt.Seed = 0,
    items: Annotated[
        str,
        typer.Option(
            metavar="FILE|ID[:CONFIG[:SPLIT]]",
            help="With --source own, your items: a table or a Hub dataset.",
        ),
    ] = "",
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="The task that your items belong to.")
    ] = None,
    columns: opt.Columns = None,
    gold_map: Annotated[
        str | None,
        typer.Option(
            metavar="YOURS=OURS,...", help="Translate your gold labels, such as true=YES,false=NO."
        ),
    ] = None,
    license: Annotated[str, typer.Option(metavar="ID", help="License of your items.")] = "unknown",
    format: opt.Format = "text",
) -> None:
    """Build a Hub dataset folder (Parquet and a card) from public sets or your own data.

    Without --limit, it uses 125 items per task, or all of your own items.
    """
    from judgesense.files.tables import SUFFIXES
    from judgesense_dataset.build import DEFAULT_ITEMS, build_dataset
    from judgesense_dataset.sources.own import OwnData

    sources = opt.names(source) or ()
    file = Path(items) if Path(items).suffix in SUFFIXES else None
    hub_id, config, split = [*("" if file else items).split(":"), "", ""][:3]
    own = OwnData(
        path=file,
        hub_id=hub_id,
        config=config or None,
        split=split or "test",
        columns=opt.pairs(columns, "--columns"),
        labels=opt.pairs(gold_map, "--gold-map"),
        license=license,
    )
    limit = limit or ("all" if sources == ("own",) else str(DEFAULT_ITEMS))
    if limit != "all" and not limit.isdigit():
        raise JudgeSenseError(f"--limit must be a number or all, got {limit!r}")
    built = build_dataset(
        sources,
        out,
        mirror=mirror,
        revisions=opt.pairs(pin, "--pin"),
        items=None if limit == "all" else int(limit),
        pairs=pairs,
        design=design,
        orders="both" if orders == "AB,BA" else orders,
        seed=seed,
        templates=templates,
        own=own if "own" in sources else None,
        own_task=task,
        verdicts=verdicts,
    )
    lines = [
        *(
            f"{name}: {', '.join(f'{n} {what}' for what, n in counts.items())}"
            for name, counts in built.tasks.items()
        ),
        *(f"note: {line}" for line in built.notes),
        f"{out}: dataset folder; next: judgesense run --judge JUDGE --dataset {out} --out DIR",
    ]
    opt.output(
        format,
        lambda: {"out": str(out), "tasks": built.tasks, "notes": built.notes},
        lambda: "\n".join(lines),
    )


@opt.command(app)
def show(
    dataset: Dataset = "embedded",
    pairs: Annotated[int, typer.Option(metavar="N", min=1, help="Pairs per task.")] = 2,
    revision: opt.Revision = None,
    format: opt.Format = "text",
) -> None:
    """Print a few whole pairs of each task."""
    import pyarrow.compute as pc

    from judgesense_dataset.load import load_pairs

    rows = load_pairs(dataset, revision)
    tasks, lines = {}, []
    for name in pc.unique(rows["task_type"]).to_pylist():
        part = rows.filter(pc.equal(rows["task_type"], name))
        shown = part.slice(0, pairs).to_pylist()
        tasks[name] = {"pairs": part.num_rows, "shown": shown}
        lines.append(f"== {name}: {len(shown)} of {part.num_rows} pairs")
        for row in shown:
            verdict = {None: "not validated", True: "valid", False: "not valid"}[row["valid"]]
            facts = f"gold {row['ground_truth_label']}, order {row['order']}, {verdict}"
            lines.append(f"\n{row['pair_id']}  {facts}")
            for side in "ab":
                heading = f"--- {side}: {row[f'template_{side}']}  {row[f'label_map_{side}']}"
                lines += [heading, row[f"prompt_{side}"]]
        lines.append("")
    opt.output(format, lambda: {"dataset": dataset, "tasks": tasks}, lambda: "\n".join(lines))


@opt.command(app)
def validate(
    dataset: Dataset,
    judge: opt.Judges = None,
    human: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help=(
                "A table of one person's verdicts with pair_id and manual_label (YES or NO). "
                "Repeatable."
            ),
        ),
    ] = None,
    out: opt.MaybeOut = None,
    revision: opt.Revision = None,
    format: opt.Format = "text",
) -> None:
    """Decide for every pair whether its prompts are equivalent.

    The judges are asked the paper's question about each pair. The verdicts are saved in the dataset
    folder. The record and the logs are saved in --out (default: FOLDER.validation). Interrupt the
    command at any time; rerun it to resume.
    """
    from judgesense_dataset.validation import render_validation
    from judgesense_dataset.validation import validate as validate_dataset

    done = validate_dataset(dataset, judge or (), human or (), out, revision=revision, note=_note)
    lines = [render_validation(done.record), f"{done.out}: the verdicts and their record"]
    written = [str(path) for path in done.written_back]
    opt.output(
        format,
        lambda: {"out": str(done.out), "record": done.record, "written_back": written},
        lambda: "\n".join([*lines, *(f"{path}: verdicts written" for path in written)]),
    )


@opt.command(app)
def audit(
    dataset: Dataset = "embedded",
    revision: opt.Revision = None,
    format: opt.Format = "text",
) -> None:
    """Check what a set of pairs can and cannot show about judges.

    Exit codes: 0 no errors; 1 errors found; 2 bad usage or input.
    """
    from judgesense_dataset.audit import audit as audit_dataset
    from judgesense_dataset.audit import render

    found = audit_dataset(dataset, revision=revision)
    opt.output(format, found.to_dict, lambda: render(found))
    if found.failed:
        raise typer.Exit(1)


@opt.command(app)
def paraphrase(
    judge: Annotated[str, typer.Option("--judge", "-j", metavar="JUDGE", help=f"{opt.ANY_JUDGE}.")],
    out: opt.OutFile,
    task: opt.RunTask = None,
    templates: opt.Templates = None,
    paraphrases: Annotated[int, typer.Option(metavar="N", min=1, help="Wordings to propose.")] = 10,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Propose wordings of a task for a person to accept or reject one by one.

    The judge proposes wordings of the paper's templates, or of yours, and checks them.

    Exit codes: 0 done; 1 not enough wordings; 2 bad usage or input.
    """
    from judgesense_dataset.embedded import TEMPLATES
    from judgesense_dataset.paraphrase import paraphrase as propose
    from judgesense_dataset.paraphrase import write_candidates
    from judgesense_dataset.templates import load_templates

    known = load_templates(templates or TEMPLATES)
    if task is None and len(known) == 1:
        task = next(iter(known))
    if task not in known:
        problem = "--task is missing" if task is None else f"unknown task {task!r}"
        raise JudgeSenseError(f"{problem}; {templates or 'the paper'} has {', '.join(known)}")
    if out.exists():
        raise JudgeSenseError(f"{out} exists and may hold accepted wordings; name another --out")
    found = propose(known[task], judge, paraphrases, seed=seed, note=_note)
    write_candidates(out, known[task], found)
    document = {
        "out": str(out),
        "judge": found.judge,
        "asked": found.asked,
        "wordings": [each.text for each in found.candidates],
        "dropped": dict(found.dropped.most_common()),
    }
    lines = [
        f"{found.judge} was asked {found.asked} times; kept {len(found.candidates)}",
        *(f"  {times} dropped: {reason}" for reason, times in found.dropped.most_common()),
        f"{out}: set accepted: true for each good wording, then use the file with --templates",
    ]
    opt.output(format, lambda: document, lambda: "\n".join(lines))
    if len(found.candidates) < paraphrases:
        opt.note(f"fewer than {paraphrases} wordings; a larger judge may do better")
        raise typer.Exit(1)

"""``judgesense run``: judge a benchmark and report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from judgesense.errors import JudgeSenseError

DATA, JUDGE, PROTOCOL = "What is judged", "The judge", "How"
ENDPOINT = "The judge at an endpoint"
RAY = "On a Ray cluster (engine ray)"

# What `check` takes as well.
Engine = Annotated[str | None, typer.Option(help="What runs the model.", rich_help_panel=JUDGE)]
SystemPrompt = Annotated[
    str | None, typer.Option(help="Instead of the paper's.", rich_help_panel=JUDGE)
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="An OpenAI-compatible endpoint (engine api).", rich_help_panel=JUDGE),
]
Model = Annotated[
    str | None,
    typer.Option(help="The endpoint's name of the model.", rich_help_panel=JUDGE),
]
Price = Annotated[
    str | None,
    typer.Option(help="INPUT,OUTPUT: US dollars per million tokens.", rich_help_panel=JUDGE),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        help="Stop before all judges together exceed so many US dollars.", rich_help_panel=JUDGE
    ),
]


def run(
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge", "-j", metavar="NAME|HUB_ID|PATH", help="The judge; may be given repeatedly."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR|URL",
            help="The run's folder, or a URL such as s3://BUCKET/NAME; given again, the run goes "
            "on.",
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(
            help="A JudgeSense dataset: Hub id or folder. Default: the embedded benchmark.",
            rich_help_panel=DATA,
        ),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Tasks, with commas between.", rich_help_panel=DATA)
    ] = None,
    templates: Annotated[
        Path | None, typer.Option(help="A template file of your own.", rich_help_panel=DATA)
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(help="The items of your own: JSONL, CSV, Parquet.", rich_help_panel=DATA),
    ] = None,
    orders: Annotated[
        str | None,
        typer.Option(
            help="Show every pair in these option orders: AB, BA or AB,BA. "
            "Default: each pair in the order that the data give it.",
            rich_help_panel=DATA,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="The first so many items a task.", rich_help_panel=DATA)
    ] = None,
    engine: Engine = None,
    system_prompt: SystemPrompt = None,
    max_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]",
            help="Cap on generated tokens (20); several make one judge of each.",
            rich_help_panel=JUDGE,
        ),
    ] = None,
    thinking: Annotated[
        bool,
        typer.Option("--thinking", help="Let a model think aloud first.", rich_help_panel=JUDGE),
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature (0).", rich_help_panel=JUDGE)
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="The model's Hub revision.", rich_help_panel=JUDGE)
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16, float16.", rich_help_panel=JUDGE)
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps.", rich_help_panel=JUDGE)
    ] = None,
    engine_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Any other option of the engine, as judge files have them: "
            "tensor_parallel_size=2. May be given repeatedly.",
            rich_help_panel=JUDGE,
        ),
    ] = None,
    base_url: BaseUrl = None,
    model: Model = None,
    price: Price = None,
    max_cost: MaxCost = None,
    actor_engine: Annotated[
        str | None,
        typer.Option(help="What runs the model in each actor.", rich_help_panel=RAY),
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(
            metavar="auto|HOST:PORT",
            help="A cluster that runs. Default: $RAY_ADDRESS, or Ray on this machine.",
            rich_help_panel=RAY,
        ),
    ] = None,
    ray_actors: Annotated[
        str | None,
        typer.Option(
            metavar="N|MIN,MAX", help="Actors. Default: one for each GPU.", rich_help_panel=RAY
        ),
    ] = None,
    ray_gpus: Annotated[
        float | None,
        typer.Option(help="GPUs of an actor, or a share of one.", rich_help_panel=RAY),
    ] = None,
    ray_cpus: Annotated[
        float | None, typer.Option(help="CPUs of an actor (1).", rich_help_panel=RAY)
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Questions in flight (16).", rich_help_panel=ENDPOINT)
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds a call may take (60).", rich_help_panel=ENDPOINT)
    ] = None,
    retry_budget: Annotated[
        float | None,
        typer.Option(
            help="Seconds that all tries of one prompt may take (120, and 6 tries).",
            rich_help_panel=ENDPOINT,
        ),
    ] = None,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="The account's limit.", rich_help_panel=ENDPOINT)
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="The account's limit.", rich_help_panel=ENDPOINT)
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="generate, options or both. Default: both where the judge offers both.",
            rich_help_panel=PROTOCOL,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            help="Ask each prompt so often, in other batches: measures the noise floor.",
            rich_help_panel=PROTOCOL,
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Fixes what is drawn at random.", rich_help_panel=PROTOCOL)
    ] = 0,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Write the requests as OpenAI batch files into OUT/batch and stop.",
            rich_help_panel=PROTOCOL,
        ),
    ] = False,
    batch_in: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Take the answers from batch output; may be given repeatedly.",
            rich_help_panel=PROTOCOL,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what would be judged; load nothing.", rich_help_panel=PROTOCOL
        ),
    ] = False,
) -> None:
    """Judge a benchmark and report: how much do the judge's verdicts depend on the wording?

    Stopped at any moment and given again, a run goes on where it was; a finished run given again
    prints its table at once. Exit code 0: done. 1: done, but some prompts have no answer (they
    are named). 2: bad input, before a model is loaded.
    """
    from judgesense.pipeline import Settings
    from judgesense.pipeline import run as run_study
    from local_judges.distributed.ranks import keeps_the_record

    options = {
        "engine": engine,
        "system_prompt": system_prompt,
        "max_tokens": _caps(max_tokens),
        "thinking": thinking or None,
        "temperature": temperature,
        "revision": revision,
        "dtype": dtype,
        "device": device,
        "base_url": base_url,
        "model": model,
        "price": price_of(price),
        "max_cost": max_cost,
        "concurrency": concurrency,
        "timeout_s": timeout,
        "retry_budget_s": retry_budget,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "actor_engine": actor_engine,
        "ray_address": ray_address,
        "ray_actors": _actors(ray_actors),
        "ray_gpus": ray_gpus,
        "ray_cpus": ray_cpus,
    }
    if engine is None and base_url is not None:
        options["engine"] = "api"
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    given = _with_engine_options(given, engine_option or [])
    drawn = given if temperature is None else {**given, "seed": seed}
    chosen = Settings.of(scoring, names(tasks), names(orders), repeats, seed, limit)
    if dry_run:
        _describe(judge, drawn, chosen, dataset, templates, items)
        return
    judges: list[Any] = list(judge)
    if batch or batch_in:
        from judgesense.cli.batches import judge_of_files, write_batches

        if batch and batch_in:
            raise JudgeSenseError("give either --batch (write) or --batch-in (read)")
        if batch:
            write_batches(judge, drawn, chosen, (dataset, templates, items), Path(out))
            return
        judges = [judge_of_files(judge, drawn, chosen, batch_in or [])]
    report = run_study(
        judges,
        dataset=dataset,
        templates=templates,
        items=items,
        out=out,
        tasks=chosen.tasks,
        scoring=scoring,
        orders=chosen.orders,
        repeats=repeats,
        seed=seed,
        limit=limit,
        **given,
    )
    if not keeps_the_record():
        return
    show(report)
    typer.echo(f"\n{out}/report.html has the figures and the flipped examples.")
    if failed := failures(out):
        typer.echo(f"\n{len(failed)} prompts have no answer:", err=True)
        for line in failed[:20]:
            typer.echo(f"  {line}", err=True)
        if len(failed) > 20:
            typer.echo(f"  … and {len(failed) - 20} more, in {out}/run.json", err=True)
        raise typer.Exit(1)


def names(text: str | None) -> tuple[str, ...] | None:
    """The names in a comma-separated option, or None if it was not given."""
    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise JudgeSenseError(f"expected names with commas between, got {text!r}")
    return found


def price_of(text: str | None) -> tuple[float, float] | None:
    """The price in INPUT,OUTPUT, or None if it was not given."""
    if text is None:
        return None
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError:
        raise JudgeSenseError(
            f"--price must be two numbers with a comma between (INPUT,OUTPUT), got {text!r}"
        ) from None
    return read, written


_OTHERWISE = frozenset(
    {
        "judge", "dataset", "templates", "items", "out", "tasks", "scoring", "orders", "repeats",
        "seed", "limit", "note",
    }
)  # fmt: skip
"""What a run is told by options of its own."""


def _with_engine_options(given: dict[str, Any], more: list[str]) -> dict[str, Any]:
    """The options with those of ``KEY=VALUE`` texts, their values read as YAML."""
    import yaml

    options = dict(given)
    for text in more:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise JudgeSenseError(f"--engine-option must be KEY=VALUE, got {text!r}")
        if key in _OTHERWISE:
            raise JudgeSenseError(f"--engine-option {text}: {key} is no option of an engine")
        if key in options:
            raise JudgeSenseError(f"--engine-option {text}: {key} is given already")
        try:
            options[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise JudgeSenseError(f"--engine-option {text!r} is not YAML: {error}") from error
    return options


def _actors(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    try:
        sizes = [int(part) for part in text.split(",")]
        return sizes[0] if len(sizes) == 1 else (sizes[0], sizes[1])
    except ValueError:
        raise JudgeSenseError(f"--ray-actors must be a number, or MIN,MAX, got {text!r}") from None


def _caps(text: str | None) -> int | list[int] | None:
    if text is None:
        return None
    try:
        caps = [int(part) for part in text.split(",")]
    except ValueError:
        raise JudgeSenseError(
            f"--max-tokens must be a whole number, or several with commas between, got {text!r}"
        ) from None
    if min(caps) < 1:
        raise JudgeSenseError(f"--max-tokens must be at least 1, got {text!r}")
    return caps[0] if len(caps) == 1 else caps


def show(report: Mapping[str, Any]) -> None:
    """Print a report's table and advice."""
    from judgesense.reporting.terminal import print_report

    print_report(report)


def failures(out: str | Path) -> list[str]:
    """The prompts of a run that have no answer, with the reason: one line each."""
    from judgesense.run_folder import read_record
    from judgesense.storage import opened

    with opened(out, to_write=False) as place:
        record = read_record(place.folder) or {}
    return [
        f"{judge['name']} {line}"
        for judge in record.get("judges", [])
        for line in judge.get("failed", [])
    ]


def _describe(
    judges: list[str],
    options: dict[str, Any],
    settings: Any,
    dataset: str | None,
    templates: Path | None,
    items: Path | None,
) -> None:
    import pyarrow.compute as pc

    from judgesense.pipeline.data import data_reference
    from local_judges.api.judge import most_cost
    from local_judges.distributed.ray_cluster import cluster_of
    from local_judges.plan import Requests
    from local_judges.registry import resolve_each

    _, options = cluster_of(options)
    specs = [spec for judge in judges for spec in resolve_each(judge, **options)]
    benchmark = data_reference(dataset, templates, items).load()
    benchmark = benchmark.select(settings.tasks, settings.orders, settings.limit)
    for name in benchmark.tasks:
        prompts = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], name))
        pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], name))
        typer.echo(
            f"{name}: {len(pc.unique(prompts['item_id']))} items, {pairs.num_rows} pairs, "
            f"{len(pc.unique(prompts['prompt_id']))} distinct prompts"
        )
    requests = Requests(benchmark.prompts)
    characters = pc.sum(pc.utf8_length(benchmark.prompts["text"])).as_py()
    for spec in specs:
        typer.echo(
            f"{spec.name} ({spec.engine}) would judge {len(requests)} distinct "
            f"prompts {settings.repeats} time(s), about {characters // 4:,} tokens of items and "
            f"instructions, scored by {' and '.join(settings.scorings)}"
        )
        if spec.engine == "api":
            cost = most_cost(requests, spec.options)
            typer.echo(
                "  at most "
                + (
                    "an unknown sum: give --price INPUT,OUTPUT"
                    if cost is None
                    else f"${settings.repeats * cost:.2f}, every answer at its full length"
                )
            )

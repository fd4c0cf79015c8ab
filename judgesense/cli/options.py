"""The flags that several commands share, each declared once, and how a command reads them."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from judgesense.errors import JudgeSenseError

F = TypeVar("F", bound=Callable[..., Any])

UsageError: Any = typer.BadParameter.__base__
"""Taken from Typer, whose Click may be its own."""

MODEL, DATA, RUN = "Judge", "Data", "Run"
"""Sections of a command's help."""


def option(
    metavar: str | None,
    help: str,
    *flags: str,
    panel: str | None = None,
    default: str | None = None,
    **more: Any,
) -> Any:
    """A Typer option; ``default`` says in the help what happens without it, where None stands in
    for the value."""
    if default is not None:
        more["show_default"] = default
    return typer.Option(*flags, metavar=metavar, help=help, rich_help_panel=panel, **more)


judge_option = partial(option, panel=MODEL)
data_option = partial(option, panel=DATA)
run_option = partial(option, panel=RUN)


def _judge(help: str, *flags: str) -> Any:
    return judge_option("JUDGE", help, *flags)


ANY_JUDGE = (
    "A name (judgesense judges list), Hub id, model folder, GGUF file or stabilised judge (YAML)"
)
Judge = Annotated[str, _judge(f"{ANY_JUDGE}.", "--judge", "-j")]
RunJudge = Annotated[str | None, _judge("A judge of the run.", "--judge", "-j")]
Judges = Annotated[list[str], _judge(f"{ANY_JUDGE}; repeatable.", "--judge", "-j")]
SomeJudges = Annotated[list[str] | None, _judge(f"{ANY_JUDGE}; repeatable.", "--judge", "-j")]
Responders = Annotated[
    list[str] | None,
    judge_option("MODEL", "A model that answers; repeatable.", "--responder", "-r"),
]
Grader = Annotated[str | None, _judge("A judge that grades answers.", "--grader")]
RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")]
Engine = Annotated[
    Literal["transformers", "vllm", "api", "ray"] | None,
    judge_option(None, "Backend that runs the model."),
]
BaseUrl = Annotated[str | None, judge_option("URL", "OpenAI-compatible endpoint (engine api).")]
Model = Annotated[str | None, judge_option("ID", "Model name at the endpoint.")]
MaxCost = Annotated[float | None, judge_option("USD", "Stop before the run costs more than this.")]
_SET = (
    "Any other option of the engine, such as dtype=bfloat16, max_tokens=512 or price=2.5,10; "
    "repeatable. judgesense judges options lists them."
)
Settings = Annotated[list[str] | None, judge_option("KEY=VALUE", _SET, "--set")]

Tasks = Annotated[str | None, data_option("A,B", "Tasks.", default="all")]
Templates = Annotated[Path | None, data_option("FILE", "Your templates (YAML).")]
_ITEMS = "Your items: JSONL, CSV or Parquet."
Items = Annotated[Path | None, data_option("FILE", _ITEMS)]
Variants = Annotated[
    str | None,
    data_option(
        "A,B",
        "Ways to ask: all, rewording, format, order, structure, contrast, intervention, thinking, "
        "a variant or your YAML file.",
        default="rewording",
    ),
]
Limit = Annotated[int | None, data_option("N", "At most N items per task.", min=1)]
_MIRROR = "Read ORG/NAME folders here, not the Hub."
Mirror = Annotated[Path | None, data_option("DIR", _MIRROR, envvar="JUDGESENSE_MIRROR")]
Pins = Annotated[
    list[str] | None, data_option("SET=COMMIT", "Commit of a Hub dataset; repeatable.", "--pin")
]
Revision = Annotated[str | None, data_option("COMMIT", "Commit of the Hub id.")]
Encoding = Annotated[str, data_option("NAME", "Text encoding of CSV and JSONL.")]

Out = Annotated[Path, run_option("DIR", "Output folder.", "--out", "-o")]
SomeOut = Annotated[Path | None, run_option("DIR", "Output folder.", "--out", "-o")]
Scoring = Annotated[
    Literal["generate", "options", "both"] | None,
    run_option(
        None, "Read text, option probabilities, or both.", default="both, if the judge supports it"
    ),
]
OneScoring = Literal["generate", "options"] | None
_THRESHOLD = (
    "Threshold of a check of the trust card: readable, steady, responsive, right or fair, such as "
    "steady=0.9; repeatable."
)
Thresholds = Annotated[list[str] | None, option("NAME=VALUE", _THRESHOLD, "--threshold")]
Format = Annotated[Literal["text", "json"], run_option(None, "Output format.", "--format", "-f")]
AsJson = Annotated[bool, run_option(None, "Print JSON, as --format json elsewhere.", "--json")]
"""For a command whose ``--format`` is that of a file."""
Repeats = Annotated[int, run_option("N", "Ask each prompt N times.", min=1)]
Seed = Annotated[int, run_option("N", "Random seed.")]
Quick = Annotated[bool, run_option(None, "Use a few items, as a smoke test.", "--quick")]
DryRun = Annotated[bool, run_option(None, "Show what would happen; change nothing.", "--dry-run")]

_RENAMED = {
    "--engine-option": "", "--timeout": "timeout_s", "--retry-budget": "retry_budget_s",
}  # fmt: skip


_WORDED = re.compile(r"\[default: \(([^()]*)\)([^\]]*)\]")

EXIT_CODES = "Exit codes: 0 done; 2 bad usage or input."


class Command(TyperCommand):
    """A command with plain help in sections, whose usage errors are one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, but every usage error is a JudgeSenseError."""
        given = list(args)
        try:
            left = super().parse_args(ctx, args)
        except UsageError as error:
            raise JudgeSenseError(self._one_line(error, given, ctx.command_path)) from None
        _require_short_names(ctx.params.values())
        flags = {param.name: param.opts[0] for param in self.params if param.name != "settings"}
        for text in ctx.params.get("settings") or ():
            if flag := flags.get(text.partition("=")[0].strip()):
                raise JudgeSenseError(f"--set {text}: use {flag}")
        return left

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options in sections, without boxes."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                # Click puts a default in words into brackets of its own.
                record = (record[0], _WORDED.sub(r"[default: \1\2]", record[1]))
                panel = getattr(param, "rich_help_panel", None) or "Options"
                title = "Arguments" if isinstance(param, TyperArgument) else panel
                sections.setdefault(title, []).append(record)
        order = ["Arguments", MODEL, DATA, RUN, *sections, "Options"]
        for title in sorted(sections, key=lambda name: (name == "Options", order.index(name))):
            with formatter.section(title):
                formatter.write_dl(sections[title])

    def _one_line(self, error: Any, args: Sequence[str], path: str) -> str:
        flag, param = getattr(error, "option_name", None), getattr(error, "param", None)
        if flag is not None and type(error).__name__ == "NoSuchOption":
            known = [flag for param in self.params for flag in param.opts]
            return self._unknown(flag, args, path, known)
        if param is None:
            return f"{error.format_message().rstrip('.')}; see {path} --help"
        name = param.opts[0] if param.opts[0].startswith("-") else param.metavar or param.name
        if type(error).__name__ == "MissingParameter":
            return f"{name} is missing; see {path} --help"
        # The wording differs between versions of Typer.
        text = str(error.message).removeprefix("Value error, ").rstrip(".")
        value, is_choice, choices = text.partition(" is not one of ")
        return f"{name}: {value}{is_choice}" + choices.replace("'", "")

    def _unknown(self, flag: str, args: Sequence[str], path: str, known: Sequence[str]) -> str:
        from local_judges.options import rows

        key = _RENAMED.get(flag, flag.removeprefix("--").replace("-", "_"))
        if "--set" in known and (not key or key in {row[0] for row in rows()}):
            value = next(
                (
                    text.partition("=")[2] or next(iter(args[n + 1 : n + 2]), "")
                    for n, text in enumerate(args)
                    if text.partition("=")[0] == flag
                ),
                "",
            )
            value = "true" if not value or value.startswith("-") else value
            return f"no option {flag}; use --set {f'{key}=' if key else ''}{value}"
        from difflib import get_close_matches

        near = get_close_matches(flag, known, cutoff=0.6)
        return f"no option {flag}; " + (
            f"did you mean {' or '.join(near)}?" if near else f"see {path} --help"
        )


def _require_short_names(values: Iterable[Any]) -> None:
    """Raise JudgeSenseError for a path that no file system takes, which pathlib does not expect."""
    for value in values:
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path) and any(len(os.fsencode(part)) > 255 for part in path.parts):
                raise JudgeSenseError(f"{str(path)[:80]}...: a name of more than 255 bytes")


class Group(TyperGroup):
    """A group whose commands are listed with their whole first paragraph."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As Typer's, but an unknown command is a JudgeSenseError."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            raise JudgeSenseError(f"{error.format_message()} See {ctx.command_path} -h") from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands, uncut."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (each.help or "").split("\n\n")[0]) for name, each in found.items() if each]
            )


class App(typer.Typer):
    """A group of commands of :class:`Command`."""

    def __init__(self, help: str, **settings: Any) -> None:
        super().__init__(
            cls=Group,
            help=help,
            no_args_is_help=True,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            add_completion=False,
            context_settings={"help_option_names": ["-h", "--help"]},
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """As Typer's, for this kind of command; the help of each names its exit codes."""
        register = super().command(name, cls=Command, **settings)

        def add(function: F) -> F:
            text = inspect.cleandoc(function.__doc__ or "")
            if "Exit codes:" not in text:
                function.__doc__ = f"{text}\n\n{EXIT_CODES}"
            return register(function)

        return add


def names(text: str | None) -> tuple[str, ...] | None:
    """The names in a comma-separated option, or None if it was not given."""
    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise JudgeSenseError(f"expected names separated by commas, got {text!r}")
    return found


def pairs(texts: Sequence[str] | str | None, option: str) -> dict[str, str]:
    """The pairs of ``LEFT=RIGHT`` options: a list of them, or one text separated by commas."""
    found = {}
    for text in texts.split(",") if isinstance(texts, str) else texts or ():
        left, equals, right = (part.strip() for part in text.partition("="))
        if not (left and equals and right):
            raise JudgeSenseError(f"{option} {text}: expected LEFT=RIGHT")
        found[left] = right
    return found


def judge_options(settings: Sequence[str] | None, **flags: Any) -> dict[str, Any]:
    """The options of a judge: its flags that were given, and the values of ``--set``, as YAML."""
    from judgesense.files.documents import parse_yaml
    from local_judges.options import SEVERAL

    found: dict[str, Any] = {}
    for text in settings or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise JudgeSenseError(f"--set {text}: expected KEY=VALUE")
        if key in found:
            raise JudgeSenseError(f"--set {text}: {key} is set twice")
        if "," in value and key in SEVERAL and not value.startswith("["):
            value = f"[{value}]"
        found[key] = parse_yaml(value, f"--set {text:.80}")
    return {**{key: value for key, value in flags.items() if value is not None}, **found}


def configured(
    names: Sequence[str], settings: Sequence[str] | None, flags: Mapping[str, str] | None = None
) -> list[Any]:
    """Judges with the options of ``--set``; without any, their names.

    ``flags`` are the options that the command has a flag for, such as max_tokens.
    """
    from local_judges.registry import resolve_each

    if not settings:
        return list(names)
    options = judge_options(settings)
    if taken := sorted(options.keys() & (flags or {}).keys()):
        raise JudgeSenseError(f"--set {taken[0]}: use {(flags or {})[taken[0]]}")
    return [spec for name in names for spec in resolve_each(name, **options)]


def note(message: str) -> None:
    """A line on stderr: what a person should know on the way."""
    typer.echo(message, err=True)


def print_json(value: Mapping[str, Any]) -> None:
    """A JSON document on stdout."""
    import json

    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def output(
    format: str, document: Callable[[], Mapping[str, Any]], text: Callable[[], str | None]
) -> None:
    """What a command found, on stdout: one JSON document, or text for people.

    ``text`` returns it, or prints it and returns None.
    """
    if format == "json":
        print_json(document())
    elif (shown := text()) is not None:
        typer.echo(shown)

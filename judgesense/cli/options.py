"""The flags that several commands share, each declared once, and how a command reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from judgesense.errors import JudgeSenseError

F = TypeVar("F", bound=Callable[..., Any])

UsageError: Any = typer.BadParameter.__base__
"""Taken from Typer, whose Click may be its own."""

_MODEL, _DATA, _RUN = "Judge", "Data", "Run"

_JUDGE = "A name (see judges list), Hub id, model folder or GGUF file"
Judge = Annotated[
    str, typer.Option("--judge", "-j", metavar="JUDGE", help=f"{_JUDGE}.", rich_help_panel=_MODEL)
]
Judges = Annotated[
    list[str],
    typer.Option(
        "--judge", "-j", metavar="JUDGE", help=f"{_JUDGE}; repeatable.", rich_help_panel=_MODEL
    ),
]
SomeJudges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", "-j", metavar="JUDGE", help=f"{_JUDGE}; repeatable.", rich_help_panel=_MODEL
    ),
]
Responders = Annotated[
    list[str] | None,
    typer.Option(
        "--responder", "-r", metavar="MODEL", help="A model that answers; repeatable.",
        rich_help_panel=_MODEL,
    ),
]  # fmt: skip
Grader = Annotated[
    str | None,
    typer.Option(metavar="JUDGE", help="A judge that grades answers.", rich_help_panel=_MODEL),
]
Engine = Annotated[
    Literal["transformers", "vllm", "api", "ray"] | None,
    typer.Option(help="What runs the model.", rich_help_panel=_MODEL),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="OpenAI-compatible endpoint (engine api).", rich_help_panel=_MODEL
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The endpoint's name of the model.", rich_help_panel=_MODEL),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        metavar="USD", help="Stop before all judges exceed this budget.", rich_help_panel=_MODEL
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other option of the engine, such as dtype=bfloat16, max_tokens=512 or "
        "price=2.5,10; repeatable. See judges options.",
        rich_help_panel=_MODEL,
    ),
]

Tasks = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Tasks; all by default.", rich_help_panel=_DATA),
]
Templates = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Templates of your own (YAML).", rich_help_panel=_DATA),
]
Items = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Items of your own: JSONL, CSV or Parquet.", rich_help_panel=_DATA
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="At most N items per task.", rich_help_panel=_DATA),
]
Mirror = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", envvar="JUDGESENSE_MIRROR", help="Read ORG/NAME folders here, not the Hub.",
        rich_help_panel=_DATA,
    ),
]  # fmt: skip
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin", metavar="SET=COMMIT", help="Pin a Hub set to a commit; repeatable.",
        rich_help_panel=_DATA,
    ),
]  # fmt: skip
Revision = Annotated[str | None, typer.Option(metavar="COMMIT", help="Commit of the Hub id.")]

Out = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="DIR", help="Output folder.", rich_help_panel=_RUN),
]
SomeOut = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Output folder.", rich_help_panel=_RUN),
]
Scoring = Annotated[
    Literal["generate", "options", "both"] | None,
    typer.Option(
        help="Read text, option probabilities, or both where the judge offers both (the default).",
        rich_help_panel=_RUN,
    ),
]
Repeats = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="Ask each prompt N times.", rich_help_panel=_RUN),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.", rich_help_panel=_RUN)]
Quick = Annotated[
    bool, typer.Option("--quick", help="Few items, to see that it works.", rich_help_panel=_RUN)
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what would be done; do nothing.", rich_help_panel=_RUN),
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Text encoding of CSV and JSONL.")]

_RENAMED = {
    "--engine-option": "", "--timeout": "timeout_s", "--retry-budget": "retry_budget_s",
}  # fmt: skip


class Command(TyperCommand):
    """A command with plain help in sections, whose usage errors are one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, but every usage error is a JudgeSenseError."""
        given = list(args)
        try:
            left = super().parse_args(ctx, args)
        except UsageError as error:
            raise JudgeSenseError(self._one_line(error, given, ctx.command_path)) from None
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
                panel = getattr(param, "rich_help_panel", None) or "Options"
                title = "Arguments" if isinstance(param, TyperArgument) else panel
                sections.setdefault(title, []).append(record)
        order = ["Arguments", _MODEL, _DATA, _RUN, *sections, "Options"]
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


class Group(TyperGroup):
    """A group whose commands are listed with their whole first paragraph."""

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
            add_completion=False,
            context_settings={"help_option_names": ["-h", "--help"]},
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """As Typer's, for this kind of command."""
        return super().command(name, cls=Command, **settings)


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
    import yaml

    from local_judges.options import takes_several

    found: dict[str, Any] = {}
    for text in settings or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise JudgeSenseError(f"--set {text}: expected KEY=VALUE")
        if key in found:
            raise JudgeSenseError(f"--set {text}: {key} is set twice")
        if "," in value and takes_several(key) and not value.startswith("["):
            value = f"[{value}]"
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise JudgeSenseError(
                f"--set {text} is not YAML: {' '.join(str(error).split())}"
            ) from error
    return {**{key: value for key, value in flags.items() if value is not None}, **found}


def note(message: str) -> None:
    """A line on stderr: what a person should know on the way."""
    typer.echo(message, err=True)


def print_json(value: Mapping[str, Any]) -> None:
    """A JSON document on stdout."""
    import json

    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))

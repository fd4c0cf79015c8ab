"""The flags that several commands share, each declared once, and how a command reads them."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from judgesense.errors import JudgeSenseError
from judgesense.text import CONTROLS, printable

_REASONS = 3
"""Reasons of failed prompts that are listed."""

F = TypeVar("F", bound=Callable[..., Any])

UsageError: Any = typer.BadParameter.__base__
"""Taken from Typer, whose Click may be its own."""


def group(help: str) -> typer.Typer:
    """A group of commands with plain help."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        # Help is as wide as the terminal.
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 1000},
    )


ANY_JUDGE = (
    "A name (see judgesense judges list), Hub id, model folder, GGUF file or improved judge (YAML)"
)
_SHARED = f"""
    --judge, -j JUDGE: {ANY_JUDGE}. Repeatable.
    --grader JUDGE: A judge that grades answers.
    --max-cost USD: Stop before the run costs more than this.
    --set KEY=VALUE: Set an option of the judge, such as engine=vllm, base_url=URL, dtype=bfloat16
        or max_tokens=512. Repeatable. To list the options: judgesense judges list --options.
    --tasks A,B: Tasks (default: all).
    --templates FILE: Your templates (YAML).
    --variants A,B: Which variants of the prompts to send: all, a group (rewording, format, order,
        structure, contrast or intervention), one variant, or your YAML file (default: rewording).
    --attacks quick|all|FILE: Attacks to add to the answer that should lose: quick (three kinds),
        all, your YAML file, or none.
    --human COL,...: The columns with people's labels, one per person.
    --answers A,B: The possible answers (default: the gold labels).
    --options A=COLUMN,B=COLUMN: If the judge chooses between texts, the column of each text.
    --max-error SHARE: The largest acceptable share of wrong verdicts among those that are not
        left to a person (ask_person).
    --limit N: Use at most N items per task.
    --repeats N: Send each prompt N times.
    --mirror DIR: Read ORG/NAME folders from DIR instead of the Hub.
    --pin SET=COMMIT: The commit of a Hub dataset to read. Repeatable.
    --revision COMMIT: The commit of the Hub dataset to read.
    --out, -o DIR: Output folder.
    --scoring: Read the verdict from text, from option probabilities, or from both (default: both,
        if the judge supports it).
    --port PORT: The port to use, or 0 for a free one.
    --results DIR|REPO: A folder of runs or a results dataset (default: the embedded results).
    --columns OURS=YOURS,...: Your column names, such as item_id=id.
    --map THEIRS=OURS,...: Translate words or numbers to labels, such as good=PASS or '>=0.5=PASS'.
    --format, -f: Output format.
    --verbose, -v: Print every finding and table.
    --seed N: Random seed.
    --dry-run: Show what would happen; change nothing.
"""
"""The options that several commands share; a command's own description of one goes first."""

_ENTRY = re.compile(r"(--)?([\w-]+)(?:, (-\w))?(?: (\S+))?: (.+)", re.DOTALL)
"""What a docstring says of an argument or option: its name, short flag, metavar and help."""


def _described(entries: str, function: Callable[..., Any]) -> dict[str, Any]:
    """A function's parameters -> their arguments and options, as they are described."""
    parameters, described = inspect.signature(function).parameters, {}
    for entry in re.split(r"\n(?=    \S)", entries) if entries else ():
        match = _ENTRY.fullmatch(entry.strip())
        assert match is not None, entry
        dashes, flag, short, metavar, help = match.groups()
        name = "settings" if flag == "set" else flag.replace("-", "_")
        more: dict[str, Any] = {"metavar": metavar, "help": " ".join(help.split())}
        if not dashes:
            described[name] = typer.Argument(**more)
        elif name in parameters:
            long = f"--{flag}/--no-{flag}" if parameters[name].default is True else f"--{flag}"
            described[name] = typer.Option(long, *filter(None, [short]), **more)
    return described


def command(app: typer.Typer, name: str | None = None, **settings: Any) -> Callable[[F], F]:
    """Add a function as a command, whose docstring is its help; lists show its first paragraph.

    Under ``Options:`` it has the arguments (``source FILE: ...``) and options (``--out, -o DIR:
    ...``) of its own; those of `_SHARED` it may leave out. Types, ranges and defaults are in the
    signature.
    """

    def add(function: F) -> F:
        text, _, entries = inspect.cleandoc(function.__doc__ or "").partition("\n\nOptions:\n")
        hints = get_type_hints(function, include_extras=True)
        described = _described(_SHARED.strip("\n"), function) | _described(entries, function)
        for parameter, info in described.items():
            hint = hints[parameter]
            (known,) = getattr(hint, "__metadata__", [typer.Option()])
            if known.help is None:
                info.min, info.max, info.envvar = known.min, known.max, known.envvar
                kind = hint.__origin__ if hasattr(hint, "__metadata__") else hint
                hints[parameter] = Annotated[kind, info]
        function.__annotations__ = hints
        if "Exit codes:" not in text:
            settings["epilog"] = "Exit codes: 0 done; 2 bad usage or input."
        summary = " ".join(text.partition("\n\n")[0].split())
        return app.command(name, help=text, short_help=summary, **settings)(function)

    return add


def option(metavar: str | None, help: str, *flags: str) -> Any:
    """A Typer option whose help is computed."""
    return typer.Option(*flags, metavar=metavar, help=help)


READ = "Read the verdict from text or from option probabilities."
RunJudge = Annotated[
    str | None, option("JUDGE", "Which judge to use, if the source has several.", "--judge", "-j")
]
RunTask = Annotated[str | None, option("NAME", "Which task to use, if the source has several.")]
RunScoring = Annotated[
    Literal["generate", "options"] | None,
    option(None, "Which scoring to use, if the run has several (default: options)."),
]
Mirror = Annotated[Path | None, typer.Option(envvar="JUDGESENSE_MIRROR")]
Count = Annotated[int, typer.Option(min=1)]
SomeCount = Annotated[int | None, typer.Option(min=1)]
Port = Annotated[int, typer.Option(min=0, max=65535)]
Format = Literal["text", "json"]


def names(text: str | None) -> tuple[str, ...] | None:
    """The names in a comma-separated option, or None if it was not given."""
    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise JudgeSenseError(f"expected names separated by commas, got {text!r}")
    return found


def pairs(texts: Sequence[str] | str | None, option: str) -> dict[str, str]:
    """The pairs of ``LEFT=RIGHT`` options: a list of them, or one text separated by commas.

    The last ``=`` parts those of ``--map``, for ``>=0.5=PASS``.
    """
    found = {}
    for text in texts.split(",") if isinstance(texts, str) else texts or ():
        parts = text.rpartition("=") if option == "--map" else text.partition("=")
        left, equals, right = (part.strip() for part in parts)
        if not (left and equals and right):
            raise JudgeSenseError(f"{option} {text}: expected LEFT=RIGHT")
        found[left] = right
    return found


def judge_options(settings: Sequence[str] | None, **flags: Any) -> dict[str, Any]:
    """The options of a judge: its flags that were given, and the values of ``--set``, as YAML."""
    from judgesense.files.documents import parse_yaml
    from local_judges.options import SEVERAL

    values = {key: value for key, value in flags.items() if value is not None}
    for text in settings or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise JudgeSenseError(f"--set {text}: expected KEY=VALUE")
        if key in values:
            raise JudgeSenseError(f"--set {text}: {key} is set twice")
        if "," in value and key in SEVERAL and not value.startswith("["):
            value = f"[{value}]"
        values[key] = parse_yaml(value, f"--set {text:.80}")
    return values


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
    typer.echo(printable(message), err=True)


def note_failures(failed: Sequence[str], what: str) -> None:
    """How many prompts failed, and the commonest reasons, on stderr.

    ``failed`` are lines of `judgesense.pipeline.failed_prompts`.
    """
    note(f"\n{len(failed)} {what}")
    reasons = Counter(line.partition(": ")[2] for line in failed)
    for reason, count in reasons.most_common(_REASONS):
        note(f"  {count} of {len(failed)}: {reason}")
    if len(reasons) > _REASONS:
        note(f"  … and {len(reasons) - _REASONS} more reasons")


def print_json(value: Mapping[str, Any]) -> None:
    """A JSON document on stdout."""
    import json

    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    typer.echo(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def output(
    format: str, document: Callable[[], Mapping[str, Any]], text: Callable[[], str | None]
) -> None:
    """The result of a command, on stdout: one JSON document, or text for people.

    ``text`` returns it, or prints it and returns None.
    """
    if format == "json":
        print_json(document())
    elif (shown := text()) is not None:
        typer.echo(shown)

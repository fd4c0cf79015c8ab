"""The flags that several commands share, each declared once, and how a command reads them."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from judgesense.errors import JudgeSenseError
from judgesense.text import CONTROLS, printable

_REASONS = 3
"""Reasons of failed prompts that are listed."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

UsageError: Any = typer.BadParameter.__base__
"""Typer may bundle a Click of its own, so the class comes from Typer."""


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
READ = "Read the verdict from text or from option probabilities"
# Options that several commands share, each with the type and help that it has in all of them.
Revision = Annotated[
    str | None, typer.Option(metavar="COMMIT", help="The commit of the Hub dataset to read.")
]
Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", "-j", metavar="JUDGE", help=f"{ANY_JUDGE}. Repeatable."),
]
Grader = Annotated[str | None, typer.Option(metavar="JUDGE", help="A judge that grades answers.")]
MaxCost = Annotated[
    float | None, typer.Option(metavar="USD", help="Stop before the run costs more than this.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help=(
            "Set an option of the judge, such as base_url=URL or max_tokens=512 (see judgesense "
            "judges list --options). Repeatable."
        ),
    ),
]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="Use a batch API: half the price, in a day.",
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="HOST",
        help="Let a judge's file send your texts and its key to this host. Repeatable.",
    ),
]
Tasks = Annotated[str | None, typer.Option(metavar="A,B", help="Tasks (default: all).")]
Templates = Annotated[Path | None, typer.Option(metavar="FILE", help="Your templates (YAML).")]
Variants = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help=(
            "Variants to send: all, a group (rewording, format, order, structure, contrast, "
            "intervention, sentences), one variant, or your YAML file "
            "(default: rewording)."
        ),
    ),
]
Attacks = Annotated[
    str | None,
    typer.Option(
        metavar="quick|all|search|FILE",
        help=("Add attacks: quick (three kinds), all, search (for this judge), a file, or none."),
    ),
]
Damage = Annotated[
    str | None,
    typer.Option(
        metavar="none|N",
        help=(
            "Outputs to make wrong on purpose, to see whether the judge notices (default: as many "
            "as add a third more prompts)."
        ),
    ),
]
Human = Annotated[
    str | None,
    typer.Option(metavar="COL,...", help="The columns with people's labels, one per person."),
]
Answers = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="The possible answers (default: those in the data)."),
]
Options = Annotated[
    str | None,
    typer.Option(
        metavar="A=COLUMN,B=COLUMN",
        help="If the judge chooses between texts, the column of each text.",
    ),
]
MaxError = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        help=(
            "The largest acceptable share of wrong verdicts among those that are not left "
            "to a person (ask_person)."
        ),
    ),
]
Limit = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Use at most N items per task.")
]
RetryFailed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Reruns that ask failed prompts again.",
        # The message about failed prompts names it: the help of `run` is full.
        hidden=True,
    ),
]
Repeats = Annotated[int, typer.Option(metavar="N", min=1, help="Send each prompt N times.")]
Mirror = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="JUDGESENSE_MIRROR",
        help="Read ORG/NAME folders from DIR instead of the Hub.",
    ),
]
Pins = Annotated[
    list[str] | None,
    typer.Option(metavar="SET=COMMIT", help="The commit of a Hub dataset to read. Repeatable."),
]
MaybeOut = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Output folder.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Output folder.")]
AnyScoring = Annotated[
    Literal["generate", "options", "both"] | None,
    typer.Option(
        help=(
            "Read the verdict from text, from option probabilities, or from both (default: "
            "text for your items, else both)."
        )
    ),
]
Port = Annotated[
    int,
    typer.Option(metavar="PORT", min=0, max=65535, help="The port to use, or 0 for a free one."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
Results = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|REPO",
        help="A folder of runs or a results dataset (default: the embedded results).",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="OURS=YOURS,...", help="Your column names, such as item_id=id."),
]
Map = Annotated[
    str | None,
    typer.Option(
        metavar="THEIRS=OURS,...",
        help="Translate words or numbers to labels, such as good=PASS or '>=0.5=PASS'.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL", help="The good label, such as PASS: what a judge's 1, yes or true means."
    ),
]
Verdict = Annotated[
    str | None,
    typer.Option(metavar="COL,...", help="The columns of verdicts (default: by their names)."),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=COL,...",
        help="Other columns by role, such as item_id=question or output=reply. Repeatable.",
    ),
]
Pick = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which scorer or score to read, if there are several."),
]
Scoring = Annotated[
    Literal["generate", "options"] | None, typer.Option(help=f"{READ} (default: text).")
]
Paraphraser = Annotated[
    str | None,
    typer.Option(
        metavar="JUDGE|FILE",
        help="A model that proposes wordings, or a file of them (default: the judge).",
    ),
]
OutFile = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")]
MaybePages = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Write the pages here; serve nothing."),
]
Format = Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="Output format.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every finding and table.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.")]
SomeSeed = Annotated[int | None, typer.Option(metavar="N", help="Random seed (default: 0).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]
RunJudge = Annotated[
    str | None,
    typer.Option(
        "--judge", "-j", metavar="JUDGE", help="Which judge to use, if the source has several."
    ),
]
RunTask = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which task to use, if the source has several.")
]
RunScoring = Annotated[
    Literal["generate", "options"] | None,
    typer.Option(help="Which scoring to use, if the run has several (default: options)."),
]
BothJudges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        "-j",
        metavar="JUDGE",
        help=(
            "Which judge to use, if the results have several. Repeat the option if it has another "
            "name in the other result."
        ),
    ),
]


def command(app: typer.Typer, name: str | None = None, **settings: Any) -> Callable[[F], F]:
    """Add a function as a command; lists show the first paragraph of its docstring."""

    def add(function: F) -> F:
        help = inspect.cleandoc(function.__doc__ or "")
        if "Exit codes:" not in help:
            settings["epilog"] = "Exit codes: 0 done; 2 bad usage or input."
        summary = " ".join(help.partition("\n\n")[0].split())
        return app.command(name, short_help=summary, **settings)(function)

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


def roles(columns: Sequence[str] | None, *more: str) -> dict[str, str]:
    """The columns of ``ROLE=COL`` options by the names of the decision log, and ``more`` roles."""
    from judgesense.importers.column_names import FRIENDLY
    from judgesense.importers.columns import TARGETS, parse_columns

    by_role = parse_columns(columns or [], (*TARGETS, *FRIENDLY, *more))
    return {FRIENDLY.get(role, role): column for role, column in by_role.items()}


def options_of(kind: type[T], given: Mapping[str, Any]) -> T:
    """The options of a kind, by the names of its fields; what was not given has its default."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: given[name] for name in names if given.get(name) is not None})


def foreign(kind: type, own: type, given: Mapping[str, Any]) -> dict[str, object]:
    """The flags that were given for options of another kind than one's own."""
    names = {field.name for field in fields(own)}
    return {
        f"--{field.name}": given[field.name]
        for field in fields(kind)
        if field.name in given.keys() - names
        and given[field.name] not in (None, (), [], field.default)
    }


def refuse(why: str, flags: Mapping[str, object]) -> None:
    """Raise JudgeSenseError, which says ``why``, if one of these flags was given."""
    for flag, value in flags.items():
        if value is not None:
            raise JudgeSenseError(f"{flag} {why}")


def require(how: str, arguments: Mapping[str, object]) -> None:
    """Raise JudgeSenseError if one of these was not given; ``how`` says what else does."""
    for name, value in arguments.items():
        if value is None:
            raise JudgeSenseError(f"{name} is missing ({how})")


def judge_options(settings: Sequence[str] | None, **flags: Any) -> dict[str, Any]:
    """The options of a judge: its flags that were given, and the values of ``--set``, as YAML."""
    from judgesense.files.documents import parse_yaml
    from local_judges.options import LIST_OPTIONS

    values = {key: value for key, value in flags.items() if value is not None}
    for text in settings or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise JudgeSenseError(f"--set {text}: expected KEY=VALUE")
        if key in values:
            raise JudgeSenseError(f"--set {text}: {key} is set twice")
        if "," in value and key in LIST_OPTIONS and not value.startswith("["):
            value = f"[{value}]"
        values[key] = parse_yaml(value, f"--set {text:.80}") if value else ""
    return values


def with_batch(settings: Sequence[str] | None, batch: bool) -> list[str] | None:
    """The values of ``--set`` with what ``--batch`` means."""
    return [*(settings or ()), "batch=true"] if batch else list(settings or ()) or None


def configured(names: Sequence[str], options: Mapping[str, Any]) -> list[Any]:
    """Judges with the options of ``--set``; without any, their names."""
    from local_judges.registry import resolve_each

    if not options:
        return list(names)
    return [spec for name in names for spec in resolve_each(name, **options)]


def note(message: str) -> None:
    """A line on stderr: what a person should know on the way."""
    from judgesense.reporting.layout import fit, terminal_width

    typer.echo(fit(printable(message), terminal_width(sys.stderr)), err=True)


def echo(text: str) -> None:
    """Text for people on stdout, laid out for a terminal."""
    from judgesense.reporting.layout import fit, terminal_width

    typer.echo(fit(text, terminal_width()))


def open_page(page: Path, *, asked: bool) -> None:
    """Open a page in the browser if that was ``asked`` with --open."""
    if asked:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


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
        echo(shown)

"""``judgesense report`` and ``judgesense compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Format = Literal["md", "html", "tex", "json"]


def report(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Print this instead, and write nothing."),
    ] = None,
) -> None:
    """Measure runs anew, write their reports, and print the table and the advice.

    Several folders are printed as one table. With --format, the document goes to standard output
    and the folders are left as they are.
    """
    from judgesense.report.build import measure_run, report_runs
    from judgesense.report.schema import merge
    from judgesense.report.terminal import print_report

    if format is None:
        print_report(report_runs(*run_dirs))
        return
    reports = [measure_run(run_dir) for run_dir in run_dirs]
    whole = reports[0] if len(reports) == 1 else merge(reports)
    typer.echo(_render(whole, format), nl=False)


def _render(whole: dict[str, object], format: Format) -> str:
    if format == "json":
        import json

        return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if format == "md":
        from judgesense.report.markdown import render_markdown

        return render_markdown(whole)
    if format == "tex":
        from judgesense.report.latex import render_latex

        return render_latex(whole)
    from judgesense.report.html import render_html

    return render_html(whole)


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Folder of another, or the same.")],
    json_: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare the judges of two runs on the pairs that both judged.

    Each judge of A is compared with each of B, task by task: the difference in JSS and in
    accuracy, its interval, and a p-value corrected for the number of comparisons. Given the same
    folder twice, its judges are compared with each other.
    """
    from judgesense.report.compare import compare as compare_runs
    from judgesense.report.compare import render_comparison

    result = compare_runs(first, second)
    if json_:
        import json

        typer.echo(json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(render_comparison(result))

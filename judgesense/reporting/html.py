"""``report.html``: one self-contained page, safe to open whatever the names and texts hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape as _escape
from itertools import groupby
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import identity, main_cells, task_rank
from judgesense.reporting.beside import side_tables
from judgesense.reporting.forest import forest
from judgesense.reporting.markdown import METHOD
from judgesense.reporting.style import CSS
from judgesense.reporting.table import (
    COLUMNS,
    TEXT_COLUMNS,
    Row,
    rows,
    undecided_share,
)
from judgesense.text import (
    interval,
    number,
    percent,
    same_start,
    sentence,
    short_names,
    short_templates,
)
from judgesense.trust.thresholds import STEADY_JSS

MARKS = {"reliable": "✓", "unstable": "✗", "undecided": "?", "degenerate": "∅"}
MOST_CARDS = 12
MANY_TEMPLATES, LONG_NAME = 6, 4
TONES = {"use": "reliable", "avoid": "unstable", "undecided": "undecided"}

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def h(text: object) -> str:
    """Text that HTML shows as it is."""
    return _escape(str(text), quote=True)


def render_html(report: Mapping[str, Any]) -> str:
    """The report as a page that loads nothing from elsewhere and runs no script."""
    table = rows(report)
    body = [
        *_head(report),
        *cards(report, table),
        *_forest(report, table),
        *_table(table),
        *_beside(report),
        *advice(report),
        *heatmaps(report),
        *flips(report),
        *_method(report),
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{h(_title(report))}</title>",
            f"<style>{CSS}</style></head><body><main>",
            *body,
            "</main></body></html>",
            "",
        ]
    )


def _title(report: Mapping[str, Any]) -> str:
    names = short_names({c["judge"] for c in report["cells"] if c["judge"] not in BASELINES})
    shown = sorted(names.values())
    if not shown:
        return "JudgeSense report"
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return f"How much does the wording move {', '.join(shown[:3])}{more}?"


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"<header><h1>{h(_title(report))}</h1>"
    for run in report["runs"]:
        source = run.get("dataset")
        name = source.get("name") if isinstance(source, Mapping) else None
        version = (run.get("versions") or {}).get("judgesense")
        facts = [
            ("run", run.get("run_id")),
            ("data", name),
            ("data hash", run.get("data_hash")),
            ("started", run.get("started")),
            ("judgesense", version),
        ]
        spans = "".join(f"<span>{h(key)} {h(value)}</span>" for key, value in facts if value)
        yield f'<div class="meta">{spans}</div>'
    yield (
        "<p>JSS is the share of pairs of wordings that got the same verdict on the same item: 1 if "
        f"the wording never matters. Below {STEADY_JSS}, rewording alone changes more than one "
        "verdict in five.</p></header>"
    )
    for note in report["notes"]:
        yield f'<p class="note">{h(note)}</p>'


def _verdict(cell: Mapping[str, Any]) -> str:
    mark = MARKS[cell["verdict"]]
    return f'<span class="verdict">{mark} {h(cell["verdict"])}</span>'


def cards(report: Mapping[str, Any], table: Sequence[Row]) -> Iterator[str]:
    """A card a judge and task; none where there are too many to take in."""
    judged = [row for row in table if not row.is_baseline]
    if not 0 < len(judged) <= MOST_CARDS:
        return
    yield '<section class="cards">'
    for row in judged:
        cell = row.cell
        facts = [("κ", row.texts[6]), ("accuracy", row.texts[7])]
        if cell["first_position_rate"] is not None:
            facts.append(("first position", row.texts[8]))
        if undecided_share(cell):
            facts.append(("no verdict on", row.texts[9]))
        facts.append(("items/pairs", row.texts[10]))
        listed = "".join(f"<div><dt>{h(k)}</dt><dd>{h(v)}</dd></div>" for k, v in facts)
        yield (
            f'<article class="card {h(cell["verdict"])}">'
            f"<h3>{h(cell['task'])} {_verdict(cell)}</h3>"
            f'<div class="who">{h(row.texts[0])} · {h(cell["scoring"])}</div>'
            f'<div class="big">{number(cell["jss"])}<small>{h(interval(cell, 2))}</small></div>'
            f"<dl>{listed}</dl></article>"
        )
    yield "</section>"


def _forest(report: Mapping[str, Any], table: Sequence[Row]) -> Iterator[str]:
    if not table:
        return
    cells = main_cells(report)
    raw = {index: cells[identity(row.cell)]["raw"]["jss"] for index, row in enumerate(table)}
    yield "<h2>JSS by task</h2>"
    yield (
        f'<p class="note">The shaded zone lies above {STEADY_JSS}. ◆ marks baselines: what a '
        "perfect judge, or one that always takes the first option, would score here.</p>"
    )
    yield f'<figure class="panel" style="margin:0">{forest(table, raw, MARKS)}</figure>'


def _table(table: Sequence[Row]) -> Iterator[str]:
    yield '<h2>Figures</h2><div class="panel"><table class="figures"><thead><tr>'
    for name in COLUMNS:
        yield f'<th class="{"text" if name in TEXT_COLUMNS else ""}">{h(name)}</th>'
    yield "</tr></thead>"
    for _, group in groupby(table, key=lambda row: row.cell["task"]):
        yield "<tbody>"
        for row in group:
            tone = "baseline" if row.is_baseline else row.cell["verdict"]
            yield f'<tr class="{h(tone)}" title="{h(row.cell["signature"])}">'
            for name, text in zip(COLUMNS, row.texts, strict=True):
                css = "text" if name in TEXT_COLUMNS else ""
                shown = h(text)
                if name == "verdict" and not row.is_baseline:
                    word = row.cell["verdict"]
                    shown = f"{_verdict(row.cell)} <small>{h(text.removeprefix(word))}</small>"
                elif name == "mapped JSS":
                    css = "strong"
                yield f'<td class="{css}">{shown}</td>'
            yield "</tr>"
        yield "</tbody>"
    yield "</table></div>"


def _beside(report: Mapping[str, Any]) -> Iterator[str]:
    for side in side_tables(report):
        yield f'<h2>{h(side.heading)}</h2><div class="panel"><table class="figures"><thead><tr>'
        css = ["text" if at < side.n_text else "" for at in range(len(side.columns))]
        yield "".join(
            f'<th class="{c}">{h(n)}</th>' for c, n in zip(css, side.columns, strict=True)
        )
        yield "</tr></thead><tbody>"
        for row in side.rows:
            cells = (f'<td class="{c}">{h(text)}</td>' for c, text in zip(css, row, strict=True))
            yield f"<tr>{''.join(cells)}</tr>"
        yield "</tbody></table></div>"
        for note in side.notes:
            yield f'<p class="note">{h(note)}</p>'


def advice(report: Mapping[str, Any]) -> Iterator[str]:
    """What to do, case by case."""
    if not report["findings"]:
        return
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
    cells = main_cells(report)
    yield '<h2>What to do</h2><ul class="advice">'
    for key, group in groupby(report["findings"], key=identity):
        first, *rest = group
        degenerate = key in cells and cells[key]["mapped"]["verdict"] == "degenerate"
        tone = "degenerate" if degenerate else TONES[first["kind"]]
        where = f"{h(names[key[1]])} on {h(key[2])}"
        yield (
            f'<li class="{tone}"><p><strong>{where}</strong> '
            f'<span class="note">{h(key[3])} scoring</span></p><p>{h(sentence(first["text"]))}</p>'
        )
        if rest:
            listed = "".join(f"<li>{h(sentence(finding['text']))}</li>" for finding in rest)
            yield f"<ul>{listed}</ul>"
        yield "</li>"
    yield "</ul>"


def heatmaps(report: Mapping[str, Any]) -> Iterator[str]:
    """Agreement of each two wordings, a panel a case."""
    tables = [row for row in report["template_pairs"] if row["labels"] == "mapped"]
    if not tables:
        return
    names = short_names({row["judge"] for row in tables})
    by_case: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for row in tables:
        by_case.setdefault(identity(row), []).append(row)
    yield "<h2>Which wordings agree</h2>"
    yield (
        '<p class="note">Mapped JSS of each two wordings, and beside it each wording’s mean with '
        "the others and its accuracy.</p>"
        '<div class="key"><span><i style="background:var(--orange-fill)"></i>0.5 and below</span>'
        f'<span><i style="background:var(--paper)"></i>{STEADY_JSS}</span>'
        '<span><i style="background:var(--blue-fill)"></i>1</span></div><div class="grids">'
    )
    order = [identity(row.cell) for row in rows(report)]
    for key in sorted(by_case, key=order.index):
        words = [row for row in report["templates"] if identity(row) == key]
        title = f"{h(key[2])} <span class='note'>{h(names[key[1]])} · {h(key[3])}</span>"
        wide = "" if len(words) <= MANY_TEMPLATES else " wide"
        yield f'<div class="panel{wide}"><h3>{title}</h3>{heat_table(by_case[key], words)}</div>'
    yield "</div>"


def heat_table(pairs: Sequence[Mapping[str, Any]], words: Sequence[Mapping[str, Any]]) -> str:
    """Template x template agreement as a table; ``words`` are the templates' own figures."""
    templates = sorted({row[side] for row in pairs for side in ("template_a", "template_b")})
    short = short_templates(templates)
    value = {(row["template_a"], row["template_b"]): row for row in pairs}
    about = {row["template"]: row for row in words}
    long = max(map(len, short.values())) > LONG_NAME
    turned = '<div class="down">{}</div>' if long else "{}"
    head = "".join(f"<th>{turned.format(h(short[name]))}</th>" for name in templates)
    lines = [
        f'<table class="heat"><tr><th></th>{head}<th class="side">mean</th>'
        '<th class="side">accuracy</th></tr>'
    ]
    for one in templates:
        lines.append(f'<tr><th title="{h(one)}">{h(short[one])}</th>')
        for two in templates:
            lines.append(_heat_cell(value.get((one, two)) or value.get((two, one)), one == two))
        own = about.get(one, {"agreement": None, "accuracy": None})
        lines.append(f'<td class="side">{number(own["agreement"], 2)}</td>')
        lines.append(f'<td class="side">{percent(own["accuracy"])}</td></tr>')
    return "".join([*lines, "</table>"])


def _heat_cell(row: Mapping[str, Any] | None, same: bool) -> str:
    if row is None or row["jss"] is None:
        return f'<td class="{"same" if same else "none"}">{"" if same else "·"}</td>'
    jss = row["jss"]
    side, share = ("high", (jss - STEADY_JSS) / (1 - STEADY_JSS)) if jss >= STEADY_JSS else (
        "low", (STEADY_JSS - jss) / 0.3
    )  # fmt: skip
    title = f"{row['template_a']} and {row['template_b']}: {number(jss)} {interval(row)}, "
    title += f"{row['n_pairs']} pairs"
    strength = round(100 * min(1.0, share))
    return f'<td class="{side}" style="--t:{strength}%" title="{h(title)}">{number(jss, 2)}</td>'


def flips(report: Mapping[str, Any]) -> Iterator[str]:
    """Verdicts that flipped, both prompts side by side."""
    if not report["examples"]:
        return
    names = short_names({example["judge"] for example in report["examples"]})
    yield "<h2>Verdicts that flipped</h2>"
    yield (
        '<p class="note">The same item under two wordings, the judge’s surest flips first. What '
        "both prompts share is grey.</p>"
    )
    for example in _distinct(report["examples"]):
        where = [names[example["judge"]], example["task"], f"{example['scoring']} scoring"]
        where += [f"item {example['item_id']}"]
        where += [] if example["order"] == "-" else [f"order {example['order']}"]
        where += [] if example["gold"] is None else [f"gold {example['gold']}"]
        first, second = example["a"], example["b"]
        tail = _shared_tail(first["text"] or "", second["text"] or "")
        yield f'<article class="panel flip"><header>{h(" · ".join(where))}</header>'
        yield '<div class="two">'
        yield _side(first, tail, example["gold"])
        yield _side(second, tail, example["gold"])
        yield "</div></article>"


def _distinct(examples: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Coherence first; a pair that flips in both scorings is shown once."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for example in sorted(examples, key=lambda each: task_rank(each["task"])):
        pair = (example["a"]["prompt_id"], example["b"]["prompt_id"])
        found.setdefault((example["judge"], example["task"], example["item_id"], pair), example)
    return list(found.values())


def _shared_tail(first: str, second: str) -> int:
    """Length of the common end of two prompts, in whole lines."""
    tail = same_start(first[::-1], second[::-1])[::-1]
    if tail in (first, second):
        return len(tail)
    cut = tail.find("\n")
    return 0 if cut < 0 else len(tail) - cut


def _side(side: Mapping[str, Any], tail: int, gold: str | None) -> str:
    parts = [f'<div><div class="name">{h(side["template"])}</div>']
    if side["text"]:
        cut = len(side["text"]) - tail
        parts.append(
            f'<pre><b>{h(side["text"][:cut])}</b><span class="same">{h(side["text"][cut:])}</span>'
            "</pre>"
        )
    notes = []
    if side["raw"] != side["decision"]:
        notes.append(f"answered {side['raw']}")
    if side["answer"] is not None and side["answer"].strip() != side["raw"]:
        notes.append(f"wrote “{side['answer'].strip()[:300]}”")
    if side["margin"] is not None:
        notes.append(f"by {side['margin']:.2f} nats")
    if gold is not None:
        notes.append("matches gold" if side["decision"] == gold else "does not match gold")
    parts.append(
        f'<p class="answer"><strong>{h(side["decision"])}</strong>'
        f'<span class="note">{h(", ".join(notes))}</span></p></div>'
    )
    return "".join(parts)


def _method(report: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>How this was measured</h2><ul>"
    for text in METHOD:
        plain = text.replace("*", "").replace("`", "")
        yield f"<li><p>{h(plain)}</p></li>"
    yield "</ul><h2>Signatures</h2><p class='note'>Quote a figure with its signature.</p>"
    yield '<div class="panel"><table class="signatures">'
    for cell in report["cells"]:
        yield (
            f"<tr><td>{h(cell['judge'])}</td><td>{h(cell['order'])}</td>"
            f"<td><code>{h(cell['signature'])}</code></td></tr>"
        )
    yield "</table></div><footer>Made by JudgeSense.</footer>"

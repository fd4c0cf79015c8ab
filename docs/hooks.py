"""Generate the site's pages on commands and engine options, and help its search."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import yaml

OPTIONS = "<!-- every option -->"
COMMANDS = "<!-- every command -->"
_BLOCK = re.compile(r"<pre>(<span></span><code>(.*?)</code></pre>)", re.DOTALL)
_WIDE = 104
_WORDS = yaml.safe_load((Path(__file__).parent / "search.yml").read_text("utf-8"))
#: The words that readers may search a page by, by the page's address.
KEYWORDS = {
    Path(page).with_suffix(".html").as_posix(): re.findall(r"[\w./-]+", words)
    for page, words in _WORDS.items()
}

#: Each page and its Markdown, by its path, for the files that language models read.
_PAGES: dict[str, tuple[Any, str]] = {}


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each command."""
    from mkdocs.structure.files import File

    for name, text in commands().items():
        files.append(File.generated(config, f"reference/cli/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill in the options and the list of commands; rank the reference below pages in search."""
    _PAGES[page.file.src_uri] = page, markdown
    if page.file.src_uri.startswith("reference/"):
        page.meta.setdefault("search", {})["boost"] = 0.2
    if page.file.src_uri != "reference/cli.md":
        return markdown
    links = [f"- [`judgesense {name}`](cli/{name}.md)" for name in commands()]
    for place, fill in ((OPTIONS, options()), (COMMANDS, "\n".join(links))):
        if place not in markdown:
            raise ValueError(f"{page.file.src_uri} lacks the line {place}")
        markdown = markdown.replace(place, fill)
    return markdown


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Let sentences in shown output wrap."""
    return _BLOCK.sub(_wrapped, html)


def on_post_build(config: Any) -> None:
    """Add each page's keywords to the search index, as tags that count less than titles."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text("utf-8"))
    index["config"]["fields"] |= {"title": {"boost": 50}, "tags": {"boost": 50}}
    for entry in index["docs"]:
        if words := KEYWORDS.get(entry["location"]):
            entry["tags"] = words
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), "utf-8")
    schema = json.dumps(report_schema(), indent=1, ensure_ascii=False)
    (Path(config.site_dir) / "report.schema.json").write_text(schema + "\n", "utf-8")
    for name, text in texts_for_models(config).items():
        (Path(config.site_dir) / name).write_text(text, "utf-8")


def report_schema() -> dict[str, Any]:
    """The JSON Schema of ``report.json`` and of ``judgesense report DIR --format json``."""
    from pydantic import TypeAdapter

    from judgesense.measure.assessment import Subject
    from judgesense.measure.report_file import LISTS, VERSION

    lists: dict[str, Any] = {}
    for name, record in LISTS.items():
        lists[name] = {"type": "array"}
        if record is not None:
            items = TypeAdapter(record).json_schema(ref_template="#/$defs/{model}")
            lists[name]["items"] = _with_subject(items, Subject._fields)
    definitions: dict[str, Any] = {}
    for entry in lists.values():
        definitions |= entry.get("items", {}).pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A report of JudgeSense",
        "type": "object",
        "properties": {"schema": {"const": VERSION}, **lists},
        "required": ["schema", *lists],
        "$defs": definitions,
    }


def _with_subject(items: dict[str, Any], subject: tuple[str, ...]) -> dict[str, Any]:
    """A record's schema with the run, judge, task and scoring that each entry begins with."""
    texts = {name: {"type": "string"} for name in subject}
    required = [*subject, *items.get("required", ())]
    return items | {"properties": {**texts, **items["properties"]}, "required": required}


def texts_for_models(config: Any) -> dict[str, str]:
    """``llms.txt``, which lists the pages (llmstxt.org), and ``llms-full.txt``, which has them."""
    pages = [(page, text) for name, (page, text) in sorted(_PAGES.items()) if _is_guide(name)]
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Pages", ""]
    for page, text in pages:
        lines.append(f"- [{page.title}]({page.url}): {_first_sentence(text)}")
    whole = "\n\n".join(f"<!-- {page.url} -->\n{text.strip()}" for page, text in pages)
    return {"llms.txt": "\n".join([*lines, ""]), "llms-full.txt": f"{whole}\n"}


def _first_sentence(markdown: str) -> str:
    paragraphs = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL).split("\n\n")
    text = next((part for part in map(str.strip, paragraphs) if part[:1].isalpha()), "")
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.split(r"(?<=[.?:]) ", plain, maxsplit=1)[0]


def _is_guide(name: str) -> bool:
    return not name.startswith(("reference/", "results/"))


def _wrapped(block: re.Match[str]) -> str:
    wide = [line for line in unescape(block[2]).splitlines() if len(line) > _WIDE]
    coloured = "<span class=" in block[2]  # code, not output
    if coloured or not wide or any(re.search(r"\S {2,}\S", line) for line in wide):
        return block[0]
    return f'<pre class="wrap">{block[1]}'


def options() -> str:
    """Every option of the engines, as a Markdown table."""
    from local_judges.options import setting_rows

    lines = ["| key | engines | default | meaning |", "| --- | --- | --- | --- |"]
    for key, engines, default, meaning in setting_rows():
        lines.append(f"| `{key}` | {engines} | {f'`{default}`' if default else ''} | {meaning} |")
    return "\n".join(lines)


def commands() -> dict[str, str]:
    """Each command's arguments and options as Markdown, by name."""
    import typer.main
    from typer.cli import get_docs_for_click

    from judgesense.cli import app

    root: Any = typer.main.get_command(app)
    context = root.make_context("judgesense", ["--help"], resilient_parsing=True)
    pages = {}
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if command.hidden:
            continue
        text: str = get_docs_for_click(
            obj=command, ctx=context, name=name, call_prefix="judgesense"
        )
        pages[name] = re.sub(r"^#+", "#", text.replace("```console\n$ ", "```\n"), count=1)
    return pages

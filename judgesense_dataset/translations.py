"""The package's translations, text by text, and whether people have read them.

``judgesense study rater-kit --language es`` asks people, and writes their readings in the form of
`RECORDED`. A reading counts for the text that was read: if the text changes, it is unread again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.files.tables import read_table
from judgesense_dataset.templates import DATA, LANGUAGE_FILES, TaskTemplates, load_templates

RECORDED = DATA / "translation_readings.jsonl"
"""The readings that came with the package; there may be none."""

INSTRUCTION, LAYOUT = "instruction", "layout"


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated text beside its English source.

    ``text_id`` names the template, the task (of a layout) or the item, ``part`` which of its texts
    this is: ``instruction``, ``layout`` or an item's field. ``back`` is the translation turned back
    into English by the machine that made it; "" where none is recorded.
    """

    language: str
    task: str
    text_id: str
    part: str
    english: str
    text: str
    back: str = ""

    @property
    def key(self) -> str:
        """What identifies the text in its language."""
        return f"{self.text_id}/{self.part}"

    @property
    def sha256(self) -> str:
        """The beginning of the text's hash, which ties a reading to it."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one person says of one translated text: it means the same, and it reads well.

    ``correction`` is the text that they propose instead, or "".
    """

    language: str
    key: str
    sha256: str
    reader: str
    same_meaning: bool
    natural: bool
    correction: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the translation into a language has been read.

    A text is read if somebody has read it as it is now. It is ``wrong`` if one of its readers says
    that its meaning differs, ``unnatural`` if one says that it does not read well.
    """

    language: str
    n_texts: int
    n_read: int
    n_wrong: int
    n_unnatural: int
    readers: int

    @property
    def machine_made(self) -> bool:
        """Whether some text has been read by nobody."""
        return self.n_read < self.n_texts

    def __str__(self) -> str:
        if not self.n_read:
            return "machine-made, read by nobody"
        people = "1 person" if self.readers == 1 else f"{self.readers} people"
        read = f"read by {people}"
        if self.machine_made:
            read = f"machine-made, {self.n_read} of {self.n_texts} texts {read}"
        faults = f"meaning wrong in {self.n_wrong}, style in {self.n_unnatural} of {self.n_read}"
        return f"{read} ({faults})"


def translations(language: str, tasks: Iterable[str] | None = None) -> list[Translation]:
    """Every translated text of a language: wordings and layouts, then items, task by task.

    Raises:
        JudgeSenseError: a language without templates, or an unknown task.

    >>> texts = translations("es", ["factuality"])
    >>> texts[0].key, texts[0].back
    ('factuality-1/instruction', 'Is this correct as to the facts? Answer only YES or NO.')
    >>> len(texts)
    22
    """
    if language not in LANGUAGE_FILES:
        raise JudgeSenseError(
            f"no templates in the language {language!r}; there are {', '.join(LANGUAGE_FILES)}"
        )
    known = load_templates(LANGUAGE_FILES[language])
    wanted = list(known) if tasks is None else list(tasks)
    if unknown := [name for name in wanted if name not in known]:
        raise JudgeSenseError(f"unknown task {unknown[0]!r}; choose from {', '.join(known)}")
    english = load_templates(DATA / "templates.yaml")
    backs = read_yaml(DATA / "back_translations.yaml").get(language, {})
    found: list[Translation] = []
    for task in wanted:
        found += _wordings(language, known[task], english[task], backs)
        found += _items(language, known[task])
    return found


def _wordings(
    language: str, own: TaskTemplates, english: TaskTemplates, backs: Mapping[str, str]
) -> list[Translation]:
    task = own.task.name
    sources = {template.template_id: template for template in english.templates}
    found = [
        Translation(
            language, task, one.template_id, INSTRUCTION, sources[one.template_id].text, one.text,
            backs.get(one.template_id, ""),
        )
        for one in own.templates
    ]  # fmt: skip
    layouts = english.templates[0].layout, own.templates[0].layout
    return [*found, Translation(language, task, task, LAYOUT, *layouts)]


def _items(language: str, entry: TaskTemplates) -> list[Translation]:
    name = f"{entry.task.name}.jsonl"
    path = LANGUAGE_FILES[language].with_name(name)
    if not path.is_file():
        return []
    english = {one.values["item_id"]: one.values for one in read_table(DATA / name)}
    return [
        Translation(
            language, entry.task.name, row["item_id"], field, english[row["item_id"]][field],
            row[field], row.get("back_translation", {}).get(field, ""),
        )
        for row in (one.values for one in read_table(path))
        for field in sorted(entry.fields, key=list(row).index)
    ]  # fmt: skip


def mark_of(language: str, readings: Iterable[Reading] | None = None) -> Mark:
    """How far a language has been read, by default by the readings in the package.

    >>> mark_of("es", []).machine_made
    True
    """
    texts = {text.key: text.sha256 for text in translations(language)}
    said: dict[str, list[Reading]] = {}
    for one in load_readings() if readings is None else readings:
        if one.language == language and texts.get(one.key) == one.sha256:
            said.setdefault(one.key, []).append(one)
    return Mark(
        language=language,
        n_texts=len(texts),
        n_read=len(said),
        n_wrong=sum(not all(one.same_meaning for one in group) for group in said.values()),
        n_unnatural=sum(not all(one.natural for one in group) for group in said.values()),
        readers=len({one.reader for group in said.values() for one in group}),
    )


def load_readings(path: Path = RECORDED) -> list[Reading]:
    """The readings of a file that :func:`write_readings` wrote; none if there is no such file.

    Raises:
        JudgeSenseError: naming file and row, a row with other columns, or a value that is neither
            true nor false.
    """
    if not path.is_file():
        return []
    found = []
    for record in read_table(path):
        row, where = record.values, record.place
        if row.keys() != set(Reading.__slots__):
            raise JudgeSenseError(f"{where}: a reading has {', '.join(Reading.__slots__)}")
        for name in ("same_meaning", "natural"):
            if not isinstance(row[name], bool):
                raise JudgeSenseError(f"{where}, {name}: must be true or false, got {row[name]!r}")
        found.append(Reading(**row))
    return found


def write_readings(path: Path, readings: Iterable[Reading]) -> None:
    """Write readings as JSON lines."""
    lines = (json.dumps(asdict(one), ensure_ascii=False) for one in readings)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")

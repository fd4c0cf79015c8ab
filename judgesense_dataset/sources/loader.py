"""The parts that all sources share: read a set from the Hub or a mirror, check it, draw items."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.tasks import Item
from judgesense_dataset.folder import content_revision, front_matter
from judgesense_dataset.load import snapshot
from judgesense_dataset.templates import DATA

_T = TypeVar("_T")


@dataclass(frozen=True)
class Collected:
    """The items of a source, and notes for the dataset card on how they were chosen."""

    items: list[Item]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class DataSource:
    """A public set as a source of items for one task.

    ``collect(reader, n, seed)`` returns n items, or all of them if n is None; ``cites`` are keys in
    ``data/citations.bib``.
    """

    task: str
    title: str
    collect: Callable[[Reader, int | None, int], Collected]
    cites: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceTable:
    """One split of a public set.

    ``revision`` is the Hub commit, or ``sha256:`` and the hash of a mirror folder's Parquet files.
    """

    name: str
    revision: str
    license: str
    rows: Any

    @property
    def where(self) -> str:
        """Set and revision, for error messages."""
        return f"{self.name} at revision {self.revision}"

    def item(
        self,
        item_id: str,
        task: str,
        fields: Mapping[str, str],
        gold: str,
        cluster_id: str,
        system_id: str = "",
    ) -> Item:
        """An item of this set, with its source, revision and licence."""
        provenance = (self.name, self.revision, self.license)
        return Item(item_id, task, fields, gold, cluster_id, system_id, *provenance)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each row with its place. Raises JudgeSenseError for text that is not UTF-8."""
        rows = iter(self.rows)
        for number in range(1, len(self.rows) + 1):
            place = f"{self.where}, row {number}"
            try:
                row = next(rows)
            except UnicodeDecodeError as error:
                raise JudgeSenseError(f"{place}: holds text that is not UTF-8") from error
            yield place, row


@dataclass(frozen=True)
class Reader:
    """Reads public sets through ``datasets``: from the Hub, or from a mirror folder.

    ``mirror`` holds ``<org>/<name>`` folders in the schema of the Hub sets of those names;
    ``revisions`` pins Hub commits by set.
    """

    mirror: Path | None = None
    revisions: Mapping[str, str] = field(default_factory=dict)

    def splits(
        self, name: str, config: str | None, columns: Mapping[str, type], license_: str
    ) -> dict[str, SourceTable]:
        """Every split of a set, checked to have these columns (name -> type of the values).

        ``license_`` is recorded if the set's card names none. Raises JudgeSenseError for a set
        that cannot be read from the mirror or the Hub, and, naming the revision, for a column that
        is missing or has another type.
        """
        try:
            import datasets
        except ImportError as error:
            raise MissingExtraError("datasets", "data", f"reading the set {name}") from error

        bars = datasets.is_progress_bar_enabled()
        datasets.disable_progress_bars()
        try:
            if self.mirror is None:
                folder = snapshot(name, self.revisions.get(name))
                revision = folder.name
            else:
                folder = self._mirrored(name)
                revision = content_revision(folder, sorted(folder.rglob("*.parquet")))
            # datasets caches a folder by its name, not by its content.
            with tempfile.TemporaryDirectory() as scratch:
                loaded = datasets.load_dataset(
                    str(folder), config, cache_dir=scratch, keep_in_memory=True
                )
        except JudgeSenseError:
            raise
        except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
            # "An error occurred while generating the dataset" is less useful than its cause.
            reason = str(error.__cause__ or error).strip() or type(error).__name__
            raise JudgeSenseError(
                f"the set {name}{f' (config {config})' if config else ''} cannot be read from "
                f"{self.mirror or 'the Hub'}: {reason.splitlines()[0]}"
                f"{'' if self.mirror else '; read a local copy with --mirror DIR'}"
            ) from error
        finally:
            if bars:
                datasets.enable_progress_bars()
        readme = folder / "README.md"
        stated = front_matter(readme).get("license") if readme.is_file() else None
        terms = ", ".join(stated) if isinstance(stated, list) else str(stated or license_)
        tables = {split: SourceTable(name, revision, terms, rows) for split, rows in loaded.items()}
        for table in tables.values():
            _check_columns(table, columns)
        return tables

    def split(
        self,
        name: str,
        config: str | None,
        split: str,
        columns: Mapping[str, type],
        license_: str,
    ) -> SourceTable:
        """One split of a set; raises as :meth:`splits`, and for a missing split."""
        tables = self.splits(name, config, columns, license_)
        if split not in tables:
            where = next(iter(tables.values())).where
            raise JudgeSenseError(f"{where} has no split {split!r}; it has {', '.join(tables)}")
        return tables[split]

    def _mirrored(self, name: str) -> Path:
        assert self.mirror is not None
        folder = self.mirror / name
        if not folder.is_dir():
            raise JudgeSenseError(
                f"the mirror {self.mirror} lacks the set {name}; fetch it on a machine that "
                f"reaches the Hub with: hf download {name} --repo-type dataset --local-dir {folder}"
            )
        return folder


def citations(keys: Iterable[str]) -> list[str]:
    """The BibTeX entries of these keys in ``data/citations.bib``."""
    entries = (DATA / "citations.bib").read_text(encoding="utf-8").strip().split("\n\n")
    by_key = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
    return [by_key[key] for key in keys]


def _check_columns(table: SourceTable, columns: Mapping[str, type]) -> None:
    first = table.rows[0] if len(table.rows) else {}
    for name, kind in columns.items():
        if name not in table.rows.column_names:
            problem = f"lacks the {name!r} column; it has {', '.join(table.rows.column_names)}"
        elif first and not isinstance(first[name], kind):
            problem = f"has {type(first[name]).__name__}, not {kind.__name__}, in column {name!r}"
        else:
            continue
        raise JudgeSenseError(
            f"{table.where} {problem}. The set has changed its schema: use an earlier revision "
            "(--pin SET=COMMIT)"
        )


def clean_text(value: Any, place: str, column: str) -> str:
    """Strip a text. Raises JudgeSenseError if it is empty or no text."""
    if not isinstance(value, str) or not value.strip():
        raise JudgeSenseError(
            f"{place}, column {column}: must be non-empty text, got {value!r:.60}"
        )
    return value.strip()


def generator(seed: int, name: str) -> np.random.Generator:
    """A random stream per source, so that adding a source changes no other."""
    return np.random.default_rng([seed, *name.encode()])


def shuffled(values: Sequence[_T], rng: np.random.Generator) -> list[_T]:
    """The values in a random order."""
    return [values[at] for at in rng.permutation(len(values))]


def halves(n: int, rng: np.random.Generator) -> list[bool]:
    """n values in a random order, half of them true: whether the better option is shown first."""
    return shuffled([at % 2 == 0 for at in range(n)], rng)


def quotas(n: int, strata: Sequence[str]) -> dict[str, int]:
    """Divide n evenly over the strata; the first ones get the remainder."""
    share, rest = divmod(n, len(strata))
    return {name: share + (at < rest) for at, name in enumerate(strata)}


def draw(
    candidates: Sequence[Item], quota_of: Mapping[str, int], rng: np.random.Generator, what: str
) -> list[Item]:
    """Draw the wanted number of items of each gold label, spread over all clusters.

    Within a label, items of the clusters least used so far come first, in random order. Raises
    JudgeSenseError with the available number of ``what`` if a label has too few.
    """
    by_gold: dict[str, list[Item]] = {gold: [] for gold in quota_of}
    for item in candidates:
        if item.gold in by_gold:
            by_gold[item.gold].append(item)
    for gold, n in quota_of.items():
        if len(by_gold[gold]) < n:
            most = min(len(group) for group in by_gold.values()) * len(quota_of)
            raise JudgeSenseError(
                f"too few items: {len(by_gold[gold])} {what} have the gold label {gold}, but {n} "
                f"were requested; use at most --limit {most} for balanced labels, or --limit all "
                f"for all {len(candidates)} {what}"
            )
    uses: Counter[str] = Counter()
    items: list[Item] = []
    # Scarce labels first: they have the fewest clusters to choose from.
    for gold in sorted(quota_of, key=lambda gold: len(by_gold[gold])):
        pool = shuffled(by_gold[gold], rng)
        for _ in range(quota_of[gold]):
            index = min(range(len(pool)), key=lambda at: uses[pool[at].cluster_id])
            item = pool.pop(index)
            uses[item.cluster_id] += 1
            items.append(item)
    return shuffled(items, rng)


def all_or_drawn(
    items: Sequence[Item],
    notes: list[str],
    n: int | None,
    labels: Sequence[str],
    rng: np.random.Generator,
    what: str,
) -> Collected:
    """All items if ``n`` is None, else n of them with balanced labels, as `draw`."""
    chosen = list(items) if n is None else draw(items, quotas(n, labels), rng, what)
    return Collected(chosen, notes)


def drop_repeated(items: Sequence[Item], what: str) -> tuple[list[Item], list[str]]:
    """The items without repeated texts, and a note on those left out.

    Of items with the same text the first is kept, or none if their gold labels differ.
    """
    golds: dict[tuple[str, ...], set[str | None]] = {}
    keys = [tuple(" ".join(text.split()) for text in item.fields.values()) for item in items]
    for key, item in zip(keys, items, strict=True):
        golds.setdefault(key, set()).add(item.gold)
    contents: set[tuple[str, ...]] = set()
    distinct = []
    for key, item in zip(keys, items, strict=True):
        if key not in contents and len(golds[key]) == 1:
            distinct.append(item)
        contents.add(key)
    clashing = sum(len(labels) > 1 for labels in golds.values())
    notes = []
    if repeated := len(items) - len(distinct):
        notes.append(
            f"{repeated} of {len(items)} {what} repeat another's text and were left out"
            + (f", and so was every copy of {clashing} with two gold labels." if clashing else ".")
        )
    return distinct, notes

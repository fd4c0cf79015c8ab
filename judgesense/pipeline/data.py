"""The data of a run: an embedded set, a folder, a Hub id, or two files of your own; variants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.pipeline.settings import Settings

if TYPE_CHECKING:
    from judgesense.tasks import Item
    from judgesense_dataset.templates import TaskTemplates

    Parts = Callable[[], tuple[Mapping[str, TaskTemplates], Sequence[Item]]]
    """Reads templates by task, and the items of all tasks."""


@dataclass(frozen=True)
class DataReference:
    """The data of a run by name; ``identity`` fixes its content, as JSON values.

    ``parts`` reads the templates and items behind it, which variants need. ``variants`` are the
    names of `data_reference`. If the templates are not in English, the package's variants with a
    text are left out. ``attacks`` is a choice of
    :func:`judgesense_dataset.attacks.chosen_attacks`, "" for none, ``damage`` the number of outputs
    to make wrong on purpose. ``benchmark`` is what `selected` returned before, so that it is built
    once. ``own`` prompts are the user's, not a benchmark's; ``groups`` are the other columns of
    their items, as `judgesense.log.folder.ITEM_SCHEMA`.
    """

    identity: Mapping[str, Any]
    load: Callable[[], Benchmark]
    parts: Parts | None = None
    variants: tuple[str, ...] = ()
    attacks: str = ""
    damage: int = 0
    benchmark: Benchmark | None = None
    own: bool = False
    groups: pa.Table | None = None

    def selected(self, settings: Settings) -> Benchmark:
        """The prompts and pairs that the settings choose, with the variants.

        Raises JudgeSenseError for data or variants that cannot be read or used.
        """
        if self.benchmark is not None:
            return self.benchmark
        benchmark = self.load().select(settings.tasks, settings.orders, settings.limit)
        if self.variants:
            benchmark = self._with_variants(benchmark, settings)
        if self.attacks:
            benchmark = self.with_attacks(benchmark, settings)
        return self.with_damage(benchmark, settings) if self.damage else benchmark

    def with_damage(
        self, benchmark: Benchmark, settings: Settings, *, unnamed: bool = True
    ) -> Benchmark:
        """A benchmark with the damage added; ``unnamed`` is that of
        :func:`judgesense_dataset.damage_design.with_damage`. Raises JudgeSenseError as `selected`.
        """
        from judgesense_dataset.damage_design import with_damage

        return with_damage(
            benchmark,
            *self._parts("damage"),
            self.damage,
            orders=settings.orders,
            seed=settings.seed,
            unnamed=unnamed,
        )

    def with_attacks(self, benchmark: Benchmark, settings: Settings) -> Benchmark:
        """A benchmark with the attacks added. Raises JudgeSenseError as `selected`."""
        from judgesense_dataset.attacks import chosen_attacks, with_attacks
        from judgesense_dataset.variants import chosen_variants

        variants = chosen_variants(self.variants)[1] if self.variants else []
        return with_attacks(
            benchmark,
            *self._parts("attacks"),
            chosen_attacks(self.attacks),
            defences=[variant for variant in variants if variant.group == "defence"],
            orders=settings.orders,
            seed=settings.seed,
        )

    def _parts(self, what: str) -> tuple[Mapping[str, TaskTemplates], Sequence[Item]]:
        if self.parts is None:
            raise JudgeSenseError(f"{what} need templates and items; pass both")
        return self.parts()

    def _with_variants(self, benchmark: Benchmark, settings: Settings) -> Benchmark:
        from judgesense_dataset.recognition import language_of
        from judgesense_dataset.variant_design import with_variants
        from judgesense_dataset.variants import chosen_variants

        reworded, variants = chosen_variants(self.variants)
        templates, items = self._parts("variants")
        if (language := language_of(templates)) != "en":
            untranslated = [variant for variant in variants if variant.in_english]
            if requested := [v.name for v in untranslated if v.name in self.variants]:
                raise JudgeSenseError(
                    f"the {requested[0]!r} variant has no text in the data's language "
                    f"({language}); write the text in your own YAML file"
                )
            variants = [variant for variant in variants if variant not in untranslated]
        return with_variants(
            benchmark,
            templates,
            items,
            variants,
            reworded=reworded,
            orders=settings.orders,
            named=[v.name for v in variants if v.name in self.variants],
            seed=settings.seed,
        )


def data_reference(
    dataset: str | Path | None,
    templates: str | Path | None,
    items: str | Path | None,
    variants: Sequence[str] | None = None,
    attacks: str | None = None,
) -> DataReference:
    """The benchmark of that name, or of these two files; nothing is loaded yet.

    ``variants`` are ``all``, groups, names of variants or YAML files
    (:func:`judgesense_dataset.variants.chosen_variants`); with them, ``templates`` may be those of
    a dataset. ``attacks`` are quick, all or a YAML file
    (:func:`judgesense_dataset.attacks.chosen_attacks`).

    Raises JudgeSenseError for one file without the other, both kinds at once, a missing file,
    an unknown variant and unknown attacks.

    >>> data_reference(None, None, None).identity["dataset"]
    'embedded'
    """
    files = {"templates": templates, "items": items}
    paths, identity = {}, {}
    for name, file in files.items():
        if file is not None:
            paths[name] = path = Path(file)
            if not path.is_file():
                raise JudgeSenseError(f"no file {path}")
            identity[name] = {"path": str(path.resolve()), "sha256": sha256_of(path)}
    if not paths:
        reference = _named_data(dataset)
    elif dataset is not None and list(paths) == ["templates"] and variants:
        data = _named_data(dataset)
        parts = partial(_recover_parts, data.load, paths["templates"])
        reference = replace(data, identity={**data.identity, **identity}, parts=parts)
    elif len(paths) == 1:
        (name,), (missing,) = paths, files.keys() - paths
        raise JudgeSenseError(f"--{name} needs --{missing}: give templates and items together")
    elif dataset is not None:
        raise JudgeSenseError("give either --dataset, or --templates and --items")
    else:
        from judgesense_dataset.pairing import build_from_files, read_files

        both = paths["templates"], paths["items"]
        reference = DataReference(
            identity, partial(build_from_files, *both), partial(read_files, *both), own=True
        )
    return add_attacks(add_variants(reference, variants), attacks)


def add_variants(data: DataReference, variants: Sequence[str] | None) -> DataReference:
    """The same data with variants, as in :func:`data_reference`; without any, as it was."""
    if not variants:
        return data
    from judgesense_dataset.variants import chosen_variants, variant_files

    chosen_variants(variants)
    files = {name: sha256_of(Path(name)) for name in variant_files(variants)}
    identity = {"variants": list(variants), **({"variant_files": files} if files else {})}
    return replace(data, identity={**data.identity, **identity}, variants=tuple(variants))


def add_attacks(data: DataReference, choice: str | Path | None) -> DataReference:
    """The same data with attacks, as in :func:`data_reference`; without any, as it was."""
    if not choice or choice == "none":
        return data
    from judgesense_dataset.attacks import chosen_attacks

    choice = str(choice)
    identity = {"attacks": choice, "attack_file": sha256_of(Path(chosen_attacks(choice).where))}
    return replace(data, identity={**data.identity, **identity}, attacks=choice)


def add_damage(data: DataReference, n: int) -> DataReference:
    """The same data with n outputs made wrong on purpose; with 0, as it was."""
    if not n:
        return data
    from judgesense_dataset.damage_rules import DAMAGE

    identity = {"damage": n, "damage_file": sha256_of(DAMAGE)}
    return replace(data, identity={**data.identity, **identity}, damage=n)


def _named_data(dataset: str | Path | None) -> DataReference:
    """An embedded set (None: the benchmark), a dataset's folder, or one on the Hub."""
    from judgesense_dataset.embedded import (
        EMBEDDED,
        EMBEDDED_SETS,
        EMBEDDED_VERSION,
        embedded_items,
        embedded_templates,
    )
    from judgesense_dataset.load import data_files, load_benchmark

    load = partial(load_benchmark, dataset)
    if dataset is None or str(dataset) in EMBEDDED_SETS:
        name = str(dataset or EMBEDDED)
        identity = {"dataset": name, "version": EMBEDDED_VERSION}
        return DataReference(
            identity, load, lambda: (embedded_templates(name), embedded_items(name))
        )
    folder, identity = Path(dataset), {"dataset": str(dataset)}
    if folder.is_dir():
        data_files(folder)
        content = sorted(p for p in folder.rglob("*") if p.suffix in (".parquet", ".jsonl"))
        digest = hashlib.sha256("".join(sha256_of(path) for path in content).encode()).hexdigest()
        identity = {"dataset": str(folder.resolve()), "sha256": digest}
    return DataReference(identity, load, partial(_recover_parts, load, None))


def _recover_parts(
    load: Callable[[], Benchmark], templates: Path | None
) -> tuple[Mapping[str, TaskTemplates], Sequence[Item]]:
    from judgesense_dataset.recognition import recover_parts

    return recover_parts(load(), templates)

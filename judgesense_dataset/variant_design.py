"""Add variants to a benchmark: a star around the base wording, checked before judging."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.benchmark import Benchmark, table_of_pairs
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import PAIR_SCHEMA, VARIANT_SCHEMA
from judgesense.log.schema import CONTRAST, EQUIVALENT
from judgesense.tasks import Item, Pair, Prompt, Task, Template, pair_up, prompt_id, render
from judgesense_dataset.polarity import INVERTED, names_answer, polarity_cue
from judgesense_dataset.templates import TRANSLATION, TaskTemplates
from judgesense_dataset.variant_changes import EXAMPLES, VariantMaker, row_of
from judgesense_dataset.variants import VARIANTS, Variant

Made = tuple[Variant, Template]
Row = dict[str, object]


def with_variants(
    benchmark: Benchmark,
    templates: Mapping[str, TaskTemplates],
    items: Sequence[Item],
    variants: Sequence[Variant],
    *,
    reworded: bool = True,
    orders: Sequence[str] | None = None,
    named: Sequence[str] = (),
    seed: int = 0,
) -> Benchmark:
    """The benchmark with every variant of the base wording of its tasks and items.

    The base and its variants are asked in both option orders, and the base twice. A pair of the
    base and each equivalent variant joins the benchmark's pairs. A variant that fits a task or an
    item in no way (option labels where there are no options) is left out there.

    Items that are not in the benchmark serve as examples. Without ``reworded``, the benchmark's own
    pairs and wordings are left out. The variants ``named`` must fit at least one task; ``seed``
    fixes sampled formats, examples and opposite items. Raises JudgeSenseError for a variant that
    :func:`made_variants` refuses, or that fits no task.

    >>> from judgesense_dataset.embedded import embedded_items, embedded_templates, load_embedded
    >>> from judgesense_dataset.variants import chosen_variants
    >>> whole = load_embedded().select(["relevance"], limit=2)
    >>> _, variants = chosen_variants(["json"])
    >>> with_variants(whole, embedded_templates(), embedded_items(), variants).pairs.num_rows
    14
    """
    rows: list[Row] = []
    pairs: list[Pair] = []
    wordings = {name: dict(texts) for name, texts in benchmark.wordings.items()}
    layouts = {name: dict(texts) for name, texts in benchmark.layouts.items()}
    names: set[str] = set()
    for name, task in benchmark.tasks.items():
        maker = VariantMaker(templates[name], [i for i in items if i.task == name], seed)
        base = maker.base
        ids = pc.filter(benchmark.prompts["item_id"], pc.equal(benchmark.prompts["task"], name))
        item_ids = set(pc.unique(ids).to_pylist())
        task_items = [item for item in maker.pool if item.item_id in item_ids]
        shown = [order for order in task.orders if not orders or order in orders] or task.orders
        forms = made_variants(maker, task_items[:1], variants)
        names |= {variant.name for variant, _ in forms if not variant.language}
        wordings.setdefault(name, {})
        for variant, template in forms:
            wordings[name][_variant_id(template, variant)] = template.text
            in_system = variant.instruction == "system" or bool(variant.effort)
            if not (variant.changes_item or variant.few_shot or in_system):
                layouts.setdefault(name, {})[_variant_id(template, variant)] = template.layout
        for item in task_items:
            for order in shown:
                plain = render(task, base, item, order)
                rows.append(row_of(plain, again=True))
                for variant, prompt, system in _prompts(maker, forms, item, order):
                    rows.append(
                        row_of(
                            prompt,
                            again=False,
                            variant=variant.name,
                            system=system,
                            variant_class=variant.variant_class,
                            effort=variant.effort,
                            reply_form=variant.reply_form,
                        )
                    )
                    names.add(variant.name)
                    if variant.variant_class == EQUIVALENT:
                        partner = replace(prompt, template_id=f"{base.template_id}+{variant.name}")
                        pairs.append(pair_up(plain, partner))
    if absent := [name for name in named if name not in names]:
        raise next(v for v in variants if v.name == absent[0]).fail(
            f"fits none of the tasks {', '.join(benchmark.tasks)}: they lack the part that it "
            "changes, or it has no text for them"
        )
    without = {variant.name for variant in variants if variant.without}
    if without and not without & names:
        raise JudgeSenseError(
            "no sentence of the wording can be left out: it has one, or each names an answer or a "
            "field; choose other --variants"
        )
    source = {**benchmark.source, "variants": ",".join(sorted(names))}
    spoken = dict.fromkeys(v.language for v in variants if v.language and v.name in names)
    if spoken:
        source["translation"] = "; ".join(f"{code}: {TRANSLATION}" for code in spoken)
    star = pa.Table.from_pylist(rows, schema=VARIANT_SCHEMA)
    prompts = benchmark.prompts if reworded else benchmark.prompts.slice(0, 0)
    old_pairs = benchmark.pairs if reworded else PAIR_SCHEMA.empty_table()
    return replace(
        benchmark,
        prompts=pa.concat_tables([star, _others(prompts, star)]),
        pairs=pa.concat_tables([old_pairs, table_of_pairs(pairs)]),
        source=source,
        wordings=wordings,
        layouts=layouts,
    )


def made_variants(
    maker: VariantMaker, sample: Sequence[Item], variants: Sequence[Variant]
) -> list[Made]:
    """The variants that fit a task with their templates, checked on a sample of its items.

    Raises JudgeSenseError, naming the variant and its place, for one that loses a field, an option
    or an answer, changes the answers without a map, is inverted but not declared contrast, or
    renders as another.
    """
    task, base = maker.task, maker.base
    candidates = ((variant, maker.template(variant)) for variant in variants)
    forms = [(v, t) for v, t in candidates if t is not None and not _for_other_labels(v, t, task)]
    for variant, template in forms:
        _check(variant, template, task, base)
    for item in sample:
        order = task.orders[0]
        names_by_prompt = {render(task, base, item, order).prompt_id: "the base wording"}
        for variant, prompt, _ in _prompts(maker, forms, item, order):
            if prompt.prompt_id in names_by_prompt and variant.guard != "stripped":
                raise variant.fail(
                    f"renders like {names_by_prompt[prompt.prompt_id]} on task {task.name!r} (item "
                    f"{item.item_id!r}); leave out one of the two, or change one"
                )
            names_by_prompt[prompt.prompt_id] = f"the {variant.name!r} variant"
    return forms


def _prompts(
    maker: VariantMaker, forms: Sequence[Made], item: Item, order: str
) -> Iterator[tuple[Variant, Prompt, str]]:
    """The prompts of an item's variants in an order, and the part for the system message.

    Gold is unknown under another criterion.
    """
    task = maker.task
    for variant, template in forms:
        shown_item = maker.item(variant, item, order)
        if shown_item is None:
            continue
        prompt, system = render(task, template, shown_item, order), ""
        if variant.instruction == "system":
            system = render(task, replace(template, layout="{instruction}"), shown_item, order).text
            layout = template.layout.replace("{instruction}", "").strip()
            user_part = render(task, replace(template, text="", layout=layout), shown_item, order)
            prompt = replace(prompt, text=user_part.text)
        if system or variant.effort or variant.reply_form:
            # The user message alone does not identify what is asked.
            reply_forms = [variant.reply_form] if variant.reply_form else []
            parts = (variant.effort, system, prompt.text, *reply_forms)
            prompt = replace(prompt, prompt_id=prompt_id("\0".join(parts)))
        if variant.variant_class == CONTRAST and not (template.inverted or variant.changes_item):
            prompt = replace(prompt, gold=None)
        yield variant, prompt, system


def _check(variant: Variant, template: Template, task: Task, base: Template) -> None:
    place = f"on task {task.name!r}"
    if fields_lost := sorted(base.placeholders - template.placeholders):
        raise variant.fail(f"loses the field {{{fields_lost[0]}}} {place}")
    if fields_added := sorted(template.placeholders - base.placeholders - {EXAMPLES}):
        raise variant.fail(f"shows {{{fields_added[0]}}} {place}, which the base wording does not")
    answers, labels = template.label_map, set(task.labels)
    if strange := [label for label in answers.values() if label not in labels]:
        raise variant.fail(
            f"maps an answer to {strange[0]!r} {place}, whose labels are {', '.join(task.labels)}"
        )
    if unmapped := [label for label in task.labels if label not in answers.values()]:
        raise variant.fail(f"has no answer that means {unmapped[0]!r} {place}")
    text = f"{template.text}\n{template.layout}"
    base_text = f"{base.text}\n{base.layout}"
    for raw in answers:
        if raw in base.label_map and not names_answer(base_text, raw):
            continue  # A scale "from 1 to 5" does not name its 3.
        if not names_answer(text, raw) and (raw in base.label_map or not task.ordinal):
            raise variant.fail(
                f"never names the answer {raw!r} {place}: name it in the text, or give a label_map "
                "from the answers that it asks for"
            )
    is_inverted = any(raw in labels and raw != label for raw, label in answers.items())
    if variant.variant_class != CONTRAST and is_inverted and not base.inverted:
        raise variant.fail(f"inverts the answers {place}: declare it as class: contrast")
    if (
        variant.variant_class != CONTRAST
        and polarity_cue(template.text, task.labels) == INVERTED
        and polarity_cue(base.text, task.labels) != INVERTED
    ):
        raise variant.fail(
            f"asks the opposite {place} ({template.text!r}): declare it as class: contrast"
        )


def _for_other_labels(variant: Variant, template: Template, task: Task) -> bool:
    """Whether a text of the package is for a task of the same name with other labels."""
    if not (variant.texts and variant.where.startswith(str(VARIANTS))):
        return False
    ends = (task.labels[0], task.labels[-1])
    answers = [raw for raw, label in template.label_map.items() if label in ends]
    return not all(names_answer(template.text, raw) for raw in answers) or len(answers) < len(ends)


def _variant_id(template: Template, variant: Variant) -> str:
    return f"{template.template_id}+{variant.name}"


def _others(prompts: pa.Table, star: pa.Table) -> pa.Table:
    def cells(table: pa.Table) -> pa.Array:
        names = ("task", "item_id", "order", "template_id")
        return pc.binary_join_element_wise(*(table[name] for name in names), "\n")

    base = cells(star.filter(pc.is_null(star["variant"])))
    result = prompts.filter(pc.invert(pc.is_in(cells(prompts), value_set=base.combine_chunks())))
    for added in list(VARIANT_SCHEMA)[result.num_columns :]:
        value = pa.scalar(False if added.name == "again" else None, added.type)
        result = result.append_column(added, pa.repeat(value, result.num_rows))
    return result.cast(VARIANT_SCHEMA)

"""What `improve` is asked for: the task, the labelled items, the judges and the budget."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.ask.answers import AnswersSoFar, JudgeScoring
from judgesense.ask.candidates import first_recipes
from judgesense.ask.examples import with_examples
from judgesense.ask.search import FEWEST_INDEPENDENT, least_budget
from judgesense.ask.wordings import (
    WordingToTry,
    is_wordings_file,
    paraphrases_in,
    repeats_of,
    rule_paraphrases,
    validated,
    wordings_to_try,
)
from judgesense.checking.options import RubricOptions
from judgesense.checking.rubric import is_text, read_items
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept_text, materialise
from judgesense.pipeline.judges import identity_of, resolve_all
from judgesense.pipeline.settings import Note, to_stderr
from judgesense.pipeline.verdicts import scoring_of
from judgesense.statistics.arrays import Codes
from judgesense.statistics.copies import folded, linked, near_copies
from judgesense.tasks import Item, Template, render
from judgesense.text import duration
from judgesense_dataset.attacks import SEARCH, Copy, attacked_copies, chosen_attacks
from judgesense_dataset.damage_design import damaged_items
from judgesense_dataset.rubric import read_wordings
from judgesense_dataset.templates import TaskTemplates, load_items, load_templates
from local_judges.options import REMOTE
from local_judges.protocol import Budgeted, Request
from local_judges.registry import JudgeSpec

UNLABELLED = (
    "no people's labels were used. Ways of asking are compared by telling outputs from copies made "
    "wrong on purpose, and by being steady. That is not being right: label 20 items to measure it"
)

_UNSEEN = 0.2
"""The share of damaged copies whose kinds the search does not see."""

_REASONING_TOKENS = 128
"""A judge that may write so many tokens is also asked for its reasons first."""


@dataclass(frozen=True)
class Budget:
    """What may be spent: prompts per labelled item, or US dollars in all.

    >>> Budget.of("$2"), Budget.of(8)
    (Budget(amount=2.0, usd=True), Budget(amount=8.0, usd=False))
    """

    amount: float
    usd: bool

    @classmethod
    def of(cls, text: str | float) -> Budget:
        """Read ``200`` (prompts per item), ``$2`` or ``2usd``. Raises JudgeSenseError."""
        match = re.fullmatch(r"(\$?)\s*([0-9]*\.?[0-9]+)\s*(usd)?", str(text).strip().lower())
        if match is None or float(match.group(2)) <= 0:
            raise JudgeSenseError(
                f"cannot read the budget {text!r}: give prompts per item (20) or US dollars ($2)"
            )
        return cls(float(match.group(2)), bool(match.group(1) or match.group(3)))

    def __str__(self) -> str:
        return f"${self.amount:g}" if self.usd else f"{self.amount:g} prompts per item"


@dataclass(frozen=True)
class ImproveOptions:
    """What a search is asked; :func:`judgesense.improve` describes each field."""

    budget: str | float = 20
    out: str | Path = "judge.yaml"
    paraphraser: Any = None
    seed: int = 0
    max_error: float = 0.05
    human: Sequence[str] = ()
    columns: Mapping[str, str] | None = None
    answers: Sequence[str] | None = None
    map: Mapping[str, str] | None = None
    positive: str | None = None
    options: Mapping[str, str] | None = None
    task: str | None = None
    scoring: str | None = None
    limit: int | None = None
    attacks: str | None = None
    note: Note = to_stderr


@dataclass(frozen=True)
class Plan:
    """What `improve` is asked for, read and checked; no judge is loaded.

    ``items`` are the labelled items and then their attacked ``copies``, as the base wording shows
    them. ``identity`` has what the answers in the folder are about.
    """

    options: ImproveOptions
    budget: Budget
    entry: TaskTemplates
    items: list[Item]
    clusters: Codes
    copies: list[Copy]
    specs: list[Any]
    identity: dict[str, Any]
    notes: list[str]
    paraphrases: list[Template]
    judge_settings: Mapping[str, Mapping[str, Any]]
    """The settings that the caller gave, by the name of each judge."""
    damage: list[str] = field(default_factory=list)
    """Of items without people's labels, how each was made wrong, "" of one that was not."""

    @cached_property
    def unseen(self) -> tuple[list[str], Codes]:
        """The kinds of damage that the search does not see, about a fifth of the copies, and the
        items that it therefore lacks; none of fewer than three kinds."""
        counts = Counter(kind for kind in self.damage if kind)
        hidden, n = list[str](), 0
        drawn = np.random.default_rng([self.options.seed, 61]).permutation(sorted(counts)).tolist()
        for kind in drawn[: len(drawn) - 2]:
            # A kind of nearly all copies leaves nothing to search on.
            if _UNSEEN * counts.total() > n and counts[kind] <= counts.total() / 2:
                hidden.append(kind)
                n += counts[kind]
        clusters = self.clusters[np.isin(self.damage, hidden)]
        return sorted(hidden), np.flatnonzero(np.isin(self.clusters, clusters))

    def settings_of(self, name: str | Path) -> Mapping[str, Any]:
        """The settings of a judge that also proposes wordings; none of another model."""
        return self.judge_settings.get(str(name), {})

    @classmethod
    def of(
        cls,
        source: Any,
        data: Data,
        judge: Any,
        options: ImproveOptions,
        judge_options: Mapping[str, Any],
    ) -> Plan:
        """The plan of the arguments of `judgesense.improve`. Raises JudgeSenseError."""
        budget, out = Budget.of(options.budget), Path(options.out)
        if out.suffix not in (".yaml", ".yml"):
            raise JudgeSenseError(f"--out {out}: name a .yaml file for the judge")
        specs = _judges(judge, options.scoring, judge_options)
        if options.limit is not None and options.limit < 1:
            raise JudgeSenseError(f"limit must be at least 1, got {options.limit}")
        rows_file = materialise(data, out.parent if str(out.parent) != "." else RUNS, "data")
        entry, every = _task(source, rows_file, options)
        if not 0 < options.max_error < 1:
            raise JudgeSenseError(f"max_error must lie between 0 and 1, got {options.max_error}")
        items = [item for item in every if item.gold is not None][: options.limit]
        notes, damage = list[str](), list[str]()
        if not items and every:
            items, damage = damaged_items(entry, every[: options.limit], options.seed)
            notes.append(UNLABELLED)
            if options.attacks:
                raise JudgeSenseError("--attacks needs labelled items, and no item has a label")
        elif len(items) < len(every) and options.limit is None:
            notes.append(f"{len(every) - len(items)} items without a label are not used")
        golds = {item.gold for item in items}
        if absent := [label for label in entry.task.labels if items and label not in golds]:
            notes.append(
                f"no item is labelled {' or '.join(absent)}, so the figures do not cover such items"
            )
        attacks = options.attacks
        if attacks == SEARCH:
            raise JudgeSenseError(
                "improve needs the same attacks for every way of asking: run judgesense run "
                "--attacks search first, then improve with --attacks DIR/attacks.yaml"
            )
        copies = attacked_copies(entry, items, chosen_attacks(attacks)) if attacks else []
        if copies:
            notes.append(
                f"{len(copies)} copies of items contain an attack. They count towards "
                "'resistant' and the budget, but not towards 'right'"
            )
        items += [copy(entry.templates[0], entry.task.orders[0]) for copy in copies]
        clusters, n_near = _clusters(items, len(copies))
        if n_near:
            notes.append(
                f"{n_near} items are nearly copies of others, and count as one with them"
                if len(np.unique(clusters)) >= FEWEST_INDEPENDENT
                else f"{n_near} items are nearly copies of others: what is promised is too high "
                "for new items"
            )
        fixed = [[i.item_id, i.gold, i.cluster_id, sorted(i.fields.items())] for i in items]
        identity = {
            "items": hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:16],
            "task": entry.task.name,
            "labels": list(entry.task.labels),
            "wordings": [
                [t.template_id, t.text, t.layout, dict(t.label_map)] for t in entry.templates
            ],
        }
        paraphrases = rule_paraphrases(entry)
        if is_wordings_file(options.paraphraser):
            of_file = paraphrases_in(Path(options.paraphraser), entry)
            paraphrases = [*validated(of_file, entry, options.note), *paraphrases]
        judges = judge if isinstance(judge, (list, tuple)) else [judge]
        settings = {str(each): judge_options for each in judges if isinstance(each, (str, Path))}
        return cls(
            options,
            budget,
            entry,
            items,
            clusters,
            copies,
            specs,
            identity,
            notes,
            paraphrases,
            settings,
            damage,
        )

    @property
    def out(self) -> Path:
        """The judge's file to write."""
        return Path(self.options.out)

    @property
    def folder(self) -> Path:
        """The folder with the answers."""
        return self.out.with_name(f"{self.out.name}.run")

    @property
    def total(self) -> float:
        """The budget in all, in its unit."""
        return self.budget.amount * (1 if self.budget.usd else len(self.items))

    @property
    def shown(self) -> list[Callable[[Template, str], Item]]:
        """The items, each as a wording shows it in an option order."""
        plain = self.items[: len(self.items) - len(self.copies)]
        return [*(lambda *_, item=item: item for item in plain), *self.copies]

    @cached_property
    def gold(self) -> Codes:
        """The label of each item."""
        labels = self.entry.task.labels
        return np.array([labels.index(str(item.gold)) for item in self.items], dtype=np.int64)

    @cached_property
    def examples(self) -> tuple[WordingToTry | None, Codes]:
        """A wording with examples, and the items that it takes from the search; none without
        people's labels."""
        if self.damage:
            return None, np.zeros(0, dtype=np.int64)
        plain = self.items[: len(self.items) - len(self.copies)]
        return with_examples(self.entry, plain, self.gold, self.clusters, self.options.seed)

    def answers(self, judges: Sequence[Any], proposed: Sequence[Template]) -> AnswersSoFar:
        """No answers yet, by judge and scoring, to the wordings to try."""
        options = [spec.options if isinstance(spec, JudgeSpec) else {} for spec in self.specs]
        reasons = [int(each.get("max_tokens") or 0) >= _REASONING_TOKENS for each in options]
        offered = [{self.options.scoring or scoring_of(each)} for each in judges]
        wordings = wordings_to_try(
            self.entry,
            [*self.paraphrases, *proposed],
            reasons=any(reasons),
            probabilities=any("options" in each for each in offered),
            defences=bool(self.copies),
        )
        if any(each.get("temperature") for each in options):
            wordings += repeats_of(self.entry.templates[0])
        if (shot := self.examples[0]) is not None:
            wordings.append(shot)
        judge_scorings = []
        for n, (spec, kinds) in enumerate(zip(self.specs, offered, strict=True)):
            name = str(getattr(spec, "name", judges[n].name)).split("@")[0]
            price = self._price(spec, [each.template for each in wordings])
            judge_scorings += [JudgeScoring(n, name, scoring, price) for scoring in kinds]
        return AnswersSoFar.empty(
            self.entry.task,
            judge_scorings,
            wordings,
            self.gold,
            self.clusters,
            np.arange(len(self.items)) >= len(self.items) - len(self.copies),
            labelled=not self.damage,
        )

    def _price(self, spec: Any, templates: Sequence[Template]) -> float:
        """The most that a prompt costs in the budget's unit."""
        if not self.budget.usd:
            return 1.0
        from local_judges.api.judge import most_cost

        remote = isinstance(spec, JudgeSpec) and spec.engine in REMOTE
        if not (remote or isinstance(spec, Budgeted)):
            return 0.0
        task = self.entry.task
        longest = max(templates, key=lambda each: len(each.text) + len(each.layout))
        texts = [render(task, longest, item, task.orders[0]).text for item in self.items]
        requests = [[Request("", text, task.labels)] for text in texts]
        costs = [most_cost(r, spec.options) if remote else spec.estimate(r) for r in requests]
        if None in costs:
            raise JudgeSenseError(
                f"a budget in US dollars needs the price of {spec.name} per million tokens: add "
                "--set price=INPUT,OUTPUT, or give the budget in prompts per item"
            )
        return max(float(cost or 0.0) for cost in costs)


def dry_run(plan: Plan) -> list[str]:
    """Lines on what `judgesense.improve` would try and spend; no judge is loaded or asked."""
    answers = plan.answers([_Offers(spec) for spec in plan.specs], [])
    n, total, usd = len(plan.items), plan.total, plan.budget.usd
    singles = first_recipes(answers)
    prompts = len(answers.columns(*singles)) * n
    copies = f" and {len(plan.copies)} attacked copies" if plan.copies else ""
    lines = [
        f"{n - len(plan.copies)} {'outputs, as they are and made wrong' if plan.damage else ''}"
        f"{'' if plan.damage else 'labelled items'}{copies}, {len(singles)} ways to ask "
        f"({len(answers.wordings)} wordings), and panels, juries and cascades of them",
        f"trying all of them on all items takes {prompts} prompts; the budget allows at most "
        + (f"${total:g}" if usd else f"{total:.0f} prompts"),
    ]
    if total < (least := least_budget(answers)):
        lines.append(f"the budget is below one pass, which needs {least:g}")
    if not usd:
        seconds = sum(_seconds(spec) for spec in plan.specs) / len(plan.specs) * total
        lines.append(
            f"about {duration(seconds)} on a 2-core CPU, if every prompt is short"
            if seconds
            else "time: depends on the endpoint"
        )
    return lines


class _Offers:
    """A judge that is not loaded: what it probably offers."""

    def __init__(self, spec: Any) -> None:
        self.name = str(getattr(spec, "name", spec))
        self.scorings = getattr(spec, "scorings", {scoring_of(spec)})


def _seconds(spec: Any) -> float:
    """Roughly, seconds per prompt of a local model on 2 cores: 0.7 per GB of quantised weights."""
    if not isinstance(spec, JudgeSpec) or spec.engine != "transformers":
        return 0.0
    path = Path(spec.model)
    files = [path] if path.is_file() else list(path.glob("*.safetensors")) if path.is_dir() else []
    return 0.1 + 0.7 * sum(file.stat().st_size for file in files) / 1e9


def _clusters(items: Sequence[Item], n_attacked: int) -> tuple[Codes, int]:
    """The clusters, shape (n,), and how many items are nearly copies of others.

    The last ``n_attacked`` items are in the clusters of those that they attack.

    Copies are in one: a text that is judged in the race tells the verdict on its copy, so none may
    be in both halves. Near copies too, unless so few clusters are left that nothing can be
    promised.
    """
    texts = ["\n".join(text for _, text in sorted(item.fields.items())) for item in items]
    stated = [item.cluster_id for item in items]
    whole = linked(stated, [folded(text) for text in texts])
    near = near_copies(texts[: len(items) - n_attacked]).tolist()
    joined = linked(whole.tolist(), [*near, *range(len(near), len(items))])
    n_near = len(np.unique(whole)) - (n_joined := len(np.unique(joined)))
    return (joined if n_joined >= FEWEST_INDEPENDENT else whole), n_near


def _judges(judge: Any, scoring: str | None, judge_options: Mapping[str, Any]) -> list[Any]:
    """The judges to ask, not loaded if they were named, each another one and none a file's."""
    judges = judge if isinstance(judge, (list, tuple)) else [judge]
    specs, identities = resolve_all(judges, scoring, judge_options, own=True), set[str]()
    for spec in specs:
        if getattr(spec, "improved", None) is not None:
            raise JudgeSenseError("improve takes a judge, not a judge's file: name the judge")
        if (identity := json.dumps(identity_of(spec), sort_keys=True)) in identities:
            raise JudgeSenseError(f"two judges are named {spec.name}: leave one out, or rename it")
        identities.add(identity)
    return specs


def _task(source: Any, data: Path, options: ImproveOptions) -> tuple[TaskTemplates, list[Item]]:
    """The task with its wordings, and the items, of a rubric or a template file."""
    if isinstance(source, str) and is_text(source):
        source = kept_text(source.strip() + "\n", Path(options.out).parent, "rubric", ".txt")
    path, task = Path(source), options.task
    if not path.is_file():
        raise JudgeSenseError(f"{path} is not a file; name a rubric or a template file")
    if path.suffix in (".yaml", ".yml"):
        entries = load_templates(path)
        if task is None and len(entries) > 1:
            raise JudgeSenseError(f"{path} has several tasks: --set task={' or '.join(entries)}")
        if task is not None and task not in entries:
            raise JudgeSenseError(f"{path} has no task {task!r}; it has {', '.join(entries)}")
        entry = entries[task] if task else next(iter(entries.values()))
        return entry, load_items(data, entry.task, entry.fields)
    columns = RubricOptions(
        human=options.human,
        columns=options.columns,
        answers=options.answers,
        map=options.map,
        positive=options.positive,
        options=options.options,
    )
    read = read_items(path, data, columns, options.note)
    (entry,), items = read.tasks, read.items
    for suffix in (".wordings.yaml", ".wordings.txt"):
        if (beside := path.with_suffix(suffix)).exists():
            return read_wordings(beside, entry), items
    return entry, items

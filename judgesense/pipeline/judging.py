"""Judging with one judge of a run: load it, ask what is not asked yet, record it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judgesense.benchmark import Benchmark
from judgesense.log.folder import RETRIES
from judgesense.log.run_folder import RunFolder
from judgesense.log.schema import PARTS, SCORINGS
from judgesense.pipeline.first_prompts import first_answers
from judgesense.pipeline.requirements import answerable, name_of
from judgesense.pipeline.settings import Note, Settings
from judgesense.recipes.recipe import AS_ASKED

if TYPE_CHECKING:
    from local_judges.protocol import Answer
    from local_judges.ranks import Ranks
    from local_judges.ray_runner import RayCluster


@dataclass(frozen=True)
class Judging:
    """What all judges of a run share.

    Prompts that failed are asked again, at most ``retries`` times after the run was finished.
    ``ranks`` are the processes that share the run, ``cluster`` is the Ray cluster that judges.
    """

    run: RunFolder
    benchmark: Benchmark
    settings: Settings
    note: Note
    ranks: Ranks | None = None
    cluster: RayCluster | None = None
    retries: int = RETRIES

    def judge(self, spec: Any, index: int, spent: float, tries: bool) -> float:
        """Load one judge, judge what it has not judged yet, and record it.

        ``tries`` sends three prompts first. Returns the US dollars that the run has spent, of which
        ``spent`` were before this judge.
        """
        from local_judges.protocol import Budgeted

        run, note, all_prompts = self.run, self.note, self.benchmark
        benchmark = answerable(spec, all_prompts)
        if n_left_out := all_prompts.prompts.num_rows - benchmark.prompts.num_rows:
            note(f"{n_left_out} prompts are left out: {name_of(spec)} takes no reasoning effort")
        if self.cluster is not None and index == 0:
            # By this file an actor sees that it shares the folder.
            run.write_data(all_prompts.pairs, all_prompts.prompts)
        judge = self._load(spec)
        try:
            facts: dict[str, Any] = {"describe": dict(judge.describe())}
            if price := getattr(judge, "price", None):
                facts["price"] = {"input": price[0], "output": price[1]}
            entry = run.enter(judge.name, **facts)
            scorings = self._scorings(judge, getattr(spec, "improved", None))
            if "options" in scorings and (source := facts["describe"].get("options")):
                note(f"{judge.name} reads option probabilities from {source}")
            if (improved := getattr(spec, "improved", None)) is not None:
                self._note_recipe(judge.name, improved, benchmark)
            earlier = 0.0
            if isinstance(judge, Budgeted):
                earlier, judge.spent = judge.spent, judge.spent + spent
            known: Mapping[str, Answer] = {}
            # A part, or the journal of one that is open.
            has_begun = any((run.folder / PARTS).glob(f"*part-{index:02d}-*"))
            if tries and not has_begun and self.cluster is None and self.ranks is None:
                known = first_answers(judge, benchmark, scorings, run.folder)
            if self.cluster is None and index == 0:
                run.write_data(all_prompts.pairs, all_prompts.prompts)
            outcome = self._ask(judge, index, benchmark, scorings, known)
            if isinstance(judge, Budgeted):
                spent = judge.spent - earlier
        finally:
            judge.close()
        self._record_served(judge, entry)
        run.leave(
            outcome.seconds,
            outcome.counts,
            outcome.failed,
            rows=outcome.rows,
            retried=outcome.retried > 0,
        )
        return spent

    def _load(self, spec: Any) -> Any:
        if self.cluster is None:
            return spec.load() if hasattr(spec, "load") else spec
        from local_judges.ray_runner import RayJudge

        return RayJudge(self.cluster, spec, self.run.folder, note=self.note)

    def _scorings(self, judge: Any, improved: Any) -> tuple[str, ...]:
        """The scorings to ask for: those of the settings, as far as the judge offers them."""
        scorings = self.settings.scorings
        if self.settings.strict:
            return scorings
        if improved is not None:
            return (improved.scoring,)
        offered = tuple(scoring for scoring in scorings if scoring in judge.scorings)
        # A judge that writes no text is asked for what it offers.
        offered = offered or tuple(s for s in SCORINGS if s in judge.scorings)
        if offered != scorings:
            self.note(f"{judge.name} offers only {' and '.join(offered)} scoring")
        return offered

    def _note_recipe(self, name: str, improved: Any, benchmark: Benchmark) -> None:
        """Say how the judge of a file asks the wordings of the run."""
        from local_judges.messages import Messages

        recipe = improved.recipe
        if Messages(improved).asks_own and len(benchmark.pairs):
            n = len(recipe.wordings)
            self.note(
                f"{name} always asks its own {f'{n} wordings' if n > 1 else 'wording'}, "
                "whatever the run's wording, so it is steady by construction"
            )
        elif recipe.name != AS_ASKED:
            self.note(
                f"{name} applies its way of asking ({recipe.name}) to each wording of the run"
            )

    def _ask(
        self,
        judge: Any,
        index: int,
        benchmark: Benchmark,
        scorings: tuple[str, ...],
        known: Mapping[str, Answer],
    ) -> Any:
        from local_judges.runner import run_judge

        plan: dict[str, Any] = {
            "judge_index": index,
            "repeats": self.settings.repeats,
            "seed": self.settings.seed,
            "begin": self.run.begin,
        }
        if self.cluster is not None:
            return judge.run(benchmark, scorings, **plan)
        return run_judge(
            judge,
            benchmark,
            self.run.folder,
            scorings,
            ranks=self.ranks,
            note=self.note,
            known=known,
            retries=self.run.retries_of(judge.name) < self.retries,
            **plan,
        )

    def _record_served(self, judge: Any, entry: dict[str, Any]) -> None:
        """Record which models an endpoint answered with."""
        served = getattr(getattr(judge, "endpoint", None), "served", None)
        if not served:
            return
        entry["served"] = {
            name: entry.get("served", {}).get(name, 0) + n for name, n in served.items()
        }
        if len(served) > 1:
            self.note(f"{judge.name} was answered by several models: {', '.join(served)}")

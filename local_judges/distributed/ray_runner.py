"""A run on a Ray cluster: actors that each load the judge once and judge part after part.

The parts are planned as for any run, by one actor of the pool's kind, so that what the device
decides (dtype, batch size) is decided where the judging happens. Then they go as a Ray dataset
through a pool of actors, which write the log themselves; only counts come back. An actor that is
lost is started again, its parts are given to another, and parts that are there already are kept.
"""

from __future__ import annotations

import json
import logging
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.storage import PartFolder
from judgesense.version import __version__
from local_judges.distributed.ray_cluster import RayCluster
from local_judges.plan import Part, Requests, plan_parts
from local_judges.progress import Progress
from local_judges.protocol import Judge
from local_judges.registry import JudgeSpec
from local_judges.runner import (
    Interrupted,
    Outcome,
    ask_parts,
    decision_log,
    leave_planned,
    together,
)

PARTS_A_CALL = 16
"""The most parts that an actor is given at once: engines like to see far ahead."""
CALLS_AN_ACTOR = 4
"""At least so many calls for each actor, where there are parts enough: the load is spread."""
_LIMITS = ("max_cost", "requests_per_minute", "tokens_per_minute")
LOSSES_A_CALL = 5
"""How often the actors that a call was given to may be lost before the run is given up."""


class RayJudge:
    """A judge that lives on a cluster; what is known of it here was told by an actor there.

    ``source`` is how an actor gets it. ``beside`` is a file of the run, beside its parts, by which
    an actor sees that its machine shares the run's place. ``note`` hears what a person should
    know. Raises JudgeSenseError for what stops an actor from loading the judge.
    """

    def __init__(
        self,
        cluster: RayCluster,
        source: JudgeSpec | Judge,
        parts: PartFolder,
        *,
        beside: str,
        note: Callable[[str], None],
    ) -> None:
        given = source.options if isinstance(source, JudgeSpec) else {}
        if limit := next((name for name in _LIMITS if given.get(name) is not None), None):
            raise JudgeSenseError(
                f"--{limit.replace('_', '-')} cannot be held by actors that do not know of each "
                "other; set a limit at the provider"
            )
        import ray

        cluster.require_room(note)
        self._cluster, self._note = cluster, note
        self._home = _Home(source, parts, beside)
        lasting = {"max_restarts": LOSSES_A_CALL, "max_task_retries": LOSSES_A_CALL}
        planner = ray.remote(_Planner).options(**cluster.resources(), **lasting)
        self._planner = planner.remote(self._home)
        told = _heard(self._planner.meet.remote())
        self.name: str = told["name"]
        self.scorings = frozenset(told["scorings"])
        self._describe: dict[str, Any] = told["describe"]

    def describe(self) -> dict[str, Any]:
        """What the actor's judge says of itself, and what the actors are."""
        import ray

        least, most = self._cluster.pool()
        pool = {**self._cluster.resources(), "actors": [least, most], "ray": ray.__version__}
        return {**self._describe, "cluster": pool}

    def run(
        self,
        benchmark: Benchmark,
        scorings: Sequence[str],
        *,
        judge_index: int,
        repeats: int,
        seed: int,
        begin: Callable[[], None],
    ) -> Outcome:
        """Judge what is not judged yet; the actors write the log.

        ``begin`` is called once the plan stands, before anything is asked. Raises Interrupted
        after Ctrl-C, which leaves what was written; JudgeSenseError for what an actor meets.
        """
        import ray

        if unknown := set(scorings) - self.scorings:
            raise JudgeSenseError(
                f"judge {self.name} does not offer {', '.join(sorted(unknown))} scoring; "
                f"it offers {', '.join(sorted(self.scorings))}"
            )
        prompts = ray.put(benchmark.prompts)
        planned = self._planner.plan.remote(prompts, tuple(scorings), judge_index, repeats, seed)
        parts: list[str] = _heard(planned)
        # Its GPU is needed for the pool.
        self.close()
        begin()
        names = [json.loads(part)["name"] for part in parts]
        leave_planned(self._home.parts, names, judge_index, self._note)
        outcomes = [Outcome(self.name)]
        total = len(Requests(benchmark.prompts)) * repeats
        started = time.perf_counter()
        try:
            with Progress(self.name, total) as progress:
                for told in self._answered(parts, prompts, tuple(scorings)):
                    for line in told["notes"]:
                        self._note(line)
                    outcomes.append(Outcome(**told["outcome"]))
                    progress.advance(outcomes[-1].planned)
        except KeyboardInterrupt:
            done = together(outcomes).planned
            raise Interrupted(
                f"stopped at {done} of {total} prompts; give the same command again to go on from "
                "there"
            ) from None
        whole = together(outcomes)
        whole.seconds = time.perf_counter() - started
        return whole

    def _answered(
        self, parts: Sequence[str], prompts: Any, scorings: tuple[str, ...]
    ) -> Iterator[dict[str, Any]]:
        import ray

        least, most = self._cluster.pool()
        a_call = max(1, min(PARTS_A_CALL, len(parts) // (CALLS_AN_ACTOR * most)))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        # Its errors reach us as exceptions.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        calls = ray.data.from_items(
            [{"part": part} for part in parts], override_num_blocks=-(-len(parts) // a_call)
        )
        with warnings.catch_warnings():
            # Ray below 2.64 takes the two limits so, and has no other way yet.
            warnings.filterwarnings("ignore", "`ray_remote_args`")
            answered = calls.map_batches(
                _PartJudge,
                fn_constructor_args=(self._home, self.name, prompts, scorings),
                batch_size=None,
                batch_format="numpy",
                compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
                max_restarts=-1,
                max_task_retries=LOSSES_A_CALL,
                **self._cluster.resources(),
            )
        try:
            for row in answered.iter_rows():
                told = json.loads(row["told"])
                if "error" in told:
                    raise JudgeSenseError(told["error"])
                yield told
        except ray.exceptions.RayActorError as error:
            raise JudgeSenseError(
                f"actors of the Ray cluster were lost {LOSSES_A_CALL + 1} times over the same "
                f"prompts ({' '.join(str(error).split())}); what was judged is kept. A model that "
                "outgrows its machine's memory looks like this"
            ) from error

    def close(self) -> None:
        """End the planning actor, if it still lives."""
        import ray

        if self._planner is not None:
            ray.kill(self._planner)
            self._planner = None


def _heard(reference: Any) -> Any:
    """What the planning actor tells. Raises JudgeSenseError for its errors, and for its loss."""
    import ray

    try:
        told = ray.get(reference)
    except ray.exceptions.RayError as error:
        if isinstance(error, ray.exceptions.RayTaskError):
            raise
        raise JudgeSenseError(
            f"no actor of the Ray cluster could load the judge: {' '.join(str(error).split())}"
        ) from error
    if "error" in told:
        raise JudgeSenseError(told["error"])
    return told["told"]


@dataclass(frozen=True)
class _Home:
    """What an actor needs to begin: how to get the judge, where the log lies, whose run it is."""

    source: JudgeSpec | Judge
    parts: PartFolder
    beside: str
    version: str = __version__

    def load(self) -> Judge:
        """The judge. Raises JudgeSenseError if this machine is not fit for the run."""
        if self.version != __version__:
            raise JudgeSenseError(
                f"judgesense is {__version__} here and {self.version} where the run was started"
            )
        self.parts.require_usable(self.beside)
        return self.source.load() if isinstance(self.source, JudgeSpec) else self.source


def _on_this_machine(error: JudgeSenseError) -> dict[str, str]:
    return {"error": f"{error} (on the machine {socket.gethostname()})"}


class _Planner:
    """The actor that says what the judge is and plans the parts."""

    def __init__(self, home: _Home) -> None:
        self._home = home
        self._judge: Judge | None = None

    def meet(self) -> dict[str, Any]:
        """The judge's name, scorings and description."""
        try:
            judge = self._loaded()
        except JudgeSenseError as error:
            return _on_this_machine(error)
        described = {"name": judge.name, "scorings": sorted(judge.scorings)}
        return {"told": {**described, "describe": dict(judge.describe())}}

    def plan(
        self, prompts: pa.Table, scorings: tuple[str, ...], index: int, repeats: int, seed: int
    ) -> dict[str, Any]:
        """The parts, each as JSON."""
        try:
            judge, requests = self._loaded(), Requests(prompts)
            parts = plan_parts(
                judge, requests, frozenset(scorings), judge_index=index, repeats=repeats, seed=seed
            )
        except JudgeSenseError as error:
            return _on_this_machine(error)
        return {"told": [_as_json(part) for part in parts]}

    def _loaded(self) -> Judge:
        # Not in __init__: a restarted actor has only what it does now.
        self._judge = self._judge or self._home.load()
        return self._judge


class _PartJudge:
    """The actors of the pool: each judges the parts that it is given, and writes them."""

    def __init__(self, home: _Home, name: str, prompts: Any, scorings: tuple[str, ...]) -> None:
        import ray

        self._home, self._name, self._scorings = home, name, scorings
        self._prompts: pa.Table = ray.get(prompts)
        self._requests = Requests(self._prompts)
        self._judge: Judge | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """One row for each call: the outcome and notes, or what stops the run."""
        try:
            told = self._answer([_of_json(text) for text in batch["part"]])
        except JudgeSenseError as error:
            told = _on_this_machine(error)
        return {"told": [json.dumps(told)]}

    def _answer(self, parts: Sequence[Part]) -> dict[str, Any]:
        self._judge = judge = self._judge or self._home.load()
        if judge.name != self._name:
            raise JudgeSenseError(
                f"the judge is {judge.name} here and {self._name} where the run was planned: the "
                "machines must have the same weights and the same kind of device"
            )
        log = decision_log(
            self._home.parts, judge.name, self._requests, self._prompts, self._scorings
        )
        notes: list[str] = []
        asked = frozenset(self._scorings)
        outcome = ask_parts(judge, self._requests, parts, asked, log, notes.append)
        counted = {**vars(outcome), "counters": dict(outcome.counters)}
        return {"outcome": counted, "notes": notes}


def _as_json(part: Part) -> str:
    batches = [[int(index) for index in batch] for batch in part.batches]
    return json.dumps({"name": part.name, "repeat": part.repeat, "batches": batches})


def _of_json(text: str) -> Part:
    read = json.loads(text)
    return Part(read["name"], read["repeat"], tuple(read["batches"]))

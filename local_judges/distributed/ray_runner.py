"""A run on a Ray cluster: each actor loads the judge once and judges one part after another.

An actor with the resources of the pool plans the parts as for any run, so that the settings that
depend on the device (dtype, batch size) fit the machines that judge. The parts then pass as a Ray
dataset through the pool; the actors write the log and return only counts. Ray restarts a lost
actor and gives its parts to another one; finished parts are kept.
"""

from __future__ import annotations

import json
import logging
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.storage import PartFolder
from judgesense.tasks import Aliases
from judgesense.version import __version__
from local_judges.distributed.ray_cluster import RayCluster
from local_judges.plan import Part, Requests, plan_parts
from local_judges.progress import Progress
from local_judges.protocol import Judge
from local_judges.registry import JudgeSpec
from local_judges.rows import decision_log
from local_judges.runner import (
    Interrupted,
    JudgeOutcome,
    ask_parts,
    leave_planned,
    require_scorings,
    together,
)

PARTS_A_CALL = 16
"""The maximum number of parts in one call: engines work best when they can read ahead."""
CALLS_AN_ACTOR = 4
"""The minimum number of calls per actor, if there are enough parts: this spreads the load."""
_LIMITS = ("max_cost", "requests_per_minute", "tokens_per_minute")
LOSSES_A_CALL = 5
"""How many actors may be lost over the same call before the run fails."""


class RayJudge:
    """A judge on a cluster; an actor there reports its name, scorings and description.

    Args:
        cluster: the cluster and the resources of an actor.
        source: the judge that each actor loads.
        parts: the parts of the run's log.
        beside: a file of the run next to its parts; an actor that does not see it is on a machine
            that does not share the folder.
        note: receives messages for the user.

    Raises:
        JudgeSenseError: if an actor cannot load the judge.
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
                f"{limit} cannot be shared by the actors of a cluster; set a limit at the provider"
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
        """The description by the actor's judge, with the resources of the actors."""
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
    ) -> JudgeOutcome:
        """Judge the prompts that are not judged yet; the actors write the log.

        ``begin`` is called once the parts are planned, before the first prompt is asked. Raises
        Interrupted after Ctrl-C, which keeps the finished parts, and JudgeSenseError for errors
        of an actor.
        """
        import ray

        require_scorings(self.name, self.scorings, scorings)
        prompts = ray.put(benchmark.prompts)
        planned = self._planner.plan.remote(prompts, tuple(scorings), judge_index, repeats, seed)
        parts: list[Part] = _heard(planned)
        # The pool needs the planner's GPU.
        self.close()
        begin()
        leave_planned(self._home.parts, [part.name for part in parts], judge_index, self._note)
        outcomes = [JudgeOutcome(self.name)]
        total = len(Requests(benchmark.prompts)) * repeats
        started = time.perf_counter()
        try:
            with Progress(self.name, total) as progress:
                aliases = {key: dict(each) for key, each in benchmark.aliases.items()}
                for told in self._answered(parts, prompts, tuple(scorings), aliases):
                    for line in told["notes"]:
                        self._note(line)
                    outcomes.append(JudgeOutcome(**told["outcome"]))
                    progress.advance(outcomes[-1].planned)
        except KeyboardInterrupt:
            raise Interrupted(together(outcomes).planned, total) from None
        whole = together(outcomes)
        whole.seconds = time.perf_counter() - started
        return whole

    def _answered(
        self,
        parts: Sequence[Part],
        prompts: Any,
        scorings: tuple[str, ...],
        aliases: Mapping[str, Aliases],
    ) -> Iterator[dict[str, Any]]:
        import ray

        least, most = self._cluster.pool()
        a_call = max(1, min(PARTS_A_CALL, len(parts) // (CALLS_AN_ACTOR * most)))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        # Its errors reach us as exceptions.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        calls = ray.data.range(len(parts), override_num_blocks=-(-len(parts) // a_call))
        with warnings.catch_warnings():
            # Before Ray 2.64 there is no other way to set these two limits.
            warnings.filterwarnings("ignore", "`ray_remote_args`")
            answered = calls.map_batches(
                _PartJudge,
                fn_constructor_args=(
                    self._home,
                    self.name,
                    prompts,
                    ray.put(parts),
                    scorings,
                    aliases,
                ),
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
                f"the Ray cluster lost {LOSSES_A_CALL + 1} actors over the same prompts "
                f"({' '.join(str(error).split())}); finished parts are kept. The model may need "
                "more memory than the machine has"
            ) from error

    def close(self) -> None:
        """Stop the planning actor, if it is still running."""
        import ray

        if self._planner is not None:
            ray.kill(self._planner)
            self._planner = None


def _heard(reference: Any) -> Any:
    """The reply of the planning actor. Raises JudgeSenseError for its errors and if it is lost."""
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
    """Everything that an actor needs to load the judge and write the log."""

    source: JudgeSpec | Judge
    parts: PartFolder
    beside: str
    version: str = __version__

    def load(self) -> Judge:
        """The judge. Raises JudgeSenseError if this machine cannot take part in the run."""
        if self.version != __version__:
            raise JudgeSenseError(
                f"this machine has judgesense {__version__}, but the run was started with "
                f"{self.version}"
            )
        self.parts.require_usable(self.beside)
        return self.source.load() if isinstance(self.source, JudgeSpec) else self.source


def _on_this_machine(error: JudgeSenseError) -> dict[str, str]:
    return {"error": f"{error} (on the machine {socket.gethostname()})"}


class _Planner:
    """The actor that describes the judge and plans the parts."""

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
        """The planned parts."""
        try:
            judge, requests = self._loaded(), Requests(prompts)
            parts = plan_parts(
                judge, requests, frozenset(scorings), judge_index=index, repeats=repeats, seed=seed
            )
        except JudgeSenseError as error:
            return _on_this_machine(error)
        return {"told": parts}

    def _loaded(self) -> Judge:
        # Not in __init__, because a restarted actor calls only the method in progress.
        self._judge = self._judge or self._home.load()
        return self._judge


class _PartJudge:
    """An actor of the pool: judges parts and writes them."""

    def __init__(
        self,
        home: _Home,
        name: str,
        prompts: Any,
        parts: Any,
        scorings: tuple[str, ...],
        aliases: Mapping[str, Aliases],
    ) -> None:
        import ray

        self._parts: Sequence[Part] = ray.get(parts)
        self._home, self._name, self._scorings, self._aliases = home, name, scorings, aliases
        self._prompts: pa.Table = ray.get(prompts)
        self._requests = Requests(self._prompts)
        self._judge: Judge | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """One row per call: the outcome and the notes, or the error that stops the run."""
        try:
            told = self._answer([self._parts[number] for number in batch["id"]])
        except JudgeSenseError as error:
            told = _on_this_machine(error)
        return {"told": [json.dumps(told)]}

    def _answer(self, parts: Sequence[Part]) -> dict[str, Any]:
        self._judge = judge = self._judge or self._home.load()
        if judge.name != self._name:
            raise JudgeSenseError(
                f"the judge is {judge.name} on this machine, but {self._name} where the run was "
                "planned; use machines with the same weights and the same kind of device"
            )
        log = decision_log(
            self._home.parts,
            judge.name,
            self._requests,
            self._prompts,
            self._scorings,
            self._aliases,
        )
        notes: list[str] = []
        asked = frozenset(self._scorings)
        outcome = ask_parts(judge, self._requests, parts, asked, log, notes.append)
        counted = {**vars(outcome), "counters": dict(outcome.counters)}
        return {"outcome": counted, "notes": notes}

"""The judges that a run is asked for: names resolved, functions wrapped, options checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.errors import JudgeSenseError
from judgesense.pipeline.requirements import name_of
from judgesense.pipeline.settings import Settings
from judgesense.text import did_you_mean

if TYPE_CHECKING:
    from local_judges.ray_runner import RayCluster


def folder_for(runs: Path, name: str, judges: Sequence[Any], *facts: Any) -> Path:
    """The folder in ``runs`` for the results of these ``judges`` and ``facts`` (JSON values)."""
    sources = [source for judge in judges if (source := getattr(judge, "function_source", None))]
    identity = [*facts, [identity_of(judge) for judge in judges], *sources]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()
    return runs / f"{name}-{digest[:8]}"


def prepare(
    judge: Any, settings: Settings, options: Mapping[str, Any], *, own: bool = False
) -> tuple[list[Any], RayCluster | None]:
    """The judges of :func:`run` as :func:`execute` takes them, and the Ray cluster to run on.

    ``options`` are the ``judge_options``; ``own`` is as in `resolve_all`. Raises JudgeSenseError
    for an unknown judge or option.
    """
    cluster: RayCluster | None = None
    options = dict(options)
    if options.get("engine") == "ray" or any(k.startswith(("ray_", "actor_")) for k in options):
        from local_judges.ray_runner import cluster_of

        cluster, options = cluster_of(options)
    if "seed" in options:
        raise JudgeSenseError(f"--set seed={options['seed']}: use --seed instead")
    if options.get("temperature") is not None:
        options["seed"] = settings.seed
    scoring = settings.scorings[0] if len(settings.scorings) == 1 else None
    judges = judge if isinstance(judge, (list, tuple)) else [judge]
    return resolve_all(judges, scoring, options, own=own), cluster


def resolve_all(
    judges: Sequence[Any], scoring: str | None, options: Mapping[str, Any], *, own: bool = False
) -> list[Any]:
    """The judges as :func:`execute` takes them: names resolved, functions wrapped, none loaded.

    ``own`` prompts are the user's, not a benchmark's: a named judge gets them as they are.

    Raises JudgeSenseError without a judge, and for an unknown judge or option.
    """
    from local_judges.callable_judge import CallableJudge
    from local_judges.protocol import Judge

    if not judges:
        raise JudgeSenseError("no judge; name at least one")
    resolved: list[Any] = []
    for entry in judges:
        # What `load_judge` returns takes items; a run asks the judge of prompts behind it.
        judge = getattr(entry, "prompt_judge", entry)
        if isinstance(judge, (str, Path)):
            from local_judges.registry import resolve_each

            specs = resolve_each(str(judge), **options)
            resolved += [spec.for_own_prompts() for spec in specs] if own else specs
        elif options and (judge is not entry or isinstance(judge, Judge)):
            raise JudgeSenseError(f"{min(options)}: set this option when you load the judge")
        elif callable(judge) and not isinstance(judge, Judge):
            if others := options.keys() - {"name", "batch_size"}:
                raise JudgeSenseError(f"{min(others)} is for named judges, not for a function")
            resolved.append(CallableJudge(judge, scoring=scoring or "generate", **options))
        else:
            resolved.append(judge)
    return resolved


def require_known(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise JudgeSenseError for a keyword that is no argument of a function and no judge's option.

    >>> from judgesense.pipeline import run
    >>> require_known(run, {"repeat": 3})
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: run has no argument 'repeat'; did you mean 'repeats'?
    """
    if not options:
        return
    from local_judges.options import ENGINES, RayOptions

    known = {"engine", "model", "name", "batch_size", "actor_engine", "allow_host"}
    known |= {*RayOptions.model_fields}
    known |= {name for kind in ENGINES.values() for name in kind.model_fields}
    if unknown := [name for name in options if name not in known]:
        names = [*signature(function).parameters, *known]
        hint = did_you_mean(unknown[0], names)
        raise JudgeSenseError(f"{function.__name__} has no argument {unknown[0]!r}{hint}")


def identity_of(judge: Any) -> dict[str, Any]:
    """A judge as a run's record has it: a resolved name's settings, or a loaded judge's name."""
    if hasattr(judge, "identity"):
        identity: dict[str, Any] = judge.identity()
        return identity
    return {"judge": name_of(judge)}

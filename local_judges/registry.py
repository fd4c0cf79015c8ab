"""From what a user typed to a judge: a name, a Hub id, a folder, a file, a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from local_judges.api.call import KEY_VARIABLE, require_loggable
from local_judges.callable_judge import CallableJudge
from local_judges.judge_files import OPTIONS, VARIABLE, JudgeEntry, entries, require_values
from local_judges.protocol import Judge

ENGINES = tuple(OPTIONS)

_NO_PART_OF_THE_ANSWERS = frozenset(
    {
        "concurrency", "distributed_executor_backend", "gpu_memory_utilization", "key_variable",
        "max_cost", "max_num_seqs", "pipeline_parallel_size", "price", "requests_per_minute",
        "retry", "tensor_parallel_size", "timeout_s", "tokens_per_minute",
    }
)  # fmt: skip


@dataclass(frozen=True)
class JudgeSpec:
    """A judge as asked for: nothing is loaded or looked up yet."""

    name: str
    engine: str
    model: str | Path
    options: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """What was asked for, as JSON values: a run taken up again must ask for the same.

        Prices, limits, concurrency and GPUs may differ: they fix no answer.
        """
        options = {
            key: value
            for key, value in sorted(self.options.items())
            if value is not None and key not in _NO_PART_OF_THE_ANSWERS
        }
        asked = {"judge": self.name, "engine": self.engine, "model": str(self.model), **options}
        normalised: dict[str, Any] = json.loads(json.dumps(asked))
        return normalised

    def load(self) -> Judge:
        """Load the judge."""
        if self.engine == "transformers":
            from local_judges.local.transformers_judge import TransformersJudge

            return TransformersJudge(self.model, name=self.name, **self.options)
        if self.engine == "vllm":
            from local_judges.local.vllm_judge import VllmJudge

            return VllmJudge(self.model, name=self.name, **self.options)
        from local_judges.api.judge import ApiJudge

        return ApiJudge(str(self.model), name=self.name, **self.options)


def entry(name: str) -> JudgeEntry:
    """The judge of that name. Raises JudgeSenseError that lists the names, close ones first."""
    named = entries()
    if name not in named:
        raise JudgeSenseError(f"no judge is named {name!r}; {_names(name)}")
    return named[name]


def resolve(judge: str, *, engine: str | None = None, **options: Any) -> JudgeSpec:
    """The judge that a name, a Hub id, a folder or a GGUF file stands for.

    A named judge comes first, then a path that exists, then ``org/name`` as a Hub id. ``model``
    among the options is the endpoint's name of the model. Raises JudgeSenseError for anything
    else (it lists the names, close ones first), for an option that the engine does not have or
    whose value is of the wrong kind, and for a named judge of which no model id is known, if none
    is given.
    """
    if engine is not None and engine not in ENGINES:
        raise JudgeSenseError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    given = {key: value for key, value in options.items() if value is not None}
    model = given.pop("model", None)
    named = entries().get(judge)
    if named is not None:
        spec = _of_entry(named, engine, model, given)
    elif engine == "api":
        spec = JudgeSpec(judge, "api", model or judge, given)
    else:
        spec = _of_path_or_id(judge, engine or "transformers", given)
        if model is not None:
            raise JudgeSenseError(
                f"--model {model} is for endpoints (--engine api); --judge {judge} is a model"
            )
    if unknown := sorted(set(spec.options) - OPTIONS[spec.engine]):
        known = ", ".join(sorted(OPTIONS[spec.engine]))
        raise JudgeSenseError(
            f"judge {judge}: {_flag(unknown[0])} is no option of the engine {spec.engine}, which "
            f"has {known}"
        )
    require_values(spec.options, f"judge {judge}: ")
    if spec.engine == "api" and (url := spec.options.get("base_url")):
        # Before a record is written: it names the URL.
        require_loggable(str(url), str(spec.options.get("key_variable", KEY_VARIABLE)))
    return spec


def resolve_each(
    judge: str, *, max_tokens: int | Sequence[int] | None = None, **options: Any
) -> list[JudgeSpec]:
    """The judge once for each token cap; of several caps, each is in its name (``gpt-4o-max20``).

    Raises JudgeSenseError as :func:`resolve` does, and for a cap given twice.
    """
    if not isinstance(max_tokens, Sequence):
        return [resolve(judge, max_tokens=max_tokens, **options)]
    if not max_tokens or len(set(max_tokens)) < len(max_tokens):
        raise JudgeSenseError(f"give different token caps, got {list(max_tokens)}")
    specs = [resolve(judge, max_tokens=cap, **options) for cap in max_tokens]
    if len(specs) == 1:
        return specs
    caps = zip(specs, max_tokens, strict=True)
    return [replace(spec, name=f"{spec.name}-max{cap}") for spec, cap in caps]


def seeded(judge: Any, seed: int) -> Any:
    """A resolved judge that draws (a temperature above 0, wherever it stands), drawing by this
    seed; any other as it is, and with the seed 0, which judges have anyway, its own seed."""
    if isinstance(judge, JudgeSpec) and seed and judge.options.get("temperature"):
        return replace(judge, options={**judge.options, "seed": seed})
    return judge


def _of_entry(
    named: JudgeEntry, engine: str | None, model: str | None, given: Mapping[str, Any]
) -> JudgeSpec:
    engine = engine or named.engine
    if engine != named.engine and named.engine == "api":
        raise JudgeSenseError(
            f"judge {named.name} is asked at an endpoint; for --engine {engine} give a Hub id or a "
            "folder as --judge"
        )
    # What another engine does not have (a device) is about this machine, not about the judge.
    own = {key: value for key, value in named.options.items() if key in OPTIONS[engine]}
    options: dict[str, Any] = {**own, **given}
    if isinstance(own.get("style"), Mapping) and isinstance(given.get("style"), Mapping):
        options["style"] = {**own["style"], **given["style"]}
    if model is not None and engine != "api":
        raise JudgeSenseError(
            f"--model {model} is for endpoints; judge {named.name} runs {named.model}"
        )
    chosen = model or named.model
    absent = [] if chosen else ["--model ID"]
    if engine == "api" and not (options.get("base_url") or options.get("provider")):
        absent.append("--base-url URL")
    if "base_url" in given:
        options.pop("provider", None)
    if absent:
        raise JudgeSenseError(
            f"judge {named.name} needs {' and '.join(absent)}, which no source states "
            f"(judgesense judges show {named.name})"
        )
    if model is not None and model != named.model:
        options.pop("floating", None)
        if "price" not in given:
            options.pop("price", None)
    return JudgeSpec(named.name, engine, str(chosen), options)


def _of_path_or_id(judge: str, engine: str, given: Mapping[str, Any]) -> JudgeSpec:
    path = Path(judge).expanduser()
    if path.exists():
        if path.is_file() and path.suffix != ".gguf":
            raise JudgeSenseError(
                f"{path} is a file but not a GGUF model; a judge is a folder with a "
                "transformers model, a .gguf file, a Hub id or a name"
            )
        return JudgeSpec(path.stem if path.is_file() else path.name, engine, path.resolve(), given)
    if judge.count("/") == 1 and not judge.startswith((".", "/", "~")):
        return JudgeSpec(judge, engine, judge, given)
    raise JudgeSenseError(
        f"unknown judge {judge!r}: no such folder or file, not a Hub id (org/name), and no name; "
        f"{_names(judge)}"
    )


def _names(wanted: str) -> str:
    """The names that there are, those like ``wanted`` first."""
    known = list(entries())
    folded = wanted.casefold()
    close = [name for name in known if len(folded) > 2 and folded in name]
    close += [n for n in get_close_matches(folded, known, n=3, cutoff=0.6) if n not in close]
    others = ", ".join(name for name in known if name not in close)
    like = f"did you mean {' or '.join(close)}? Also named: " if close else "named are "
    return f"{like}{others} (yours can be added: {VARIABLE}=FILE)"


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def load_judge(
    judge: str | Path | Judge | Callable[[list[str]], Sequence[Any]], **options: Any
) -> Judge:
    """A judge ready to judge: from a name, Hub id, path, function, or one already loaded."""
    if isinstance(judge, Judge):
        return judge
    if callable(judge):
        return CallableJudge(judge, **options)
    return resolve(str(judge), **options).load()

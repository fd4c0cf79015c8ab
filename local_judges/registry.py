"""Find the judge that a user names: by name, Hub id, folder, file or function."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from local_judges.api.keys import is_here, require_loggable
from local_judges.callable_judge import CallableJudge
from local_judges.consent import require_consent
from local_judges.improved_judge import ImprovedJudge, read_improved
from local_judges.judge_files import VARIABLE, JudgeEntry, entries
from local_judges.options import (
    ENGINES,
    FOR_OWN_PROMPTS,
    KEY_VARIABLE,
    REMOTE,
    ApiOptions,
    fixes_answers,
    settings_of,
    suggestion,
    validate_settings,
)
from local_judges.protocol import Judge

_CLASSES = {
    "transformers": ("local.transformers_judge", "TransformersJudge"),
    "vllm": ("local.vllm_judge", "VllmJudge"),
    "api": ("api.judge", "ApiJudge"),
    "systemone": ("api.systemone", "SystemOneJudge"),
}
"""The module and class of each engine's judge."""


@dataclass(frozen=True)
class JudgeSpec:
    """A judge as requested: nothing is loaded or looked up yet."""

    name: str
    engine: str
    model: str | Path
    options: Mapping[str, Any]
    improved: ImprovedJudge | None = None
    """The file of an improved judge, which asks this one."""
    same_judge: bool = True
    """Whether the loaded judge must be the one that the file was made with."""
    others: tuple[JudgeSpec, ...] = ()
    """The further judges of a cascade or jury."""

    def identity(self) -> dict[str, Any]:
        """The judge as JSON values; a run can be resumed only if they are the same.

        Prices, limits, concurrency and GPUs may differ: they do not change an answer.
        """
        fields = ENGINES[self.engine].model_fields
        options = {
            key: value
            for key, value in sorted(self.options.items())
            if value is not None and fixes_answers(fields[key])
        }
        identity = {"judge": self.name, "engine": self.engine, "model": str(self.model), **options}
        if self.improved is not None:
            identity["stabilised"] = self.improved.digest
        normalised: dict[str, Any] = json.loads(json.dumps(identity))
        return normalised

    @property
    def takes_effort(self) -> bool:
        """Whether the endpoint takes a reasoning effort per request."""
        if self.engine != "api" or self.improved is not None:
            return False
        options = settings_of(ApiOptions, self.options)
        return options.style.reasoning_effort or options.reasoning_effort is not None

    def for_own_prompts(self) -> JudgeSpec:
        """The judge as it is asked in production: a prompt of the user's own is sent as it is.

        What the judge's options or an improved judge's file state stays as it is stated.
        """
        if self.improved is not None:
            return self
        fields = ENGINES[self.engine].model_fields
        defaults = {key: value for key, value in FOR_OWN_PROMPTS.items() if key in fields}
        return replace(self, options={**defaults, **self.options})

    def seeded(self, seed: int) -> JudgeSpec:
        """The same judge with this seed (0 by default), which fixes its samples at a temperature
        above 0."""
        if seed and self.options.get("temperature"):
            return replace(self, options={**self.options, "seed": seed})
        return self

    def load(self) -> Judge:
        """Load the judge.

        Raises JudgeSenseError if it is not the one that an improved judge's file was made with.
        """
        inner = self._load()
        if self.improved is None:
            return inner
        from local_judges.recipe_judge import RecipeJudge

        loaded = {_load_key(self): inner}
        try:
            for other in self.others:
                if _load_key(other) not in loaded:
                    loaded[_load_key(other)] = other._load()
            others = [loaded[_load_key(other)] for other in self.others]
            return RecipeJudge(self.improved, inner, *others, same_judge=self.same_judge)
        except JudgeSenseError:
            for judge in loaded.values():
                judge.close()
            raise

    def _load(self) -> Judge:
        module, name = _CLASSES[self.engine]
        kind = getattr(import_module(f"local_judges.{module}"), name)
        judge: Judge = kind(self.model, name=self.name, **self.options)
        return judge


def _load_key(spec: JudgeSpec) -> str:
    """The key of a judge that is loaded once, although two stages of a file may ask it."""
    return json.dumps([spec.engine, str(spec.model), spec.options], sort_keys=True, default=str)


def entry(name: str) -> JudgeEntry:
    """The judge of that name. Raises JudgeSenseError that names those that are like it."""
    judges = entries()
    if name not in judges:
        raise _unknown_judge(name)
    return judges[name]


def _unknown_judge(name: str, what: str = "") -> JudgeSenseError:
    return JudgeSenseError(
        f"unknown judge {name!r}{what}{suggestion(name, entries())}. To list the names: "
        f"judgesense judges list; to add your own: {VARIABLE}=FILE"
    )


def resolve(judge: str, /, *, engine: str | None = None, **options: Any) -> JudgeSpec:
    """The judge that a name, a Hub id, a folder or a GGUF file stands for.

    A named judge comes first, then an existing path, then ``org/name`` as a Hub id. A ``base_url``
    means the engine ``api``; ``model`` among the options is the endpoint's name of the model. A
    YAML file is an improved judge; if it has several, the options are for the first one.
    ``allow_host`` lets such a file ask that host (or those hosts).

    Raises JudgeSenseError for an unknown judge or option (names those that are like it), a value
    of the wrong type, and a named judge whose model id no source states, unless you give one.
    """
    if engine is not None and engine not in ENGINES:
        raise JudgeSenseError(f"unknown engine {engine!r}; the engines are {', '.join(ENGINES)}")
    values = {key: value for key, value in options.items() if value is not None}
    allowed_hosts = values.pop("allow_host", ())
    allowed_hosts = (allowed_hosts,) if isinstance(allowed_hosts, str) else tuple(allowed_hosts)
    if (path := Path(judge).expanduser()).suffix in (".yaml", ".yml") and not path.is_dir():
        improved = read_improved(path)
        first, *sources = improved.judges
        batch = values.pop("batch", False)
        spec = _file_spec(improved, first, engine, values, allowed_hosts)
        others = [_file_spec(improved, each, None, {}, allowed_hosts) for each in sources]
        spec, *others = _with_batches(judge, spec, *others) if batch else [spec, *others]
        return replace(spec, others=tuple(others))
    model = values.pop("model", None)
    if engine is None and values.get("base_url"):
        engine = "api"
    if (entry := entries().get(judge)) is not None:
        spec = _named_spec(entry, engine or entry.engine, model, values)
    elif engine in REMOTE:
        spec = JudgeSpec(judge, engine, model or judge, values)
    elif model is not None:
        raise JudgeSenseError(
            f"--set model={model} needs an endpoint (--engine api); {judge} is itself a model"
        )
    else:
        spec = _local_spec(judge, engine or "transformers", values)
    if spec.options.get("batch"):
        (spec,) = _with_batches(judge, spec)
    what = f"option of the engine {spec.engine}"
    validate_settings(ENGINES[spec.engine], spec.options, f"judge {judge}: ", what)
    if spec.engine in REMOTE and (url := spec.options.get("base_url")):
        # Before a record is written: it names the URL.
        require_loggable(str(url), str(spec.options.get("key_variable") or KEY_VARIABLE))
    return spec


def _with_batches(judge: str, *specs: JudgeSpec) -> list[JudgeSpec]:
    """The judges, of which those at an endpoint, at least one, are asked in batches."""
    if not any(spec.engine == "api" for spec in specs):
        raise JudgeSenseError(
            f"--batch: {judge} (engine {specs[0].engine}) has no batch API; leave --batch out"
        )
    return [
        replace(spec, options={**spec.options, "batch": True}) if spec.engine == "api" else spec
        for spec in specs
    ]


def resolve_each(
    judge: str, *, max_tokens: int | Sequence[int] | None = None, **options: Any
) -> list[JudgeSpec]:
    """One judge per token cap; with several caps, the name has the cap (``gpt-4o-max20``).

    Raises JudgeSenseError as :func:`resolve` does, and for a repeated cap.
    """
    if not isinstance(max_tokens, (list, tuple)):
        return [resolve(judge, max_tokens=max_tokens, **options)]
    if not max_tokens or len(set(max_tokens)) < len(max_tokens):
        raise JudgeSenseError(f"max_tokens: the caps must differ, got {list(max_tokens)}")
    specs = [resolve(judge, max_tokens=cap, **options) for cap in max_tokens]
    if len(specs) == 1:
        return specs
    caps = zip(specs, max_tokens, strict=True)
    return [replace(spec, name=f"{spec.name}-max{cap}") for spec, cap in caps]


def _named_spec(
    entry: JudgeEntry, engine: str, model: str | None, values: Mapping[str, Any]
) -> JudgeSpec:
    """A named judge with the options given on top of its own."""
    if engine != entry.engine and entry.engine in REMOTE:
        raise JudgeSenseError(
            f"judge {entry.name} is at an endpoint; with --engine {engine}, give a Hub id or a "
            "folder as --judge"
        )
    if model is not None and engine not in REMOTE:
        raise JudgeSenseError(
            f"--set model={model} needs an endpoint (--engine api); judge {entry.name} runs "
            f"{entry.model}"
        )
    # An option that another engine lacks (a device) is about this machine, not about the judge.
    fields = ENGINES[engine].model_fields
    defaults = {key: value for key, value in entry.options.items() if key in fields}
    options: dict[str, Any] = {**defaults, **values}
    if isinstance(defaults.get("style"), Mapping) and isinstance(values.get("style"), Mapping):
        options["style"] = {**defaults["style"], **values["style"]}
    model_id = model or entry.model
    missing = [] if model_id else ["--set model=ID"]
    if engine in REMOTE and not (options.get("base_url") or options.get("provider")):
        missing.append("--set base_url=URL")
    if missing:
        raise JudgeSenseError(
            f"judge {entry.name} needs {' and '.join(missing)}, which no source states "
            f"(judgesense judges show {entry.name})"
        )
    if "base_url" in values:
        options.pop("provider", None)
        if is_here(values["base_url"]) and "key_variable" not in values:
            # The key is the endpoint's, and this is another.
            options.pop("key_variable", None)
    if model is not None and model != entry.model:
        options.pop("floating", None)
        if "price" not in values:
            options.pop("price", None)
    return JudgeSpec(entry.name, engine, str(model_id), options)


def _local_spec(judge: str, engine: str, values: Mapping[str, Any]) -> JudgeSpec:
    """A model folder, a GGUF file or a Hub id."""
    path = Path(judge).expanduser()
    # Unlike pathlib, false for a name that is too long for the file system.
    if os.path.exists(path):
        if path.is_file() and path.suffix != ".gguf":
            raise JudgeSenseError(
                f"{path} is not a GGUF model; a judge is a name, a Hub id, a folder with a "
                "transformers model or a .gguf file"
            )
        return JudgeSpec(path.stem if path.is_file() else path.name, engine, path.resolve(), values)
    if judge.count("/") == 1 and not judge.startswith((".", "/", "~")):
        entry = entries().get(judge.partition("/")[2])
        if entry is not None and entry.engine in REMOTE:
            raise JudgeSenseError(
                f"unknown judge {judge!r}: an API serves this model; use --judge {entry.name}, or "
                "--set base_url=URL for another endpoint"
            )
        return JudgeSpec(judge, engine, judge, values)
    if "/" in judge:
        raise JudgeSenseError(f"unknown judge {judge!r}: no such folder or file")
    raise _unknown_judge(judge, ": not a name, a folder, a file or a Hub id (org/name)")


def _file_spec(
    improved: ImprovedJudge,
    source: Mapping[str, Any],
    engine: str | None,
    changes: Mapping[str, Any],
    allowed_hosts: Sequence[str],
) -> JudgeSpec:
    """A judge that a judge's file names, with the file's recipe.

    Another engine, model or option makes it another judge than the one that was measured. A host
    that the caller gives needs no consent; one that the file names does.
    """
    path = Path(improved.where)
    if "engine" not in source:
        raise JudgeSenseError(
            f"{path}: its judge {source['name']} is a Python function or comes from an imported "
            "log; pass the judge itself: judgesense.load_judge(FILE, judge=JUDGE)"
        )
    stated = {**source.get("options", {}), "model": source.get("model")}
    engine_name = str(engine or source["engine"])
    changed_keys = {key for key, value in changes.items() if value != stated.get(key)}
    if engine_name != source["engine"]:
        stated, changed_keys = {}, {*changed_keys, "engine"}
    values = {**stated, **changes}
    name = str(source.get("judge") or source["name"]).split("@")[0]
    if engine_name not in REMOTE:
        name = str(values.pop("model", None) or source.get("model") or name)
    try:
        spec = resolve(name, engine=engine_name, **values)
    except JudgeSenseError as error:
        raise JudgeSenseError(f"{path}, key judge: {error}") from error
    if "base_url" not in changes:
        require_consent(path, engine_name, spec.options, allowed_hosts)
    has_no_logprobs = engine_name == "api" and not spec.options.get("logprobs", True)
    if has_no_logprobs and improved.recipe.needs_probabilities:
        raise JudgeSenseError(
            f"{path} needs log-probabilities, and judge {spec.name} gives none (logprobs=false)"
        )
    fields = ENGINES[engine_name].model_fields
    is_same = not any(key not in fields or fixes_answers(fields[key]) for key in changed_keys)
    judge_name = str(source.get("judge") or spec.name)
    return replace(spec, name=judge_name, improved=improved, same_judge=is_same)


def load_writer(judge: Any, **options: Any) -> Judge:
    """A model that writes text: as `load_judge`, but for a judge's file the model without the
    file's recipe."""
    if not isinstance(judge, (str, Path)):
        return load_judge(judge, **options)
    return replace(resolve(str(judge), **options), improved=None, others=()).load()


def load_judge(
    judge: str | Path | Judge | Callable[[list[str]], Sequence[Any]], **options: Any
) -> Judge:
    """A judge ready to judge: from a name, Hub id, path, function, or one already loaded."""
    if isinstance(judge, Judge):
        return judge
    if callable(judge):
        return CallableJudge(judge, **options)
    return resolve(str(judge), **options).load()

"""Names of judges, and from what a user typed to a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from local_judges.callable_judge import CallableJudge
from local_judges.protocol import Judge

ENGINES = ("transformers", "api")


@dataclass(frozen=True)
class JudgeEntry:
    """A registered judge: how to get it, and what to know about it."""

    name: str
    engine: str
    model: str
    summary: str
    options: Mapping[str, Any]


@cache
def entries() -> dict[str, JudgeEntry]:
    """The registered judges by name, from ``data/judges.yaml``."""
    text = resources.files("local_judges").joinpath("data/judges.yaml").read_text("utf-8")
    return {
        name: JudgeEntry(
            name=name,
            engine=values["engine"],
            model=values["model"],
            summary=values["summary"],
            options=values.get("options", {}),
        )
        for name, values in yaml.safe_load(text)["judges"].items()
    }


@dataclass(frozen=True)
class JudgeSpec:
    """A judge as asked for: nothing is loaded or looked up yet."""

    name: str
    engine: str
    model: str | Path
    options: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """What was asked for, as JSON values: a run taken up again must ask for the same."""
        return {
            "judge": self.name,
            "engine": self.engine,
            "model": str(self.model),
            **{key: value for key, value in sorted(self.options.items()) if value is not None},
        }

    def load(self) -> Judge:
        """Load the judge."""
        if self.engine == "transformers":
            from local_judges.transformers_judge import TransformersJudge

            return TransformersJudge(self.model, name=self.name, **self.options)
        from local_judges.api_judge import ApiJudge

        return ApiJudge(str(self.model), name=self.name, **self.options)


def resolve(judge: str, *, engine: str | None = None, **options: Any) -> JudgeSpec:
    """The judge that a name, a Hub id, a folder or a GGUF file stands for.

    A registered name comes first, then a path that exists, then ``org/name`` as a Hub id. Raises
    JudgeSenseError that lists the registered names otherwise.
    """
    if engine is not None and engine not in ENGINES:
        raise JudgeSenseError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    given = {key: value for key, value in options.items() if value is not None}
    if engine == "api" and judge not in entries():
        return JudgeSpec(judge, "api", given.pop("model", judge), given)
    if judge in entries():
        entry = entries()[judge]
        return JudgeSpec(judge, engine or entry.engine, entry.model, {**entry.options, **given})
    path = Path(judge).expanduser()
    if path.exists():
        if path.is_file() and path.suffix != ".gguf":
            raise JudgeSenseError(
                f"{path} is a file but not a GGUF model; a judge is a folder with a "
                "transformers model, a .gguf file, a Hub id or a registered name"
            )
        return JudgeSpec(
            path.stem if path.is_file() else path.name,
            engine or "transformers",
            path.resolve(),
            given,
        )
    if judge.count("/") == 1 and not judge.startswith((".", "/", "~")):
        return JudgeSpec(judge, engine or "transformers", judge, given)
    raise JudgeSenseError(
        f"unknown judge {judge!r}: no such folder or file, not a Hub id (org/name), and the "
        f"registered judges are {', '.join(entries())}"
    )


def load_judge(
    judge: str | Path | Judge | Callable[[list[str]], Sequence[Any]], **options: Any
) -> Judge:
    """A judge ready to judge: from a name, Hub id, path, function, or one already loaded."""
    if isinstance(judge, Judge):
        return judge
    if callable(judge):
        return CallableJudge(judge, **options)
    return resolve(str(judge), **options).load()

"""Runs for the leaderboard: judges by rule on the embedded benchmark."""

from __future__ import annotations

import hashlib
from pathlib import Path

import judgesense
from judgesense.tasks import render
from judgesense_dataset.embedded import embedded_items, embedded_templates

JUDGES = {
    "steady-70b": (0.02, 0.05),
    "wavering-1.5b": (0.30, 0.10),
    "always-yes-360m": None,
}
"""Name -> share of prompts answered at random, and of items judged wrongly; None: one answer."""

_ORDERS = {True: ("AB", "BA"), False: ("-",)}


def _answers() -> dict[str, tuple[list[str], str, str]]:
    """Prompt -> its raw answers, the right one, and the item that it is about."""
    tasks = embedded_templates()
    found = {}
    for item in embedded_items():
        entry = tasks[item.task]
        for template in entry.templates:
            for order in _ORDERS[entry.task.comparative]:
                prompt = render(entry.task, template, item, order)
                means = {meant: raw for raw, meant in template.label_map.items()}
                found[prompt.text] = (sorted(means.values()), means[prompt.gold], item.item_id)
    return found


def _share(*parts: str) -> float:
    return int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:8], 16) / 16**8


def make_judge(name: str):
    """A judge that wavers and errs as `JUDGES` says, the same at every call."""
    answers, kind = _answers(), JUDGES[name]

    def judge(prompts: list[str]) -> list[str]:
        replies = []
        for text in prompts:
            options, right, item = answers[text]
            if kind is None:
                reply = options[-1] if "YES" in options else options[0]
            else:
                wavers, errs = kind
                wrong = options[(options.index(right) + 1) % len(options)]
                reply = wrong if _share(name, "item", item) < errs else right
                if _share(name, "prompt", text) < wavers:
                    reply = options[int(_share(name, "which", text) * len(options))]
            replies.append(reply)
        return replies

    return judge


def make_runs(folder: Path, names=tuple(JUDGES)) -> Path:
    """A folder of runs, one a judge."""
    for name in names:
        judgesense.run(make_judge(name), name=name, out=folder / name, note=lambda text: None)
    return folder

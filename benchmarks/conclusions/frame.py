"""What the sections share: a cell with its bounds, processes, and the table of the worst cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One simulated figure.

    ``claim`` names what is measured, ``place`` the design (items, pairs, ICC, ...), ``value`` the
    result. It should be ``at_least`` and ``at_most`` these; None for no bound. ``more`` are figures
    beside it (width, undefined).
    """

    claim: str
    place: Mapping[str, Any]
    value: float
    at_least: float | None = None
    at_most: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)

    @property
    def excess(self) -> float:
        """How far the value is outside its bounds; negative inside."""
        below = -1.0 if self.at_least is None else self.at_least - self.value
        above = -1.0 if self.at_most is None else self.value - self.at_most
        return float(max(below, above))

    def where(self) -> str:
        """The design in words."""
        return ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.place.items()
        )


def simulate(
    function: Callable[..., Iterable[Cell]], keys: Iterable[tuple[Any, ...]], jobs: int | None
) -> Iterator[Cell]:
    """The cells of ``function(*key)`` for every key, on several processes, in the keys' order.

    A function seeds its generator from its key, so the result does not depend on ``jobs``.
    """
    keys = list(keys)
    if jobs == 1:
        for key in keys:
            yield from function(*key)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(_listed, [function] * len(keys), keys):
            yield from found


def _listed(function: Callable[..., Iterable[Cell]], key: tuple[Any, ...]) -> list[Cell]:
    return list(function(*key))


def summary(cells: Iterable[Cell]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A line and a result for each claim: its worst, mean and highest cell."""
    claims: dict[str, list[Cell]] = {}
    for cell in cells:
        claims.setdefault(cell.claim, []).append(cell)
    width = max((len(claim) for claim in claims), default=0)
    print(f"{'claim':{width}s} cells  lowest    mean highest  bound          outside  worst at")
    for claim, own in claims.items():
        values = [cell.value for cell in own]
        worst = max(own, key=lambda cell: cell.excess)
        low, high = worst.at_least, worst.at_most
        bound = " ".join(
            ([f">= {low:g}"] if low is not None else [])
            + ([f"<= {high:g}"] if high is not None else [])
        )
        outside = sum(cell.excess > 1e-9 for cell in own)
        mean = sum(values) / len(values)
        line = (
            f"{claim:{width}s} {len(own):5d} {min(values):7.3f} {mean:7.3f} {max(values):7.3f}  "
            f"{bound:14s} {outside:7d}  {worst.where()} ({worst.value:.3f})"
        )
        yield (
            line,
            {
                "name": claim,
                "peer": f"bound {bound}",
                "ours": round(worst.value, 4),
                "theirs": low if high is None else high,
                "ratio": None,
                "unit": "share of runs",
                "lowest": round(min(values), 4),
                "mean": round(mean, 4),
                "highest": round(max(values), 4),
                "cells": len(own),
                "outside": outside,
                "worst_at": worst.where(),
            },
        )


def print_cells(cells: Iterable[Cell]) -> None:
    """Every cell on a line."""
    for cell in cells:
        more = "".join(f"  {name} {value:.3f}" for name, value in cell.more.items())
        mark = " !" if cell.excess > 1e-9 else "  "
        print(f"{mark} {cell.claim}  {cell.where()}: {cell.value:.3f}{more}")

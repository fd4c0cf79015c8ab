"""The findings and limits of prompt-ranking, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgesense.studies.prompt_ranking.grid import PromptScores
from judgesense.studies.prompt_ranking.measures import REDRAWS, Measured, series
from judgesense.text import join, number, percent, signed


def findings(cells: Sequence[Measured]) -> Iterator[str]:
    """How stable the rankings are, where pairs flip, and whether LCB chooses better."""
    for own in series(cells):
        small, large = own[0], own[-1]
        rho = [number(cell.stability.spearman_mean, 2) for cell in (small, large)]
        yield (
            f"for {small.name}, rank correlation between seeds is {rho[0]} at {small.size} items"
            + (f" and {rho[1]} at {large.size}" if large is not small else "")
            + f"; {small.stability.unique_top1} of {len(small.grid.prompts)} prompts win under "
            f"some of {small.stability.n_conditions} seeds at {small.size} items"
            + (f", {large.stability.unique_top1} at {large.size}" if large is not small else "")
        )
        near = small.flips.near_tied
        share = small.flips.share_of_flips(near)
        if share is not None:
            yield (
                f"for {small.name}, {percent(share)} of all flips at {small.size} items are among "
                f"the {percent(float(near.mean()))} of prompt pairs that all "
                f"{len(small.grid.items)} items do not tell apart"
            )
    clear = [_where(cell) for cell in cells if cell.gain.low > 0 or cell.gain.high < 0]
    ends = sorted(cells, key=lambda cell: cell.gain.gain)
    worst, best = (f"{signed(c.gain.gain, 4)} ({_where(c)})" for c in (ends[0], ends[-1]))
    yield (
        f"LCB (z = {cells[0].stability.z:g}) against the mean, in expectation over {REDRAWS} sets "
        f"of seeds: from {worst} to {best}; the middle 95% of the sets excludes 0 "
        + (f"for {join(clear)}" if clear else "nowhere")
    )


def _where(cell: Measured) -> str:
    return f"{cell.name}, {cell.size} items"


def limits(cells: Sequence[Measured], grids: Sequence[PromptScores]) -> Iterator[str]:
    """What the figures do not show."""
    largest = max(cells, key=lambda cell: cell.overlap)
    if largest.overlap > 0.1:
        yield (
            f"subsets come from {len(largest.grid.items)} items: two seeds' subsets of "
            f"{largest.size} share {percent(largest.overlap)} of their items, so they agree more "
            "than fresh samples would"
        )
    for grid in grids:
        where = f"for {grid.model} on {grid.name}"
        if grid.unread or grid.cut:
            yield (
                f"{where}, {percent(grid.unread)} of the answers could not be read and score 0; "
                f"the token cap cut off {percent(grid.cut)}"
            )
        if grid.left_out:
            yield (
                f"{where}, {grid.left_out} items had an error under some prompt and are left out "
                "for all prompts"
            )
    yield (
        "the intervals and expectations hold for these prompts; they do not cover other wordings "
        "of the same task"
    )

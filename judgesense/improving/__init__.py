"""``judgesense improve``: from a rubric and some labels to the best judge that a budget buys."""

"""No file of the packages imports itself through others, not even inside a function."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp

PACKAGES = ("judgesense", "judgesense_dataset", "local_judges", "hub_scripts")


def test_there_is_no_circle_of_imports_between_files() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 150
    TopologicalSorter(imports).prepare()  # A CycleError lists the files of the circle.

"""Show the examples of a docstring as examples; without a heading they would be Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?ms)^>>> .*?(?=\n\n(?!>>> )|\Z)")


class ExamplesSection(griffe.Extension):
    """Put the blocks that begin with ``>>>`` under a heading that the parser knows."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_under_heading, obj.docstring.value)


def _under_heading(found: re.Match[str]) -> str:
    lines = found.group().splitlines()
    return "\n".join(["Examples:", *(f"    {line}" if line else "" for line in lines)])

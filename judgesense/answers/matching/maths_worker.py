"""The process that runs math-verify: JSON lines in, JSON lines out.

Sympy can spend minutes in one call that no signal or thread interrupts (the power tower
9^{9^{9^9}}), so it runs in a process of its own, which the parent kills when an answer takes too
long.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress

MEMORY_LIMIT = 4 * 2**30
"""Bytes of address space; an answer that needs more cannot be compared."""


def main() -> None:
    """Answer ``{"said": latex, "wanted": [latex, ...]}`` lines until stdin closes."""
    with suppress(ImportError):  # Windows has no such limit; the time limit still applies.
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            # Without math-verify's own time limits: they need signals, and the parent has a limit.
            said = parse(request["said"], parsing_timeout=0)
            match = bool(said) and any(
                verify(parse(wanted, parsing_timeout=0), said, timeout_seconds=None)
                for wanted in request["wanted"]
            )
            answer = {"read": str(said[-1])[:200] if said else None, "match": match}
        except (MemoryError, OverflowError, RecursionError, ValueError) as error:
            problem = f"cannot be compared ({type(error).__name__})"
            answer = {"read": None, "match": False, "problem": problem}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

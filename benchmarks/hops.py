"""How much of the code one small run executes: four items, a function as judge.

    python benchmarks/hops.py

Counts the functions, as (file, name, line), and the files of this project that run between
`judgesense.run` and its report, module bodies included.
"""

from __future__ import annotations

import collections
import json
import sys
import tempfile
from pathlib import Path
from types import FrameType

from common import finish, machine

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = """
tasks:
  fact:
    labels: [YES, NO]
    layout: "{instruction}\\n\\n{text}"
    templates:
      - {id: plain, text: "Is it true? YES or NO."}
      - {id: other, text: "Does it hold? YES or NO."}
"""


def executed(folder: Path) -> set[tuple[str, str, int]]:
    """The functions of this project that one run of four items executes."""
    (folder / "templates.yaml").write_text(TEMPLATES, "utf-8")
    items = [{"item_id": f"i{n}", "text": f"fact {n}", "gold": "YES"} for n in range(4)]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, items)), "utf-8")
    called: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            path = code.co_filename.removeprefix(f"{ROOT}/")
            if not path.startswith((".venv", "benchmarks")):
                called.add((path, code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        import judgesense

        judgesense.run(
            lambda prompts: ["YES" for _ in prompts],
            templates=folder / "templates.yaml",
            items=folder / "items.jsonl",
            out=folder / "out",
        )
    finally:
        sys.setprofile(None)
    return called


def main() -> None:
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        called = executed(Path(folder))
    rooms = collections.Counter(str(Path(path).parent) for path, _, _ in called)
    for room, number in rooms.most_common():
        print(f"{number:5} {room}")
    files = len({path for path, _, _ in called})
    print(f"{len(called)} functions in {files} files")
    if "--list" in sys.argv:
        for path, name, line in sorted(called, key=lambda each: (each[0], each[2])):
            print(f"  {path}:{line} {name}")
    finish(
        [
            {
                "name": name,
                "peer": "version 0.2",
                "ratio": round(ours / theirs, 3),
                "ours": ours,
                "theirs": theirs,
                "unit": unit,
                "n": 4,
                "machine": machine(),
            }
            for name, ours, theirs, unit in (
                ("executed functions", len(called), 1245, "functions"),
                ("executed files", files, 144, "files"),
            )
        ]
    )


if __name__ == "__main__":
    main()

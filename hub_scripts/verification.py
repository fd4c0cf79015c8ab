"""Check a run's decisions: compare them with its benchmark, and ask some prompts again.

Gold labels, prompts and ids come from the benchmark's own revision, not from the run, and a verdict
has to follow from the reply that the run shows. Replies can still be invented. So a maintainer asks
some prompts again (`ask_again`), and keeps the outcome beside the runs in ``verified.json``, which
no submission writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import fit_record, read_json
from judgesense.log.folder import digests_of, read_record
from judgesense.log.record import now
from judgesense.log.schema import EQUIVALENT, REWORDING, read_log
from judgesense.tasks import ERROR, REFUSED, load_label_map
from judgesense_dataset.embedded import EMBEDDED_SETS
from judgesense_dataset.load import load_benchmark
from local_judges.plan import Requests
from local_judges.protocol import Answer, Judge
from local_judges.rows import decide
from local_judges.runner import ask_all

VERIFIED = "verified.json"
MIN_SAME = 0.9
"""The share of verdicts that a judge has to give again: endpoints are not quite repeatable."""


def named_benchmark(run_dir: Path, *, only_embedded: bool = False) -> Benchmark | None:
    """The benchmark that a run says it judged; None for data of the user's own."""
    asked: Mapping[str, Any] = (read_record(run_dir) or {}).get("asked") or {}
    data = asked.get("data") or {}
    name = data.get("dataset")
    embedded = name in EMBEDDED_SETS
    if not isinstance(name, str) or "sha256" in data or (only_embedded and not embedded):
        return None
    return load_benchmark(name)


def require_benchmark(run_dir: Path, benchmark: Benchmark) -> None:
    """Raise JudgeSenseError where a run's decisions differ from the benchmark that it names.

    In prompts, ids and gold labels, and where a verdict does not follow from the judge's reply.
    """
    columns = ("prompt_id", "item_id", "cluster_id", "template_id", "order", "gold", "label_map")
    prompts = benchmark.prompts.select(columns).to_pylist()
    row_of_prompt = {(row["prompt_id"], row["item_id"], row["template_id"]): row for row in prompts}
    gold_of = {(row["item_id"], row["order"]): row["gold"] for row in prompts}
    for number, row in enumerate(read_log(run_dir).to_pylist(), 1):
        difference = None
        place = f"{run_dir}, row {number} (item {row['item_id']!r}, {row['template_id']!r})"
        if row["variant"] in (None, REWORDING):
            expected = row_of_prompt.get((row["prompt_id"], row["item_id"], row["template_id"]))
            if expected is None:
                raise JudgeSenseError(f"{place}: the benchmark has no such prompt")
            names = ("cluster_id", "order", "gold")
            differences = ((n, row[n], expected[n]) for n in names if row[n] != expected[n])
            misread = _misread_field(row, expected["label_map"], benchmark)
            difference = next(differences, misread)
        elif row["variant_class"] == EQUIVALENT:
            key = row["item_id"], row["order"]
            if key not in gold_of:
                raise JudgeSenseError(f"{place}: the benchmark has no such item")
            if row["gold"] != gold_of[key]:
                difference = "gold", row["gold"], gold_of[key]
        if difference:
            name, value, correct = difference
            raise JudgeSenseError(
                f"{place}: {name} is {value!r}, but by the benchmark it is {correct!r}"
            )


def _misread_field(
    row: Mapping[str, Any], label_map: str, benchmark: Benchmark
) -> tuple[str, Any, Any] | None:
    """The verdict of a row that does not follow from the reply beside it."""
    if row["raw_decision"] in (ERROR, REFUSED):
        return None
    maps = load_label_map(label_map)
    options, logprobs = tuple(maps), None
    if row["option_logprobs"]:
        logprob_of = {entry["option"]: entry["logprob"] for entry in row["option_logprobs"]}
        logprobs = tuple(logprob_of.get(option, float("-inf")) for option in options)
    template = row["template_id"]
    reading = benchmark.aliases.get(template), benchmark.fields.get(template, "")
    reply = Answer(text=row["raw_text"], option_logprobs=logprobs)
    raw = decide(reply, row["scoring"], options, *reading)
    for name, correct in (("raw_decision", raw), ("decision", maps.get(raw, raw))):
        if row[name] != correct:
            return name, row[name], correct
    return None


@dataclass(frozen=True)
class Verification:
    """The outcome of asking a run's prompts again.

    ``digest`` names the decisions; ``same`` of ``asked`` verdicts were given again by ``judge``.
    """

    digest: str
    judge: str
    asked: int
    same: int
    day: str = ""

    @property
    def holds(self) -> bool:
        """Whether enough verdicts were the same."""
        return self.asked > 0 and self.same >= MIN_SAME * self.asked


def digest_of(run_dir: Path) -> str:
    """A hash of a run's decisions and pairs."""
    return sha256(json.dumps(digests_of(run_dir), sort_keys=True).encode()).hexdigest()


def ask_again(run_dir: Path, judge: Judge, sample: int, seed: int = 0) -> Verification:
    """Compare a run with its benchmark, and ask a judge some of its prompts again.

    Raises JudgeSenseError as `require_benchmark`, for data that are no benchmark, and for a run of
    several judges of which none has this judge's model.
    """
    benchmark = named_benchmark(run_dir)
    if benchmark is None:
        raise JudgeSenseError(
            f"{run_dir}: the run is of data of its own, so nobody can check its prompts and labels"
        )
    require_benchmark(run_dir, benchmark)
    log = read_log(run_dir)
    model = judge.name.partition("@")[0]
    judges = [name for name in log["judge"].unique().to_pylist() if name.partition("@")[0] == model]
    if not judges:
        raise JudgeSenseError(f"{run_dir} has no answers of {model}; name its judge with --judge")
    requests = Requests(benchmark.prompts)
    position = {request.prompt_id: number for number, request in enumerate(requests)}
    rows = [
        row
        for row in log.to_pylist()
        if row["judge"] == judges[0]
        and row["prompt_id"] in position
        and row["repeat"] == 0
        and row["status"] == "ok"
        and row["scoring"] in judge.scorings
    ]
    sampled = np.random.default_rng(seed).permutation(len(rows))[:sample].tolist()
    same = 0
    for scoring in sorted({rows[n]["scoring"] for n in sampled}):
        scoring_rows = [rows[n] for n in sampled if rows[n]["scoring"] == scoring]
        requests_of_rows = requests.take([position[row["prompt_id"]] for row in scoring_rows])
        prompts = list({request.prompt_id: request for request in requests_of_rows}.values())
        replies = ask_all(judge, prompts, {scoring})
        answers = dict(zip((prompt.prompt_id for prompt in prompts), replies, strict=True))
        for row, request in zip(scoring_rows, requests_of_rows, strict=True):
            template = row["template_id"]
            reading = benchmark.aliases.get(template), benchmark.fields.get(template, "")
            raw = decide(answers[request.prompt_id], scoring, request.options, *reading)
            same += raw == row["raw_decision"]
    return Verification(digest_of(run_dir), judge.name, len(sampled), same, now())


def write_verification(run_dir: Path, verification: Verification) -> Path:
    """Write the outcome into ``verified.json`` beside the run's folder."""
    path = run_dir.resolve().parent / VERIFIED
    entries = read_json(path) if path.exists() else {}
    entries[run_dir.resolve().name] = asdict(verification)
    write_text(path, json.dumps(entries, indent=1) + "\n")
    return path


def is_verified(run_dir: Path) -> bool:
    """Whether a maintainer has asked these very decisions again, and got them."""
    path = run_dir.resolve().parent / VERIFIED
    try:
        entry = read_json(path).get(run_dir.resolve().name) if path.is_file() else None
        if entry is None:
            return False
        verification = fit_record(Verification, entry, str(path), "a verification")
        return verification.holds and verification.digest == digest_of(run_dir)
    except (OSError, AttributeError, JudgeSenseError):
        return False

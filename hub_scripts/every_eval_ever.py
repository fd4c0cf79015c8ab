"""A run's scores in the schema of Every Eval Ever, for a pull request to its datastore.

Schema: ``eval.schema.json`` of the package every-eval-ever 0.3.0 (arXiv:2606.14516). One record per
judge, at ``data/judgesense/DEVELOPER/MODEL/UUID.json``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from hub_scripts.local_paths import name_only
from hub_scripts.results import checked_report
from judgesense.decisions.view import BASELINES
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.run_folder.report import identity, main_cells

SCHEMA_VERSION = "0.3.0"
COLLECTION = "judgesense"

Relationship = Literal["first_party", "third_party", "collaborative", "other"]
"""Of whoever ran the evaluation to the model."""

_HUB_WEIGHTS = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)@[0-9a-f]{40}(?::.+)?")
_METRICS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        "jss", "judgesense.jss", "Judge Sensitivity Score", "agreement", "ci",
        "Share of pairs of equivalent wordings on which the judge's verdicts mean the same",
    ),
    (
        "accuracy", "accuracy", "Accuracy", "accuracy", "accuracy_ci",
        "Share of decided prompts whose verdict is the gold label",
    ),
    (
        "position_consistency", "judgesense.position_consistency", "Position consistency",
        "agreement", "position_ci",
        "Share of items with the same choice in both orders of the options",
    ),
)  # fmt: skip
"""Key of the cell, metric_id, name, kind, beginning of the interval's keys, description."""


def every_eval_ever(
    run_dir: Path,
    out: Path,
    *,
    organization: str,
    relationship: Relationship = "third_party",
    developer: str | None = None,
) -> list[Path]:
    """Write a record per judge of a run under ``out`` (a folder named ``data``), and return them.

    Undefined scores are left out. The same run gives the same files, byte for byte.

    Args:
        run_dir: a run's folder. Its report must be what its decisions give.
        out: the datastore's folder ``data``.
        organization: who ran the evaluation.
        relationship: of that organisation to the models.
        developer: of the models whose log has no Hub id; ``unknown`` without it, which the
            datastore does not accept.

    Raises:
        JudgeSenseError: whatever `results.checked_report` refuses, a run that is not finished, a
            judge without any score, an impossible name, and a folder that cannot be written.
    """
    if not organization.strip():
        raise JudgeSenseError("name the organisation that ran the evaluation")
    if developer is not None and not re.fullmatch(r"[0-9A-Za-z][\w.-]*", developer, re.ASCII):
        raise JudgeSenseError(f"the developer {developer!r} is not a name on the Hub")
    if out.name != "data":
        raise JudgeSenseError(f"{out}: the datastore's folder is named data; give .../data")
    report = checked_report(run_dir)
    run = report["runs"][0]
    if not run.get("finished"):
        raise JudgeSenseError(f"{run_dir} is not finished; rerun its command first")
    written = []
    for judge in run.get("judges") or []:
        record = _record(report, run, judge, organization.strip(), relationship, developer)
        if not record["evaluation_results"]:
            raise JudgeSenseError(f"{run_dir} has no score of {judge['name']} to export")
        owner, _, model = record["model_info"]["id"].partition("/")
        digest = hashlib.sha256(json.dumps([run["run_id"], record["evaluation_id"]]).encode())
        name = f"{UUID(bytes=digest.digest()[:16], version=4)}.json"
        path = out / COLLECTION / owner / model / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
            write_text(path, text + "\n")
        except OSError as error:
            raise JudgeSenseError(f"cannot write {path}: {error.strerror or error}") from error
        written.append(path)
    return written


def _record(
    report: Mapping[str, Any],
    run: Mapping[str, Any],
    judge: Mapping[str, Any],
    organization: str,
    relationship: str,
    developer: str | None,
) -> dict[str, Any]:
    model = _model_info(judge, developer or "unknown")
    when = str(int(datetime.fromisoformat(run["finished"]).timestamp()))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{COLLECTION}/{model['id']}/{when}",
        "evaluation_timestamp": when,
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": "JudgeSense",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
            "additional_details": {"run_id": str(run["run_id"])},
        },
        "eval_library": {
            "name": "judgesense",
            "version": str((run.get("versions") or {}).get("judgesense", "unknown")),
        },
        "model_info": model,
        "evaluation_results": list(_results(report, run, judge)),
    }


def _model_info(judge: Mapping[str, Any], developer: str) -> dict[str, Any]:
    told = judge.get("describe") or {}
    engine = str(told.get("engine", "unknown"))
    short = str(judge["name"]).split("@")[0]
    found = _HUB_WEIGHTS.fullmatch(str(told.get("weights")))
    local = engine in ("transformers", "vllm")
    identifier = found["repo"] if found else _identifier(str(told.get("model") or short), developer)
    details = {
        "deployment_type": "self_deployed" if local else "unknown",
        "model_availability": "open_weights" if found else "unknown",
        "judge": str(judge["name"]),
    }
    for key in ("weights", "dtype", "gguf_file", "base_url", "provider"):
        if told.get(key):
            details[key] = name_only(str(told[key]))
    info: dict[str, Any] = {"name": short, "id": identifier, "additional_details": details}
    version = (told.get("versions") or {}).get(engine)
    if local:
        info["inference_engine"] = {"name": engine, **({"version": version} if version else {})}
    return info


def _identifier(model: str, developer: str) -> str:
    """A model's name as DEVELOPER/MODEL; a Hub id is one already.

    >>> _identifier("gpt-4o", "openai"), _identifier("/home/ann/mine", "unknown")
    ('openai/gpt-4o', 'unknown/mine')
    """
    if re.fullmatch(r"[0-9A-Za-z][\w.-]*/[0-9A-Za-z][\w.-]*", model, re.ASCII):
        return model
    return f"{developer}/{re.sub(r'[^0-9A-Za-z_.-]', '-', name_only(model))}"


def _results(
    report: Mapping[str, Any], run: Mapping[str, Any], judge: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    trust = {identity(card): card for card in report["trust"]}
    for key, by_labels in main_cells(report).items():
        _, name, task, scoring = key
        cell = by_labels.get("mapped")
        if cell is None or name != judge["name"] or name in BASELINES:
            continue
        for field, metric, title, kind, ends, text in _METRICS:
            if cell[field] is None:
                continue
            details = {"trust": trust[key]["trust"], "signature": cell["signature"]}
            if cell["degenerate"]:
                details["degenerate"] = cell["degenerate"]
            yield {
                "evaluation_result_id": f"{task}/{scoring}/{field}",
                "evaluation_name": f"{COLLECTION}/{task}",
                "source_data": _source(run, cell),
                "metric_config": {
                    "evaluation_description": f"{text}; {scoring} scoring",
                    "metric_id": metric, "metric_name": title, "metric_kind": kind,
                    "metric_unit": "proportion", "metric_parameters": {"scoring": scoring},
                    "lower_is_better": False, "score_type": "continuous",
                    "min_score": 0.0, "max_score": 1.0,
                },
                "score_details": {
                    "score": cell[field], "details": details,
                    "uncertainty": _uncertainty(cell, ends),
                },
                "generation_config": _generation(judge, scoring),
            }  # fmt: skip


def _source(run: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    data = run.get("dataset") or {}
    name = name_only(str(data.get("name", "unknown")))
    details = {"data_hash": str(run.get("data_hash", "unknown"))}
    details |= {key: str(data[key]) for key in ("version", "revision", "sha256") if data.get(key)}
    source: dict[str, Any] = {"dataset_name": name, "additional_details": details}
    if re.fullmatch(r"[0-9a-f]{40}", str(data.get("revision"))):
        return {**source, "source_type": "hf_dataset", "hf_repo": name, "hf_split": "test",
                "samples_number": cell["n_items"]}  # fmt: skip
    return {**source, "source_type": "other"}


def _uncertainty(cell: Mapping[str, Any], ends: str) -> dict[str, Any]:
    found: dict[str, Any] = {"num_samples": cell["n_items"]}
    low, high = cell[f"{ends}_low"], cell[f"{ends}_high"]
    if low is not None and high is not None:
        found["confidence_interval"] = {
            "lower": low, "upper": high, "confidence_level": 0.95,
            "method": "Wilson, clustered by item",
        }  # fmt: skip
    return found


def _generation(judge: Mapping[str, Any], scoring: str) -> dict[str, Any]:
    told = judge.get("describe") or {}
    decoding = told.get("decoding") or {}
    args: dict[str, Any] = {}
    if isinstance(decoding.get("temperature"), (int, float)):
        args["temperature"] = decoding["temperature"]
    if scoring == "generate" and isinstance(decoding.get("max_tokens"), int):
        args["max_tokens"] = decoding["max_tokens"]
    details = {"scoring": scoring}
    if isinstance(told.get("system_prompt"), str):
        details["system_prompt"] = told["system_prompt"]
    return {"generation_args": args, "additional_details": details}

"""Which hosts and keys the file of somebody else may use, and who allowed it.

A judge's file or a study can name an endpoint and the environment variable of a key. Opening it
must not send a key, or the texts that are judged, to a host that its author chose. So a key goes to
the hosts that the registry pairs it with, any other host needs the user's consent, and a variable
that no registry entry names is never read.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from local_judges.api.keys import is_here
from local_judges.judge_files import JudgeEntry, config_folder, entries
from local_judges.options import KEY_VARIABLE, REMOTE

log = logging.getLogger(__name__)

_ALLOWED_FILE = "allowed_hosts.json"
"""In the user's configuration folder: the hash of a file -> the hosts that it may ask."""


def require_consent(
    path: Path, engine: str, options: Mapping[str, Any], allowed: Collection[str] = ()
) -> None:
    """Check the endpoint of a judge that a file names, before its key is read.

    Args:
        path: the file.
        engine: the judge's engine.
        options: the judge's options: ``base_url``, ``provider`` and ``key_variable`` count.
        allowed: hosts that the user allows now; they are remembered for this very file.

    Raises:
        JudgeSenseError: a key variable that no registry entry names, or a host that nobody allowed.
    """
    if engine not in REMOTE:
        return
    variable = options.get("key_variable")
    if variable is not None and variable not in known_variables():
        raise JudgeSenseError(
            f"{path} asks for the environment variable {variable}, which no judge of the registry "
            "uses, so it is not read; if you trust the file, add its endpoint to your own registry "
            "(JUDGESENSE_JUDGES)"
        )
    url = options.get("base_url")
    if not url or is_here(url):
        # Without a URL, the endpoint is the provider's or the user's own $OPENAI_BASE_URL.
        return
    host = (urlsplit(str(url)).hostname or "").rstrip(".")
    key = variable or KEY_VARIABLE
    if (host, key) in _registered_hosts():
        return
    if host in allowed:
        remember(path, [host])
    elif host not in _remembered_hosts().get(_hash_of(path), ()):
        raise JudgeSenseError(
            f"{path} would send your texts and the key in {key} to {host}. To allow it for this "
            f"file: --allow-host {host}; otherwise do not use the file"
        )
    log.warning("%s asks %s with the key in %s", path, host, key)


def known_variables() -> frozenset[str]:
    """The environment variables of keys that the registry names, the user's own included."""
    variables = (entry.options.get("key_variable") for entry in _remote_entries())
    return frozenset({KEY_VARIABLE, *filter(None, variables)})


def remember(path: Path, hosts: Iterable[str]) -> None:
    """Keep the consent to ask these hosts for the file as it is now.

    Without a folder to keep it in, the consent holds for this process's command alone.
    """
    if not (hosts := list(hosts)):
        return
    allowed = {**_remembered_hosts()}
    digest = _hash_of(path)
    allowed[digest] = sorted({*allowed.get(digest, ()), *hosts})
    file = config_folder() / _ALLOWED_FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(allowed, indent=1) + "\n")
    except OSError as error:
        log.warning("the consent is not kept: %s cannot be written (%s)", file, error.strerror)


def hosts_of(options: Iterable[Mapping[str, Any]]) -> list[str]:
    """The hosts that judges with these options ask."""
    urls = (str(judge["base_url"]) for judge in options if judge.get("base_url"))
    return sorted({host for url in urls if (host := urlsplit(url).hostname)})


def _registered_hosts() -> frozenset[tuple[str, str]]:
    """Each host of the registry with the variable of its key."""
    pairs = set()
    for entry in _remote_entries():
        host = urlsplit(str(entry.options.get("base_url") or "")).hostname
        if host:
            pairs.add((host, str(entry.options.get("key_variable") or KEY_VARIABLE)))
    return frozenset(pairs)


def _remote_entries() -> list[JudgeEntry]:
    return [entry for entry in entries().values() if entry.engine in REMOTE]


def _remembered_hosts() -> dict[str, list[str]]:
    """The consent that was kept; none where its file is missing or damaged."""
    try:
        hosts = json.loads((config_folder() / _ALLOWED_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return hosts if isinstance(hosts, dict) else {}


def _hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

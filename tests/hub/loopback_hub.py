"""A small Hub on the loopback: the HTTP that huggingface_hub, datasets and evaluate speak.

It keeps repositories with their commits in memory, asks for tokens, and fails on demand. Clients
reach it with HF_ENDPOINT.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from loopback_repo import File, Pull, Repo

WRITER, READER, VISITOR = "hf_writer", "hf_reader", "hf_visitor"
"""Tokens: one that may write everywhere, one that may not write at all, one that may offer."""

LARGE = (".parquet", ".whl", ".png")
PREFIXES = {"datasets": "dataset", "spaces": "space", "models": "model"}


@dataclass
class Failure:
    method: str
    path: str
    status: int
    times: int
    after: bool = False


class LoopbackHub:
    """The server; ``requests`` lists what was asked, ``fail`` makes coming requests fail."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.large: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.failures: list[Failure] = []
        self.lock = threading.RLock()
        hub = self

        class Bound(Handler):
            pass

        Bound.hub = hub
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def create(self, kind: str, name: str, private: bool = False, sdk: str | None = None) -> Repo:
        repo = Repo(kind, name, private, sdk)
        repo.commit({".gitattributes": File(b"*.parquet filter=lfs\n", False)}, "initial commit")
        self.repos[kind, name] = repo
        return repo

    def fail(
        self, method: str, path: str, status: int, times: int = 1, after: bool = False
    ) -> None:
        """The next requests whose path matches get this status; ``after`` doing what was asked."""
        self.failures.append(Failure(method, path, status, times, after))

    def take_failure(self, method: str, path: str) -> Failure | None:
        for failure in self.failures:
            if failure.times and failure.method == method and re.search(failure.path, path):
                failure.times -= 1
                return failure
        return None


class Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        split = urlsplit(self.path)
        path = unquote(split.path)
        self.query = parse_qs(split.query)
        with self.hub.lock:
            self.hub.requests.append((self.command, path))
            failure = self.hub.take_failure(self.command, path)
            if failure and not failure.after:
                return self._error(failure.status, "asked to fail")
            self.swallowed = failure
            for method, pattern, serve in ROUTES:
                match = re.fullmatch(pattern, path)
                if match and self.command in method.split():
                    if method in ("POST", "PUT") and not self._may(serve.__name__):
                        return None
                    return serve(self, **match.groupdict())
        return self._error(404, f"no route {self.command} {path}")

    def _may(self, action: str) -> bool:
        if action in ("validate_yaml", "paths_info", "batch"):
            return True
        if action == "upload":
            # The address itself is signed, as on the Hub's storage.
            return True
        token = self._token()
        offers = "create_pr" in self.query or "/refs/pr/" in unquote(self.path)
        if token == WRITER or (token == VISITOR and offers):
            return True
        if token in (READER, VISITOR):
            self._error(403, "You don't have the rights to do this")
        else:
            self._error(401, "Invalid credentials in Authorization header")
        return False

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        if self.swallowed and status < 400:
            status, body, headers = self.swallowed.status, b"{}", {}
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    swallowed: Failure | None = None

    def _json(self, value: object, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, message: str, code: str | None = None) -> None:
        self.swallowed = None
        headers = {"Content-Type": "application/json", "X-Error-Message": message}
        if code:
            headers["X-Error-Code"] = code
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _repo(self, kinds: str, name: str) -> Repo | None:
        repo = self.hub.repos.get((PREFIXES[kinds], name))
        allowed = self._token() in (WRITER, READER)
        if repo is None or (repo.private and not allowed):
            self._error(404, "Repository not found", "RepoNotFound")
            return None
        return repo

    def _at(self, kinds: str, name: str, revision: str) -> tuple[Repo, str] | None:
        repo = self._repo(kinds, name)
        if repo is None:
            return None
        sha = repo.resolve(revision)
        if sha is None:
            self._error(404, f"Invalid rev id: {revision}", "RevisionNotFound")
            return None
        return repo, sha

    def validate_yaml(self) -> None:
        self._json({"errors": [], "warnings": []})

    def whoami(self) -> None:
        if not self._token():
            return self._error(401, "Invalid credentials in Authorization header")
        return self._json({"type": "user", "name": self._token().removeprefix("hf_"), "orgs": []})

    def discussions(self, kinds: str, name: str) -> None:
        if repo := self._repo(kinds, name):
            asked = {key: values[0] for key, values in self.query.items()}
            shown = [
                {
                    "num": pull.num,
                    "title": pull.title,
                    "author": {"name": pull.author},
                    "createdAt": "2026-01-01T00:00:00.000Z",
                    "status": pull.status,
                    "isPullRequest": True,
                    "repo": {"name": name, "type": repo.kind},
                }
                for pull in repo.pulls
                if asked.get("author", pull.author) == pull.author
                and asked.get("status", pull.status) == pull.status
            ]
            self._json({"discussions": shown, "count": len(shown), "start": 0})

    def create(self) -> None:
        asked = json.loads(self.body)
        name = f"{asked['organization']}/{asked['name']}"
        kind = asked.get("type") or "model"
        if any(known == name for _, known in self.hub.repos):
            return self._error(409, "You already created this repo")
        private = bool(asked.get("private")) or asked.get("visibility") == "private"
        repo = self.hub.create(kind, name, private, asked.get("sdk"))
        prefix = "" if kind == "model" else f"{kind}s/"
        return self._json({"url": f"{self.hub.url}/{prefix}{repo.name}", "id": name})

    def info(self, kinds: str, name: str, revision: str = "main") -> None:
        if found := self._at(kinds, name, revision or "main"):
            repo, sha = found
            siblings = [{"rfilename": path} for path in sorted(repo.commits[sha])]
            self._json(
                {
                    "_id": "0",
                    "id": name,
                    "sha": sha,
                    "private": repo.private,
                    "gated": False,
                    "disabled": False,
                    "tags": [],
                    "downloads": 0,
                    "likes": 0,
                    "lastModified": "2026-01-01T00:00:00.000Z",
                    "createdAt": "2026-01-01T00:00:00.000Z",
                    "sdk": repo.sdk,
                    "siblings": siblings,
                }
            )

    def refs(self, kinds: str, name: str) -> None:
        if repo := self._repo(kinds, name):
            tags = [
                {"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": sha}
                for tag, sha in repo.tags.items()
            ]
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.head}
            self._json({"branches": [main], "converts": [], "tags": tags})

    def tree(self, kinds: str, name: str, revision: str, path: str | None = None) -> None:
        found = self._at(kinds, name, revision)
        if not found:
            return
        repo, sha = found
        recursive = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        entries = _entries(repo.commits[sha], path or "", recursive)
        if path and not entries:
            return self._error(404, f"{path} does not exist", "EntryNotFound")
        self._json(entries)

    def paths_info(self, kinds: str, name: str, revision: str) -> None:
        found = self._at(kinds, name, revision)
        if not found:
            return
        if "json" in (self.headers.get("Content-Type") or ""):
            paths = json.loads(self.body)["paths"]
        else:
            paths = parse_qs(self.body.decode()).get("paths", [])
        every = {entry["path"]: entry for entry in _entries(found[0].commits[found[1]], "", True)}
        self._json([every[path] for path in paths if path in every])

    def preupload(self, kinds: str, name: str, revision: str) -> None:
        found = self._at(kinds, name, revision)
        if not found:
            return
        files = found[0].commits[found[1]]
        answer = []
        for asked in json.loads(self.body)["files"]:
            path, known = asked["path"], files.get(asked["path"])
            oid = None if known is None else known.sha256 if known.large else known.blob
            mode = "lfs" if path.endswith(LARGE) else "regular"
            answer.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self._json({"files": answer})

    def batch(self, name: str, kinds: str | None = None) -> None:
        objects = []
        for asked in json.loads(self.body)["objects"]:
            entry = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in self.hub.large:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/storage/{asked['oid']}"}}
            objects.append(entry)
        self._json({"transfer": "basic", "objects": objects})

    def upload(self, oid: str) -> None:
        if hashlib.sha256(self.body).hexdigest() != oid:
            return self._error(400, "the content is not what was announced")
        self.hub.large[oid] = self.body
        return self._send(200, b"")

    def commit(self, kinds: str, name: str, revision: str) -> None:
        found = self._at(kinds, name, revision)
        if not found:
            return
        repo, sha = found
        files, message = dict(repo.commits[sha]), ""
        for line in self.body.splitlines():
            entry = json.loads(line)
            key, value = entry["key"], entry["value"]
            if key == "header":
                message = value["summary"]
                if value.get("parentCommit", sha) != sha:
                    return self._error(412, "A commit has happened since")
            elif key == "file":
                files[value["path"]] = File(base64.b64decode(value["content"]), False)
            elif key == "lfsFile":
                if value["oid"] not in self.hub.large:
                    return self._error(400, f"{value['path']} was not uploaded")
                files[value["path"]] = File(self.hub.large[value["oid"]], True)
            elif key == "deletedFile":
                del files[value["path"]]
        answer = {"success": True, "hookOutput": ""}
        if "create_pr" in self.query:
            oid = repo.keep(files, message)
            pull = Pull(len(repo.pulls) + 1, message, self._token().removeprefix("hf_"), oid)
            repo.pulls.append(pull)
            prefix = "" if repo.kind == "model" else f"{kinds}/"
            answer["pullRequestUrl"] = f"{self.hub.url}/{prefix}{name}/discussions/{pull.num}"
        elif revision.startswith("refs/pr/"):
            oid = repo.keep(files, message)
            next(p for p in repo.pulls if revision == f"refs/pr/{p.num}").head = oid
        else:
            oid = repo.commit(files, message)
        url = f"{self.hub.url}/{kinds}/{name}/commit/{oid}"
        return self._json({**answer, "commitOid": oid, "commitUrl": url})

    def tag(self, kinds: str, name: str, revision: str) -> None:
        found = self._at(kinds, name, revision)
        if found:
            asked = json.loads(self.body)["tag"]
            if asked in found[0].tags:
                return self._error(409, "Tag reference exists already")
            found[0].tags[asked] = found[1]
            self._json({})

    def download(self, name: str, revision: str, path: str, kinds: str | None = None) -> None:
        found = self._at((kinds or "models/").rstrip("/"), name, revision)
        if not found:
            return
        repo, sha = found
        file = repo.commits[sha].get(path)
        if file is None:
            return self._error(404, "Entry not found", "EntryNotFound")
        etag = f'"{file.sha256 if file.large else file.blob}"'
        headers = {"ETag": etag, "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if file.large:
            headers |= {"X-Linked-Etag": etag, "X-Linked-Size": str(len(file.content))}
        content, status = file.content, 200
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            first, last = int(asked[1]), int(asked[2] or len(content) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            content, status = content[first : last + 1], 206
        return self._send(status, content, headers)


def _entries(files: dict[str, File], under: str, recursive: bool) -> list[dict[str, object]]:
    prefix = f"{under}/" if under else ""
    folders: dict[str, dict[str, object]] = {}
    entries: list[dict[str, object]] = []
    for path, file in sorted(files.items()):
        if not path.startswith(prefix):
            continue
        parts = path.removeprefix(prefix).split("/")
        for depth in range(1, len(parts)) if recursive else range(1, min(len(parts), 2)):
            folder = prefix + "/".join(parts[:depth])
            oid = hashlib.sha1(folder.encode()).hexdigest()
            folders[folder] = {"type": "directory", "oid": oid, "size": 0, "path": folder}
        if recursive or len(parts) == 1:
            entry = {"type": "file", "oid": file.blob, "size": len(file.content), "path": path}
            if file.large:
                entry["lfs"] = {"oid": file.sha256, "size": entry["size"], "pointerSize": 130}
            entries.append(entry)
    return [*folders.values(), *entries]


_API = r"/api/(?P<kinds>models|datasets|spaces)/(?P<name>[\w.-]+/[\w.-]+)"
_PAGE = r"/(?P<kinds>datasets/|spaces/)?(?P<name>[\w.-]+/[\w.-]+)"
_AT = r"/(?P<revision>refs/pr/\d+|[^/]+)"
ROUTES = [
    ("POST", "/api/validate-yaml", Handler.validate_yaml),
    ("POST", "/api/repos/create", Handler.create),
    ("GET", _API, Handler.info),
    ("GET", f"{_API}/revision{_AT}", Handler.info),
    ("GET", "/api/whoami-v2", Handler.whoami),
    ("GET", f"{_API}/discussions", Handler.discussions),
    ("GET", f"{_API}/refs", Handler.refs),
    ("GET", f"{_API}/tree{_AT}(?:/(?P<path>.+))?", Handler.tree),
    ("POST", f"{_API}/paths-info{_AT}", Handler.paths_info),
    ("POST", f"{_API}/preupload{_AT}", Handler.preupload),
    ("POST", f"{_API}/commit{_AT}", Handler.commit),
    ("POST", f"{_API}/tag{_AT}", Handler.tag),
    ("POST", rf"{_PAGE}\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", "/storage/(?P<oid>[0-9a-f]{64})", Handler.upload),
    ("GET HEAD", f"{_PAGE}/resolve{_AT}/(?P<path>.+)", Handler.download),
]

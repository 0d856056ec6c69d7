"""The part of a Kubernetes API that Helm needs, for secrets and configuration maps."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}
DISCOVERY = {
    "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": name, "kind": kind, "namespaced": True, "verbs": ["create", "delete", "get", "list", "patch", "update"]}
            for name, kind in KINDS.items()
        ],
    },
    # shows clients that the server validates fields
    "/openapi/v3": {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}},
    "/openapi/v3/api/v1": {
        "openapi": "3.0.0",
        "paths": {
            f"/api/v1/namespaces/{{namespace}}/{name}/{{name}}": {
                "patch": {
                    "parameters": [{"name": "fieldValidation", "in": "query"}],
                    "responses": {},
                    "x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": kind},
                }
            }
            for name, kind in KINDS.items()
        },
    },
}

PROTOCOL_BUFFERS = b"k8s\x00"
WITH_LENGTH = 2

Json = dict[str, Any]


class Cluster:
    """The applied objects, as `objects[kind, namespace, name]`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.objects: dict[tuple[str, str, str], Json] = {}

    def kubeconfig(self, context: str) -> str:
        """Return a client's settings in one line."""
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "docs", "cluster": {"server": self.url}}],
                "contexts": [{"name": context, "context": {"cluster": "docs", "user": "docs"}}],
                "users": [{"name": "docs", "user": {}}],
            }
        )

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Json | None) -> tuple[int, Json]:
        """Handle a request, and return its response."""
        if method == "GET" and path in DISCOVERY:
            return 200, DISCOVERY[path]
        match path.strip("/").split("/"):
            case ["api", "v1", "namespaces", namespace, kind] if kind in KINDS:
                if method == "POST" and body is not None:
                    return self._create(kind, namespace, body)
                if "watch" in query:  # Helm 4 waits with a watch; it reads the list if that is refused
                    return _failure(405, "MethodNotAllowed", path)
                return 200, self._list(kind, namespace, query)
            case ["api", "v1", "namespaces", namespace, kind, name] if kind in KINDS:
                return self._change(method, (kind, namespace, name), body)
        return _failure(404, "NotFound", path)

    def _create(self, kind: str, namespace: str, body: Json) -> tuple[int, Json]:
        key = (kind, namespace, body["metadata"]["name"])
        if key in self.objects:
            return _failure(409, "AlreadyExists", key[2])
        metadata = {**body["metadata"], "namespace": namespace}
        self.objects[key] = {"apiVersion": "v1", "kind": KINDS[kind], **body, "metadata": metadata}
        return 201, self.objects[key]

    def _list(self, kind: str, namespace: str, query: dict[str, list[str]]) -> Json:
        wanted = dict(part.split("=") for part in query.get("labelSelector", [""])[0].split(",") if part)
        items = [
            found
            for (of_kind, of_namespace, _), found in self.objects.items()
            if (of_kind, of_namespace) == (kind, namespace) and wanted.items() <= found["metadata"].get("labels", {}).items()
        ]
        return {"kind": f"{KINDS[kind]}List", "apiVersion": "v1", "metadata": {}, "items": items}

    def _change(self, method: str, key: tuple[str, str, str], body: Json | None) -> tuple[int, Json]:
        if key not in self.objects:
            if method == "PATCH" and body is not None:  # server-side apply, which Helm 4 uses, creates what is missing
                return self._create(key[0], key[1], body)
            return _failure(404, "NotFound", key[2])
        if method == "DELETE":
            return 200, self.objects.pop(key)
        if body is not None:
            self.objects[key] = body if method == "PUT" else _merged(self.objects[key], body)
        return 200, self.objects[key]


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Serve a cluster on a loopback port until the `with` ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = _read(self.rfile.read(length)) if length else None
            address = urlsplit(self.path)
            status, result = cluster.answer(self.command, address.path, parse_qs(address.query), body)
            content = json.dumps(result).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # Helm 4 may end while it repeats its watch
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - named by the base class

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        cluster = Cluster(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield cluster
        finally:
            server.shutdown()
            thread.join()


def _read(body: bytes) -> Json:
    """Read an object from a client: JSON, or a secret as protocol buffers (source: k8s.io/api, generated.proto)."""
    if not body.startswith(PROTOCOL_BUFFERS):
        found: Json = json.loads(body)
        return found
    secret = _fields(_fields(body.removeprefix(PROTOCOL_BUFFERS))[2][0])
    metadata = _fields(secret[1][0])
    return {
        "metadata": {"name": metadata[1][0].decode(), "labels": {k.decode(): v.decode() for k, v in _pairs(metadata[11])}},
        "data": {name.decode(): base64.b64encode(value).decode() for name, value in _pairs(secret[2])},
        "type": secret[3][0].decode(),
    }


def _pairs(entries: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return ((entry[1][0], entry[2][0]) for entry in map(_fields, entries))


def _fields(message: bytes) -> dict[int, list[bytes]]:
    """Return the fields of a protocol buffers message, except numbers."""
    fields: dict[int, list[bytes]] = {}
    rest = iter(message)
    while (key := _number(rest)) is not None:
        value = _number(rest) or 0
        if key % 8 == WITH_LENGTH:
            fields.setdefault(key >> 3, []).append(bytes(islice(rest, value)))
    return fields


def _number(rest: Iterator[int]) -> int | None:
    number = shift = 0
    for byte in rest:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
    return None


def _failure(code: int, reason: str, what: str) -> tuple[int, Json]:
    message = f"{what}: {reason}"
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}


def _merged(old: Json, patch: Json) -> Json:
    merged = dict(old)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = _merged(merged.get(name) or {}, value)
        else:
            merged[name] = value
    return merged

"""The part of a Kubernetes API that Helm 3 and 4 need, for secrets and configuration maps."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from threading import Thread
from typing import Any

from werkzeug import Request, Response
from werkzeug.serving import make_server

KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}
DISCOVERY = {
    "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": name,
                "kind": kind,
                "namespaced": True,
                "verbs": ["create", "get", "list", "patch", "update"],
            }
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

OBJECTS = re.compile(r"/api/v1/namespaces/([\w-]+)/(configmaps|secrets)(?:/([\w.-]+))?")
PROTOCOL_BUFFERS = b"k8s\x00"
WITH_LENGTH = 2

Json = dict[str, Any]


class Cluster:
    """The applied objects, as `objects[kind, namespace, name]`."""

    def __init__(self) -> None:
        self.url = ""
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

    @Request.application
    def answer(self, request: Request) -> Response:
        """Handle a request, and return its response."""
        status, result = self._answer(request)
        return Response(json.dumps(result), status, content_type="application/json")

    def _answer(self, request: Request) -> tuple[int, Json]:
        if request.path in DISCOVERY:
            return 200, DISCOVERY[request.path]
        found = OBJECTS.fullmatch(request.path)
        if found is None:
            return _failure(404, "NotFound")
        namespace, kind, name = found.groups()
        if name is None and request.method == "GET":
            # Helm 4 waits with a watch; it reads the list if that is refused
            if "watch" in request.args:
                return _failure(405, "MethodNotAllowed")
            return 200, self._list(kind, namespace, request)
        body: Json = {}
        if request.content_length:
            body = _read(request.get_data())
        key = (kind, namespace, name or body["metadata"]["name"])
        old = self.objects.get(key)
        if request.method == "POST" or (request.method == "PATCH" and old is None):
            # server-side apply, which Helm 4 uses, creates what is missing
            metadata = {**body["metadata"], "namespace": namespace}
            self.objects[key] = {
                "apiVersion": "v1",
                "kind": KINDS[kind],
                **body,
                "metadata": metadata,
            }
            return 201, self.objects[key]
        if old is None:
            return _failure(404, "NotFound")
        if body and request.method == "PUT":
            self.objects[key] = body
        elif body:
            self.objects[key] = _merged(old, body)
        return 200, self.objects[key]

    def _list(self, kind: str, namespace: str, request: Request) -> Json:
        selectors = request.args.get("labelSelector", "").split(",")
        wanted = dict(selector.split("=") for selector in selectors if selector)
        items = []
        for (of_kind, of_namespace, _), found in self.objects.items():
            if (of_kind, of_namespace) != (kind, namespace):
                continue
            labels = found["metadata"].get("labels", {})
            if wanted.items() <= labels.items():
                items.append(found)
        return {"kind": f"{KINDS[kind]}List", "apiVersion": "v1", "metadata": {}, "items": items}


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Serve a cluster on a loopback port until the `with` ends."""
    cluster = Cluster()
    server = make_server("127.0.0.1", 0, cluster.answer, threaded=True)
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()


def _read(body: bytes) -> Json:
    """Read an object from a client: JSON, or a secret as protocol buffers.

    Source: k8s.io/api, generated.proto.
    """
    if not body.startswith(PROTOCOL_BUFFERS):
        found: Json = json.loads(body)
        return found
    secret = _fields(_fields(body.removeprefix(PROTOCOL_BUFFERS))[2][0])
    metadata = _fields(secret[1][0])
    name = metadata[1][0].decode()
    labels = {label: value.decode() for label, value in _entries(metadata[11])}
    data = {key: base64.b64encode(value).decode() for key, value in _entries(secret[2])}
    kind = secret[3][0].decode()
    return {"metadata": {"name": name, "labels": labels}, "data": data, "type": kind}


def _entries(messages: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and values of a map."""
    for message in messages:
        entry = _fields(message)
        yield entry[1][0].decode(), entry[2][0]


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
    number = 0
    shift = 0
    for byte in rest:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
    return None


def _failure(code: int, reason: str) -> tuple[int, Json]:
    return code, {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": reason,
    }


def _merged(old: Json, patch: Json) -> Json:
    merged = dict(old)
    for name, new in patch.items():
        if isinstance(new, dict):
            merged[name] = _merged(old.get(name) or {}, new)
        else:
            merged[name] = new
    return merged

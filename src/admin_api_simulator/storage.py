"""The object storage behind the presigned links, which behaves like Amazon S3."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from admin_api_simulator.bundles import Bundle, BundleStore
from admin_api_simulator.clock import Clock
from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.responses import Response

RANGE = re.compile(r"bytes=(\d*)-(\d*)")
REFUSALS = {
    "unsigned": ("AccessDenied", "Access Denied"),
    "expired": ("AccessDenied", "Request has expired"),
    "mismatch": (
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided.",
    ),
}


class Storage:
    """Responds to requests to the storage's port."""

    def __init__(self, *, clock: Clock, signer: LinkSigner, bundles: BundleStore) -> None:
        self._clock = clock
        self._signer = signer
        self._bundles = bundles

    def operation_of(self, method: str, path: str) -> str:  # noqa: ARG002 - implements Service
        """Return `download`, whatever the request."""
        return "download"

    def domain_of(self, request: RecordedRequest) -> str | None:
        """Return the domain of the requested bundle's export."""
        job = self._bundles.job_at(request.path)
        return None if job is None else job.domain

    def respond(self, request: RecordedRequest) -> Response:
        """Serve a download, or reject it with S3's status and XML error."""
        refusal = self._link_refusal(request)
        if refusal is not None:
            return refusal
        bundle = self._bundles.find(request.path)
        if bundle is None:
            return _error(404, "NoSuchKey", "The specified key does not exist.")
        return self._content(request, bundle)

    def _content(self, request: RecordedRequest, bundle: Bundle) -> Response:
        size = len(bundle.content)
        validators = self._validators(bundle)
        headers = {"Content-Type": bundle.content_type, **validators}
        disposition = dict(parse_qsl(request.query)).get("response-content-disposition")
        if disposition:
            headers["Content-Disposition"] = disposition
        headers["Accept-Ranges"] = "bytes"
        span = None
        if _is_unchanged(request, validators):
            span = parse_range(request.headers.get("Range", ""), size)
        if span is None:
            return Response(headers=headers, body=bundle.content)
        start, end = span
        if start >= end:
            refusal = _error(416, "InvalidRange", "The requested range is not satisfiable")
            return replace(refusal, headers={**refusal.headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        return Response(status=206, headers=headers, body=memoryview(bundle.content)[start:end])

    def _validators(self, bundle: Bundle) -> dict[str, str]:
        return {
            "Last-Modified": _http_date(datetime.fromtimestamp(bundle.modified_at, UTC)),
            "Date": _http_date(self._clock.now()),
            "ETag": bundle.etag,
        }

    def _link_refusal(self, request: RecordedRequest) -> Response | None:
        if request.headers.get("Authorization") is not None:
            message = (
                "Only one auth mechanism allowed: "
                "a signature in the query, or the Authorization header"
            )
            return _error(400, "InvalidArgument", message)
        host = request.headers.get("Host", "")
        verdict = self._signer.check(
            method=request.method, host=host, path=request.path, query=request.query
        )
        if verdict == "valid":
            return None
        code, message = REFUSALS[verdict]
        return _error(403, code, message)


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the start and the end, excluded, of the bytes in a Range header.

    None: the header is ignored (RFC 9110, section 14.2).
    """
    match = RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        return size - min(int(last), size), size
    if not last:
        return int(first), size
    if int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, size)


def _is_unchanged(request: RecordedRequest, validators: Mapping[str, str]) -> bool:
    """Return whether If-Range allows a range (RFC 9110, section 13.1.5)."""
    given = request.headers.get("If-Range")
    return given is None or given in validators.values()


def _http_date(moment: datetime) -> str:
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


def _error(status: int, code: str, message: str) -> Response:
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    )
    headers = {"Content-Type": "application/xml", "x-amz-request-id": "SIMULATED0STORAGE"}
    return Response(status=status, headers=headers, body=body.encode())

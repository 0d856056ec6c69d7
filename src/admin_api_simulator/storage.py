"""The object storage behind the presigned links, which behaves like Amazon S3."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from admin_api_simulator.bundles import Bundle, BundleStore
from admin_api_simulator.clock import Clock, as_timestamp
from admin_api_simulator.content import part_of
from admin_api_simulator.links import LinkSigner, expiry_of
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.responses import Response

RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, kw_only=True)
class Span:
    """The bytes from `start` to before `end`; empty if a range cannot be satisfied."""

    start: int
    end: int


class Storage:
    """Responds to requests to the storage's port."""

    def __init__(
        self,
        *,
        clock: Clock,
        signer: LinkSigner,
        bundles: BundleStore,
    ) -> None:
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
            return _error(404, "NoSuchKey", "The specified key does not exist.", {"Key": request.path.lstrip("/")})
        return self._content(request, bundle)

    def _content(self, request: RecordedRequest, bundle: Bundle) -> Response:
        size = len(bundle.content)
        validators = self._validators(bundle)
        headers = {"Content-Type": bundle.content_type, **validators}
        disposition = dict(parse_qsl(request.query)).get("response-content-disposition")
        if disposition:
            headers["Content-Disposition"] = disposition
        headers["Accept-Ranges"] = "bytes"
        span = parse_range(request.headers.get("Range", ""), size) if _is_unchanged(request, validators) else None
        if span is None:
            return Response(headers=headers, body=bundle.content)
        if span.start >= span.end:
            details = {"RangeRequested": request.headers.get("Range", ""), "ActualObjectSize": str(size)}
            refusal = _error(416, "InvalidRange", "The requested range is not satisfiable", details)
            return replace(refusal, headers={**refusal.headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{size}"
        return Response(status=206, headers=headers, body=part_of(bundle.content, span.start, span.end))

    def _validators(self, bundle: Bundle) -> dict[str, str]:
        times = {"Last-Modified": datetime.fromtimestamp(bundle.modified_at, UTC), "Date": self._clock.now()}
        headers = {name: time.strftime("%a, %d %b %Y %H:%M:%S GMT") for name, time in times.items()}
        return headers | {"ETag": bundle.etag}

    def _link_refusal(self, request: RecordedRequest) -> Response | None:
        if request.headers.get("Authorization") is not None:
            message = (
                "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string "
                "parameter or the Authorization header should be specified"
            )
            return _error(400, "InvalidArgument", message, {"ArgumentName": "Authorization"})
        host = request.headers.get("Host", "")
        verdict = self._signer.check(method=request.method, host=host, path=request.path, query=request.query)
        if verdict == "unsigned":
            return _error(403, "AccessDenied", "Access Denied")
        if verdict == "expired":
            expired_at = expiry_of(request.query)
            times = {"Expires": as_timestamp(expired_at)} if expired_at else {}
            times["ServerTime"] = as_timestamp(self._clock.now())
            return _error(403, "AccessDenied", "Request has expired", times)
        if verdict == "mismatch":
            message = (
                "The request signature we calculated does not match the signature you provided. "
                "Check your key and signing method."
            )
            return _error(403, "SignatureDoesNotMatch", message)
        return None


def parse_range(header: str, size: int) -> Span | None:
    """Return the bytes that a Range header requests, or None to ignore it (RFC 9110, section 14.2)."""
    match = RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        return Span(start=size - min(int(last), size), end=size)
    start = int(first)
    if last and int(last) < start:
        return None
    return Span(start=start, end=min(int(last) + 1, size) if last else size)


def _is_unchanged(request: RecordedRequest, validators: Mapping[str, str]) -> bool:
    """Return whether If-Range allows a range (RFC 9110, section 13.1.5)."""
    given = request.headers.get("If-Range")
    return given is None or (given in validators.values())


def _error(status: int, code: str, message: str, details: Mapping[str, str] | None = None) -> Response:
    parts = {"Code": code, "Message": message, **(details or {}), "RequestId": "SIMULATED0STORAGE"}
    inner = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in parts.items())
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inner}</Error>'
    return Response(
        status=status,
        headers={"Content-Type": "application/xml", "x-amz-request-id": parts["RequestId"]},
        body=body.encode("utf-8", "replace"),
    )

"""Bundles.

What somebody reads about a bundle: while it is downloaded from the storage, unpacked, and written as Helm values. The causes and
remedies that many failures share, and the descriptions of network errors and of archives, are on other pages.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from docs_platform_action import errors
from docs_platform_action.bundle import transcoding
from docs_platform_action.errors import ActionError, NotFound, Unavailable
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Transport
from docs_platform_action.inputs.settings import DeliverySettings
from docs_platform_action.models import Bundle
from docs_platform_action.ownership import Owner
from tests.archives import SMALL_SITE, tar
from tests.unit.bundle import test_deliver as deliveries
from tests.unit.bundle import test_download as downloads
from tests.unit.bundle import test_storage as storages
from tests.unit.bundle import test_transcoding as contents
from tests.unit.bundle.test_deliver import BUNDLE, Delivery
from tests.unit.fakes import FakeTransport, Redirecting
from tests.wording.page import Sections

SHARED = {
    errors.DENIED_CAUSE,
    errors.DENIED_REMEDY,
    *(text for kind in ActionError.__subclasses__() for text in (kind.default_cause, kind.default_remedy)),
}


def sections() -> Sections:
    """Return what is read in each situation, each text once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcoding, "describe_content", lambda _start: "is something else")
        return {
            "Downloads that continue after a fault": _once(_of_download(name) for name in downloads.RESUMED),
            "Parts that are not of the bundle": _once(_of_part(name) for name in downloads.OTHER_PARTS),
            "Downloads that fail": _once((name, _lines(downloads.failed(name)[1])) for name in downloads.FAILED),
            "A bundle that is too large": {"The storage sends without end": _endless()},
            "Content that is not a bundle": _once(_of_content(name) for name in contents.NOT_BUNDLES),
            "Redirects of the storage": _once(_of_redirect(location) for location in (*storages.UNSAFE, "/a")),
            "Storages that are too slow": {
                "No response": _of_storage(storages.LateRedirect(61)),
                "A response that nearly stops": _of_storage(storages.SlowBundle(b"a", 60)),
            },
            "A redirect without an address": {
                "Of another region": _of_storage(
                    FakeTransport(301, b"<Error><Code>PermanentRedirect</Code><Message>An example.</Message></Error>")
                )
            },
            "Faults of the file system": _once(_of_fault(name) for name in deliveries.FAULTS),
            "Disks that are too small": {
                "An archive": _too_small(512, bundle="bundle"),
                "A site": _too_small(512, site="site"),
                "A site, on a disk that must keep some space": _too_small(
                    2 * len(deliveries.ARCHIVE) + 511, total=5120, site="site"
                ),
            },
            "Too few pages": {"`min-pages: 3`": _delivered(min_pages=3)},
            "Links that expire": {
                "Soon": _expired(3599),
                "Already": _expired(3600),
                "The API cannot be reached": _kept(Unavailable("an example of an error", details=("An example of a detail.",))),
                "The API refuses a new link": _kept(NotFound("an example of an error", remedy="An example of a remedy.")),
            },
            "Files that cannot be given to the workspace's owner": {"The file system refuses": _not_given()},
            "Changed compression": {
                "A name says gzip": _recompressed("bundle.tar.gz", {}),
                "The storage decompresses the bundle": _recompressed("bundle.tar", deliveries.STORED_AS_GZIP),
            },
            "Helm values": {
                "The link expires at a known time": _values(BUNDLE, version="2024-06-01"),
                "The API's time cannot be read": _values(Bundle(url=BUNDLE.url, expires_at="in an hour")),
                "No time, and no domain": _values(Bundle(url=BUNDLE.url), domain=None),
            },
        }


def _once(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first situation of each text."""
    situations: dict[str, str] = {}
    for situation, text in texts:
        if text:
            situations.setdefault(text, situation[0].upper() + situation[1:])
    return {situation: text for text, situation in situations.items()}


def _lines(error: ActionError) -> str:
    return "\n".join([error.summary, *error.details, *(text for text in (error.cause, error.remedy) if text not in SHARED)])


def _of_download(name: str) -> tuple[str, str]:
    fetch = downloads.Fetch(*downloads.RESUMED[name].answers)
    fetch()
    return name, _announced(fetch)


def _of_part(name: str) -> tuple[str, str]:
    headers, part = downloads.OTHER_PARTS[name]
    fetch = downloads.Fetch(downloads.half(headers), part)
    fetch()
    return name, _announced(fetch)


def _announced(fetch: downloads.Fetch) -> str:
    retried = [message for _, message, *_ in fetch.events.of("retrying") if not message.startswith("An example")]
    return "\n".join([*retried, *dict.fromkeys(text for (text,) in fetch.events.of("link_expired", "download_restarted"))])


def _endless() -> str:
    with mock.patch.object(downloads.download, "MAX_BUNDLE_BYTES", 50_000):
        return _lines(downloads.Fetch(downloads.Turn(announces=False)).failure())


def _of_content(name: str) -> tuple[str, str]:
    error = contents.refusal(name, content_type="text/html" if name == "a web page" else None)
    return name, f"{error.message}\n{error.advice['cause']}\n{error.advice['remedy']}"


def _of_redirect(location: str) -> tuple[str, str]:
    return repr(location), _of_storage(Redirecting(*[location] * 9))


def _of_storage(transport: Transport) -> str:
    try:
        storages.FakeStorage(transport).get("https://s.example.com/a")
    except ActionError as error:
        return _lines(error)
    except NetworkError as error:
        return error.message
    return "accepted"


def _with_delivery(act: Callable[[Delivery], str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return act(Delivery(Path(folder)))


def _of_fault(name: str) -> tuple[str, str]:
    return name, _with_delivery(lambda delivery: _lines(deliveries.failed(delivery, name)))


def _delivered(*, headers: Mapping[str, str] | None = None, min_pages: int | None = None, **names: str) -> str:
    """Return the failure of a delivery."""

    def act(delivery: Delivery) -> str:
        delivery.storage.headers = headers or {}
        return _lines(delivery.failure(replace(delivery.settings_for(**names or deliveries.ALL), min_pages=min_pages)))

    return _with_delivery(act)


def _too_small(free: int, *, total: int = 1, **names: str) -> str:
    with mock.patch("os.statvfs", deliveries.Disk(lambda _: free, total)):
        return _delivered(headers={"Content-Length": str(len(deliveries.ARCHIVE))}, **names)


def _expired(passed_seconds: float) -> str:
    def act(delivery: Delivery) -> str:
        delivery.clock.advance(passed_seconds)
        delivery(DeliverySettings())
        return "\n".join(text for (text,) in delivery.events.of("link_expired"))

    return _with_delivery(act)


def _kept(error: ActionError) -> str:
    def act(delivery: Delivery) -> str:
        delivery.storage.made = [error]
        delivery.clock.advance(3600)
        return _warning(delivery, DeliverySettings())

    return _with_delivery(act)


def _warning(delivery: Delivery, settings: DeliverySettings) -> str:
    delivery(settings)
    (warning,) = delivery.warnings
    return "\n".join(warning)


def _not_given() -> str:
    with pytest.MonkeyPatch.context() as patch:
        deliveries.refuses_to_chown(patch, owner=Owner(1001, 127))
        return _with_delivery(lambda delivery: _warning(delivery, delivery.settings_for(values="values.yaml")))


def _recompressed(name: str, headers: dict[str, str]) -> str:
    def act(delivery: Delivery) -> str:
        delivery.storage.archive, delivery.storage.headers = tar(SMALL_SITE), headers
        return _warning(delivery, delivery.settings_for(bundle=name))

    return _with_delivery(act)


def _values(bundle: Bundle, *, version: str | None = None, domain: str | None = "docs.example.com") -> str:
    def act(delivery: Delivery) -> str:
        delivery.job.domain = domain
        delivery(DeliverySettings(values=delivery.target("values.yaml"), version=version), bundle)
        return (delivery.workspace / "values.yaml").read_text("ascii").rstrip()

    return _with_delivery(act)

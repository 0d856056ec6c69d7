"""Bundles.

What somebody reads about a bundle: while it is downloaded from the storage, unpacked, and written as Helm values. The causes and
remedies that many failures share, and the descriptions of network errors and of archives, are on other pages.
"""

import errno
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from docs_platform_action import errors
from docs_platform_action.bundle import stream
from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.bundle.stream import ResumeError
from docs_platform_action.errors import ActionError, NotFound, Unavailable
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Transport
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from docs_platform_action.ownership import Owner
from tests.archives import Site, tar
from tests.unit.bundle import test_deliver as deliveries
from tests.unit.bundle import test_staging as stagings
from tests.unit.bundle import test_storage as storages
from tests.unit.bundle import test_stream as streams
from tests.unit.bundle.test_deliver import BUNDLE, FRESH, Delivery
from tests.unit.fakes import Redirecting
from tests.virtual_time import NOON
from tests.wording.page import Sections

SHARED = {
    errors.DENIED["cause"],
    errors.DENIED["remedy"],
    *(text for kind in ActionError.__subclasses__() for text in (kind.default_cause, kind.default_remedy)),
}


def sections() -> Sections:
    """Return what is read in each situation, each text once."""
    short = replace(FRESH, expires=NOON + timedelta(hours=1, seconds=4))
    unavailable = Unavailable("an example of an error", details=("An example of a detail.",))
    refused = NotFound("an example of an error", remedy="An example of a remedy.")
    with patch.object(stream, "describe_content", return_value="is something else"):
        content = _once((name, _lines(streams.refused(name))) for name in streams.NOT_BUNDLES)
    return {
        "Downloads that continue after a fault": _once((name, _retried(streams.continued(name))) for name in streams.CONTINUED),
        "Downloads that begin again": _once((name, streams.begun_again(name)[1].reason) for name in streams.BEGUN_AGAIN)
        | {"A new link to another address": _moved()},
        "Downloads that fail": _once((name, _lines(streams.failed(name)[1])) for name in streams.FAILED)
        | {"The storage sends without end": _lines(streams.endless()), "No attempt can be resumed": _with_delivery(_lost)},
        "Content that is not a bundle": content,
        "Redirects of the storage": _once((repr(to), _of_storage(Redirecting(*[to] * 9))) for to in (*storages.UNSAFE, "/a")),
        "Storages that are too slow": {"No response": _of_storage(storages.LateRedirect(61))},
        "Faults of the file system": {
            errno.errorcode.get(code or 0, "Unknown"): _lines(stagings.explained(code))
            for code in (errno.ENOSPC, errno.EACCES, errno.ENOENT, errno.EIO, None)
        }
        | {"About an entry of the archive": _lines(stagings.explained(errno.ENAMETOOLONG, b"a.html"))},
        "Files that cannot be written": _once((name, _with_delivery(_fault(name))) for name in deliveries.FAULTS),
        "No thread to unpack in": {"The machine allows no more": _with_delivery(_without_threads)},
        "Too few pages": {"`min-pages: 3`": _with_delivery(lambda delivery: _lines(delivery.failure(SITE, min_pages=3)))},
        "A site in a folder": {"`site-path: out/site`": _with_delivery(_in_folder)},
        "Links that expire": {
            "Soon": _with_delivery(lambda delivery: _warned(delivery, short, 3599)),
            "Already": _with_delivery(lambda delivery: _warned(delivery, short, 3600)),
            "The API cannot be reached": _with_delivery(lambda delivery: _warned(delivery, unavailable, 3600)),
            "The API refuses a new link": _with_delivery(lambda delivery: _warned(delivery, refused, 3600)),
        },
        "Files that cannot be given to the workspace's owner": {"The file system refuses": _with_delivery(_not_given)},
        "Helm values": {
            "The link expires at a known time": _values(BUNDLE, version="2024-06-01"),
            "The link has expired": _values(replace(BUNDLE, expires=NOON)),
            "The API's time cannot be read": _values(Bundle(url=BUNDLE.url, expires_at="in an hour")),
            "No time, and no domain": _values(Bundle(url=BUNDLE.url), domain=None),
        },
    }


SITE = {"site_path": "out/site"}


def _once(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first situation of each text."""
    situations: dict[str, str] = {}
    for situation, text in texts:
        if text:
            situations.setdefault(text, situation)
    return {situation: text for text, situation in situations.items()}


def _lines(error: ActionError) -> str:
    return "\n".join([error.summary, *error.details, *(text for text in (error.cause, error.remedy) if text not in SHARED)])


def _retried(fetch: streams.Fetch) -> str:
    return "\n".join(message for _, message, *_ in fetch.events.of("retrying") if not message.startswith("An example"))


def _moved() -> str:
    fetch = streams.Fetch(streams.half(), streams.Answer(status=404))
    fetch.storage.place = 2
    with pytest.raises(ResumeError) as caught:
        fetch()
    return caught.value.reason


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


def _lost(delivery: Delivery) -> str:
    delivery.storage.lost = 3
    return _lines(delivery.failure(SITE))


def _fault(name: str) -> Callable[[Delivery], str]:
    return lambda delivery: deliveries.failed(delivery, name).summary


def _without_threads(delivery: Delivery) -> str:
    with patch.object(threading.Thread, "start", side_effect=RuntimeError):
        return delivery.failure(SITE).summary


def _in_folder(delivery: Delivery) -> str:
    delivery.storage.archives = [tar(Site(files={"docs.example.com/index.html": b""}))]
    delivery(SITE)
    return _warning(delivery)


def _warned(delivery: Delivery, made: Bundle | ActionError, passed_seconds: float) -> str:
    delivery.storage.made = [made]
    delivery.clock.advance(passed_seconds)
    delivery({})
    ((reason,),) = delivery.events.of("link_expired")
    return f"{reason}\n{_warning(delivery)}"


def _warning(delivery: Delivery) -> str:
    (warning,) = delivery.warnings
    return "\n".join(warning)


def _not_given(delivery: Delivery) -> str:
    with pytest.MonkeyPatch.context() as monkeypatch:
        deliveries.refuses_to_chown(monkeypatch, owner=Owner(1001, 127))
        delivery(SITE)
    return _warning(delivery)


def _values(bundle: Bundle, *, version: str | None = None, domain: str | None = "docs.example.com") -> str:
    job = Job(mode=Mode.EXPORT, domain=domain, job_id="se_1", link=bundle)
    return values_text(job, version, NOON).rstrip()

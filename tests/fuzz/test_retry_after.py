"""`Retry-After`: it is read as in RFC 9110, and no value makes a run wait longer than allowed."""

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.api.admin_api import AdminApi
from docs_platform_action.api.client import ApiClient
from docs_platform_action.errors import (
    BadResponse,
    Forbidden,
    NotFound,
    Rejected,
    StartUnconfirmed,
    Unauthorized,
    Unavailable,
)
from docs_platform_action.http.pacing import GAP_SECONDS, Pacer
from docs_platform_action.http.retry import read_retry_after
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_text
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, FakeTransport, RecordedEvents, http_client
from tests.virtual_platform import Sent
from tests.virtual_time import NOON, VirtualClock

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def imf_fixdate(moment: datetime) -> str:
    """Return the form that servers must send (RFC 9110, section 5.6.7)."""
    day, month = DAYS[moment.weekday()][:3], MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02} {month} {moment.year:04} {clock_time(moment)} GMT"


def rfc850_date(moment: datetime) -> str:
    """Return the first obsolete form, which recipients must read too."""
    day, month = DAYS[moment.weekday()], MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02}-{month}-{moment.year % 100:02} {clock_time(moment)} GMT"


def asctime_date(moment: datetime) -> str:
    """Return the second obsolete form."""
    day, month = DAYS[moment.weekday()][:3], MONTHS[moment.month - 1]
    return f"{day} {month} {moment.day:2} {clock_time(moment)} {moment.year:04}"


def clock_time(moment: datetime) -> str:
    return f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}"


moments = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)).map(lambda moment: moment.replace(microsecond=0, tzinfo=UTC))  # noqa: DTZ001  # the zone comes on top
forms = st.sampled_from([imf_fixdate, rfc850_date, asctime_date])
dates = st.builds(lambda form, moment: form(moment), forms, moments)
values = st.one_of(
    st.integers(0, 10**6).map(str),
    dates,
    mutated_text(st.one_of(dates, st.integers(0, 10**12).map(str))),
    st.sampled_from(HOSTILE_TEXTS),
    st.text(max_size=40),
    st.text("0123456789 :,+-MonMayGMT/.", max_size=32),
)


def header_bytes(text: str) -> str:
    """Return a text as `http.client` decodes it, as Latin-1."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


@fuzz("Retry-After", value=values, date=st.one_of(st.just(""), dates, values), now=moments)
@example("Mon, 04 May 2026 12:00:30 +9999999999", "", NOON)
@example("Mon, 04 May 0000 12:00:30 -2359", "Mon, 04 May 9999 12:00:30 +2359", NOON)
@example("Mon, 04 May 2026 12:00:30 +99999999999999999", "", NOON)
@example("0 0 0 0", "0 0 0 0", NOON)
@example("Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 0001 00:00:00 +2359", NOON)
def test_any_headers_give_a_pause_or_none(value: str, date: str, now: datetime) -> None:
    for asked, sent in ((value, date), (header_bytes(value), header_bytes(date))):
        seconds = read_retry_after({"Retry-After": asked, "Date": sent}, now)

        assert seconds is None or (isinstance(seconds, float) and math.isfinite(seconds) and seconds >= 0)


@fuzz(
    "Retry-After as RFC 9110 has it",
    asked=st.one_of(st.integers(0, 999_999_999), st.tuples(moments, forms)),
    answered=st.none() | st.tuples(moments, forms),
    now=moments,
    padding=st.sampled_from(["", " ", "\t "]),
)
def test_a_standard_value_is_read_correctly(
    asked: int | tuple[datetime, Any], answered: tuple[datetime, Any] | None, now: datetime, padding: str
) -> None:
    headers = {"Date": answered[1](answered[0])} if answered else {}
    since = answered[0] if answered else now
    if isinstance(asked, int):
        value, expected = str(asked), float(asked)
    else:
        value, expected = asked[1](asked[0]), max((asked[0] - since).total_seconds(), 0.0)

    assert read_retry_after({**headers, "Retry-After": f"{padding}{value}{padding}"}, now) == expected


class Responding(FakeTransport):
    """Returns one response after another; the last repeats."""

    def __init__(self, answers: list[tuple[int, bytes, Mapping[str, str]]]) -> None:
        super().__init__()
        self._answers = list(answers)
        self.before = self._turn

    def _turn(self, sent: Sent) -> None:
        sent.exchange.begin()
        status, body, headers = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        self._status, self._body, self._headers = status, body, dict(headers)


statuses = st.one_of(st.sampled_from([200, 202, 404, 408, 409, 425, 429, 500, 502, 503, 503, 504]), st.integers(100, 999))
answer_bodies = st.sampled_from(
    [
        *(b"", b"{}", b"[]", b"<html>", b"\xff", b'{"error": "wait"}'),
        *(json.dumps({"status": status, "jobId": "se_1"}).encode() for status in ("running", "completed", "failed")),
        json.dumps({"bundleUrl": "https://s.example.com/b", "expiresAt": "2026-05-04T13:00:00Z"}).encode(),
    ]
)
answers = st.tuples(
    statuses,
    answer_bodies,
    st.fixed_dictionaries({}, optional={"Retry-After": values, "Date": values, "Location": st.sampled_from(HOSTILE_TEXTS)}),
).map(lambda answer: (answer[0], answer[1], {name: header_bytes(text) for name, text in answer[2].items()}))


@fuzz(
    "answers to the transport",
    script=st.lists(answers, min_size=1, max_size=6),
    operation=st.sampled_from(["start", "read", "bundle", "agent"]),
    tolerance=st.floats(0.001, 150),
    time_left=st.floats(0, 100),
    part=st.floats(0.3, 1),
)
def test_no_server_makes_a_call_wait_longer_than_allowed(
    script: list[tuple[int, bytes, Mapping[str, str]]], operation: str, tolerance: float, time_left: float, part: float
) -> None:
    clock = VirtualClock()
    job = Job(mode=Mode.EXPORT, domain="d.example.com", project_id="p", job_id="se_1", started_at=clock.monotonic())
    api = AdminApi(
        client=ApiClient(http_client(Responding(script), clock=clock), base_url=BASE_URL, key=ADMIN_KEY),
        pacer=Pacer(clock),
        clock=clock,
        outage_tolerance_seconds=tolerance,
        events=RecordedEvents(),
        jobs=[job],
        jitter=lambda ceiling: ceiling * part,
    )
    deadline = clock.monotonic() + time_left
    operations: Mapping[str, Callable[[], object]] = {
        "start": lambda: api.start_export(job, {}),
        "read": lambda: api.read_export(job, deadline=deadline),
        "bundle": lambda: api.make_bundle(job),
        "agent": lambda: api.read_agent_job(job, deadline=deadline),
    }

    with contextlib.suppress(Unauthorized, Forbidden, NotFound, Rejected, BadResponse, StartUnconfirmed, Unavailable):
        operations[operation]()

    allowed = min(tolerance, time_left) if operation in {"read", "agent"} else tolerance
    assert clock.elapsed <= allowed + GAP_SECONDS + 1e-3

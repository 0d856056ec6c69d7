"""What has to become of each cell, as rules drawn from the interface; each says why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.reliability.faults import Fault, Nature
from tests.reliability.world import Operation

OK: Final = "ok"

TIMES: Final[tuple[int | None, ...]] = (1, 3, None)
"""How often a fault comes; None is for ever."""

Ends = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How cells end when the fault comes once, three times and for ever, `OK` or a `failureReason`; and why."""

    ends: Ends
    why: str


def _passes(reason: str, why: str) -> Rule:
    return Rule(ends=(OK, OK, reason), why=why)


def _final(reason: str, why: str) -> Rule:
    return Rule(ends=(reason, reason, reason), why=why)


_STORAGE: Final = "download-failed"


def _lasting(operation: Operation) -> str:
    return _STORAGE if operation.is_download else "unavailable"


def _unreached(_fault: Fault, operation: Operation) -> Rule:
    return _passes(_lasting(operation), "Nothing was sent, so it is sent again, a start too, until `outage-tolerance` is over.")


def _untrusted(_fault: Fault, operation: Operation) -> Rule:
    return _final(_lasting(operation), "Waiting mends no certificate: it fails at once, and the message names `ca-bundle`.")


def _lost(fault: Fault, operation: Operation) -> Rule:
    if operation is Operation.START:
        return _final("start-unconfirmed", "The platform may have started the export, so the request is not sent again.")
    if operation.is_download and fault.name == "gzip that is none":
        return _harmless(fault, operation)
    if operation.is_download and fault.name == "`Content-Length` too long":
        return Rule(ends=(OK, OK, OK), why="Asked for more, the storage itself says that all is there, and has to say so twice.")
    return _passes(_lasting(operation), "Asked again, a download where it broke off, until `outage-tolerance` is over.")


def _harmless(_fault: Fault, operation: Operation) -> Rule:
    del operation
    return Rule(ends=(OK, OK, OK), why="All that the run needs is there.")


def _harmless_json(fault: Fault, operation: Operation) -> Rule:
    if operation.is_download and fault.group == "Bodies":
        return _foreign(fault, operation)
    return _harmless(fault, operation)


def _endless(fault: Fault, operation: Operation) -> Rule:
    if operation.is_download:
        return _final(_STORAGE, "An answer that tells no length ends at 50 GiB, here at 4 MiB, and is not fetched again.")
    return _lost(fault, operation)


def _too_short(fault: Fault, operation: Operation) -> Rule:
    if operation is Operation.FIRST_BYTE:
        return _final(
            "invalid-bundle",
            "Only the storage told the length: the archive's own checks show it, where `site-path` is set.",
        )
    if operation is Operation.MIDDLE:
        return Rule(
            ends=(OK, "invalid-bundle", "invalid-bundle"),
            why="A part whose length contradicts its range is dropped; a whole that is too short shows in the archive's checks.",
        )
    return _foreign(fault, operation)


def _redirect(_fault: Fault, operation: Operation) -> Rule:
    if operation.is_download:
        return _passes(_STORAGE, "A storage may redirect to https, without key or cookie, five times at most.")
    return _final("bad-response", "The key goes to no other address: the redirect is not followed, the message names its host.")


def _odd_redirect(fault: Fault, operation: Operation) -> Rule:
    if operation.is_download:
        return _passes(_STORAGE, "What is no redirect to follow is no bundle either: asked again.")
    return _redirect(fault, operation)


_API_STATUSES: Final = {401: "unauthorized", 403: "forbidden", 404: "not-found"}


def _refused(fault: Fault, operation: Operation) -> Rule:
    assert fault.status is not None
    if operation.is_download:
        return _refused_by_storage(fault.status, operation)
    if fault.status == 404 and operation in {Operation.READ_EXPORT, Operation.BUNDLE}:
        return _passes("not-found", "A job that this run started may not be known for 30 s.")
    if fault.status == 409 and operation is Operation.BUNDLE:
        return _passes("unavailable", "The platform has not finished packing.")
    return _final(
        _API_STATUSES.get(fault.status, "rejected"), "A refusal that waiting cannot mend; it carries the API's own text."
    )


def _refused_by_storage(status: int, operation: Operation) -> Rule:
    if status in {400, 401, 403, 404, 410}:
        return _passes(_STORAGE, "A link that died is made afresh through the API, the first time at once, then after pauses.")
    if operation is Operation.MIDDLE:
        return Rule(
            ends=(OK, _STORAGE, _STORAGE),
            why="It may be the resuming that is refused, so the download starts over; then the refusal is final.",
        )
    return _final(_STORAGE, "A refusal that neither waiting nor a fresh link can mend.")


def _turned_away(_fault: Fault, operation: Operation) -> Rule:
    return _passes(
        _lasting(operation), "It was certainly not processed: sent again, a start too, no sooner than `Retry-After` asks."
    )


def _turned_away_too_long(_fault: Fault, operation: Operation) -> Rule:
    end = _lasting(operation)
    return Rule(ends=(OK, end, end), why="Longer than `outage-tolerance` is not waited: one last try comes at its end.")


def _foreign(_fault: Fault, operation: Operation) -> Rule:
    if operation is Operation.START:
        return _final(
            "bad-response", "The platform answered, but not with a job; it may have started one, so it is not asked again."
        )
    if operation.is_download:
        return _passes(_STORAGE, "Something else than the storage answers, a login page or a gateway: asked again.")
    return _passes("unavailable", "Something else than the API answers, a login page or a gateway: asked again.")


def _too_large(fault: Fault, operation: Operation) -> Rule:
    return _foreign(fault, operation) if operation.is_download else _lost(fault, operation)


def _unusable_field(fault: Fault, operation: Operation) -> Rule:
    if operation.is_download:
        return _foreign(fault, operation)
    if operation in {Operation.START, Operation.BUNDLE}:
        return _final("bad-response", "The one field that matters cannot be used, and to ask again would not change it.")
    return _passes("timeout", "An unknown status is a job that still runs.")


_RULES: Final[dict[Nature, Callable[[Fault, Operation], Rule]]] = {
    Nature.UNREACHED: _unreached,
    Nature.UNTRUSTED: _untrusted,
    Nature.LOST: _lost,
    Nature.HARMLESS: _harmless_json,
    Nature.ENDLESS: _endless,
    Nature.DRIPPING: _lost,
    Nature.TOO_SHORT: _too_short,
    Nature.REDIRECT: _redirect,
    Nature.ODD_REDIRECT: _odd_redirect,
    Nature.REFUSED: _refused,
    Nature.TURNED_AWAY: _turned_away,
    Nature.TURNED_AWAY_TOO_LONG: _turned_away_too_long,
    Nature.FOREIGN: _foreign,
    Nature.TOO_LARGE: _too_large,
    Nature.UNUSABLE_FIELD: _unusable_field,
}


def rule_for(fault: Fault, operation: Operation) -> Rule:
    """Tell how the cells of a fault and an operation have to end."""
    return _RULES[fault.nature](fault, operation)

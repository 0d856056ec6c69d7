"""The expected result of each cell with its reason, as rules from the interface."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.faults import Nature, Operation, Row

OK: Final = "ok"

TIMES: Final[tuple[int | None, ...]] = (1, 3, None)
"""How often a fault occurs; None is forever."""

Ends = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The results if the fault occurs once, three times and forever, `OK` or a `failureReason`, and the reason."""

    ends: Ends
    why: str


def _temporary(reason: str, why: str) -> Rule:
    return Rule(ends=(OK, OK, reason), why=why)


def _final(reason: str, why: str) -> Rule:
    return Rule(ends=(reason, reason, reason), why=why)


_STORAGE: Final = "download-failed"


def _reason_of_outage(operation: Operation) -> str:
    return _STORAGE if operation.is_download else "unavailable"


def _unreached(_fault: Row, operation: Operation) -> Rule:
    return _temporary(
        _reason_of_outage(operation), "No request was sent, so it is retried, also a start, until `outage-tolerance` is over."
    )


def _untrusted(_fault: Row, operation: Operation) -> Rule:
    return _final(
        _reason_of_outage(operation),
        "Retrying cannot fix a certificate: the run fails at once, and the message names `ca-bundle`.",
    )


def _lost(fault: Row, operation: Operation) -> Rule:
    if operation is Operation.START:
        return _final("start-unconfirmed", "The platform may have started the export, so the request is not sent again.")
    if operation.is_download and fault.name == "invalid gzip":
        return _harmless(fault, operation)
    if operation is Operation.FIRST_BYTE and fault.name == "`Content-Length` too long":
        return _temporary(_STORAGE, "The storage refuses the request for the rest, so the download begins again, at most twice.")
    if operation is Operation.MIDDLE and fault.name == "`Content-Length` too long":
        return _harmless(fault, operation)
    return _temporary(
        _reason_of_outage(operation), "The request is retried, and a download resumed, until `outage-tolerance` is over."
    )


def _harmless(_fault: Row, operation: Operation) -> Rule:
    del operation
    return Rule(ends=(OK, OK, OK), why="The response contains everything that the run needs.")


def _harmless_json(fault: Row, operation: Operation) -> Rule:
    if operation.is_download and fault.group == "Bodies":
        return _foreign(fault, operation)
    return _harmless(fault, operation)


def _endless(fault: Row, operation: Operation) -> Rule:
    if operation.is_download:
        first = OK if operation is Operation.MIDDLE else _STORAGE
        why = "A bundle without a length fails at 50 GiB (here at 4 MiB); in place of the rest, it begins the download again."
        return Rule(ends=(first, _STORAGE, _STORAGE), why=why)
    return _lost(fault, operation)


def _too_short(fault: Row, operation: Operation) -> Rule:
    if operation is Operation.FIRST_BYTE:
        return _final(
            "invalid-bundle",
            "Only the storage reports the length, so the archive's checksums detect the error, if `site-path` is set.",
        )
    if operation is Operation.MIDDLE:
        return _temporary(_STORAGE, "What a part lacks is requested again; 20 bytes are too few to end the outage.")
    return _foreign(fault, operation)


def _redirect(_fault: Row, operation: Operation) -> Rule:
    if operation.is_download:
        return _temporary(_STORAGE, "A storage may redirect to https at most five times; the request has no key and no cookie.")
    return _final(
        "bad-response", "The key is not sent to another address: the redirect is not followed, and the message names its host."
    )


def _odd_redirect(fault: Row, operation: Operation) -> Rule:
    if operation.is_download:
        return _temporary(_STORAGE, "The response is neither a valid redirect nor a bundle, so the request is retried.")
    return _redirect(fault, operation)


_API_STATUSES: Final = {401: "unauthorized", 403: "forbidden", 404: "not-found"}


def _refused(fault: Row, operation: Operation) -> Rule:
    assert fault.status is not None
    if operation.is_download:
        return _refused_by_storage(fault.status, operation)
    if fault.status == 404 and operation is not Operation.START:
        return _temporary("not-found", "A job may be unknown for 30 s after this run has started it, or begun to wait for it.")
    if fault.status == 409 and operation is Operation.BUNDLE:
        return _temporary("unavailable", "The platform has not finished packing.")
    return _final(
        _API_STATUSES.get(fault.status, "rejected"), "Retrying cannot fix the error; the message contains the API's text."
    )


def _refused_by_storage(status: int, operation: Operation) -> Rule:
    if status in {400, 401, 403, 404, 410}:
        return _temporary(_STORAGE, "The API makes a new link after a pause.")
    if operation is Operation.MIDDLE:
        return Rule(
            ends=(OK, _STORAGE, _STORAGE),
            why="The storage may reject only the range, so the download starts over; a second rejection is final.",
        )
    return _final(_STORAGE, "Neither retrying nor a new link can fix the error.")


def _not_processed(_fault: Row, operation: Operation) -> Rule:
    return _temporary(
        _reason_of_outage(operation),
        "The request was certainly not processed, so it is retried after `Retry-After`, also a start.",
    )


def _retry_after_too_long(_fault: Row, operation: Operation) -> Rule:
    end = _reason_of_outage(operation)
    return Rule(
        ends=(OK, end, end), why="The run does not wait longer than `outage-tolerance`, and makes one last attempt at its end."
    )


def _foreign(_fault: Row, operation: Operation) -> Rule:
    if operation is Operation.START:
        return _final("start-unconfirmed", "The platform may have started the export, so the request is not sent again.")
    if operation.is_download:
        return _temporary(
            _STORAGE,
            "The response is not the storage's, but that of a login page or a gateway, for example, so the request is retried.",
        )
    return _temporary(
        "unavailable", "Something other than the API responded, such as a login page or a gateway, so the request is retried."
    )


def _login_page(fault: Row, operation: Operation) -> Rule:
    if operation is Operation.START:
        return _final("bad-response", "A web page before the API's first successful response means that `base-url` is wrong.")
    return _foreign(fault, operation)


def _blocked(fault: Row, operation: Operation) -> Rule:
    if operation is Operation.START or operation.is_download:
        return _refused(fault, operation)
    return _temporary("unavailable", "A web page after the API's first successful response is not the API's own answer.")


def _too_large(fault: Row, operation: Operation) -> Rule:
    return _foreign(fault, operation) if operation.is_download else _lost(fault, operation)


def _missing_field(fault: Row, operation: Operation) -> Rule:
    is_final = operation in {Operation.START, Operation.BUNDLE}
    return _unusable_field(fault, operation) if is_final else _foreign(fault, operation)


def _unusable_field(fault: Row, operation: Operation) -> Rule:
    if operation.is_download:
        return _foreign(fault, operation)
    if operation in {Operation.START, Operation.BUNDLE}:
        return _final("bad-response", "The required field is unusable, and retrying would not change it.")
    return _temporary("timeout", "A job with an unknown status counts as running.")


_RULES: Final[dict[Nature, Callable[[Row, Operation], Rule]]] = {
    Nature.UNREACHED: _unreached,
    Nature.UNTRUSTED: _untrusted,
    Nature.LOST: _lost,
    Nature.HARMLESS: _harmless_json,
    Nature.ENDLESS: _endless,
    Nature.TOO_SHORT: _too_short,
    Nature.REDIRECT: _redirect,
    Nature.ODD_REDIRECT: _odd_redirect,
    Nature.REFUSED: _refused,
    Nature.NOT_PROCESSED: _not_processed,
    Nature.RETRY_AFTER_TOO_LONG: _retry_after_too_long,
    Nature.FOREIGN: _foreign,
    Nature.LOGIN_PAGE: _login_page,
    Nature.BLOCKED: _blocked,
    Nature.TOO_LARGE: _too_large,
    Nature.MISSING_FIELD: _missing_field,
    Nature.UNUSABLE_FIELD: _unusable_field,
}


def rule_for(fault: Row, operation: Operation) -> Rule:
    """Return the expected results for a fault and an operation."""
    return _RULES[fault.nature](fault, operation)

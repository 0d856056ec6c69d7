"""What each input may hold: one function for each form. All raise `ValueError` with what is wrong."""

import json
import re
import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import idna

from ..models import MODES, is_job_id, is_loopback
from .paths import quoted, read_path, reason_of

MAX_DURATION_SECONDS: Final = 35 * 24 * 3600.0
"""GitHub cancels a workflow run after 35 days (source: GitHub's documentation of usage limits)."""

MAX_CA_BUNDLE_BYTES: Final = 8 * 1024 * 1024

_PEM_BEGINNING: Final = "-----BEGIN CERTIFICATE-----"
_PEM_END: Final = "-----END CERTIFICATE-----"

MAX_PARALLEL: Final = 100
MAX_PAGES: Final = 999_999_999

MAX_ERRORS_PER_INPUT: Final = 20
"""Maximum mistakes of one input that an error names; the others are counted."""


def mode(value: str) -> str:
    """Return the name of a mode. Raises `ValueError`."""
    if value not in MODES:
        raise ValueError(f"unknown mode {quoted(value)}; use `export` or `agent`")
    return value


def boolean(value: str) -> bool:
    """Read `true` or `false`. Raises `ValueError`."""
    if value not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        raise ValueError(f"write true or false, not {quoted(value)}")
    return value.lower() == "true"


def duration(value: str) -> float:
    """Read a duration such as `1h30m`, in seconds. Raises `ValueError`."""
    number = r"([0-9]+(?:\.[0-9]+)?)"
    with_unit = f"{value}s" if re.fullmatch(number, value) else value
    amounts = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?(?:{number}ms)?", with_unit)
    if amounts is None:
        form = "a number with a unit, such as 500ms, 30s, 15m or 1h30m; a bare number is seconds"
        raise ValueError(f"{quoted(value)} is not a duration: write {form}")
    units = zip(amounts.groups(default="0"), (3600.0, 60.0, 1.0, 0.001), strict=True)
    seconds = sum(float(amount) * unit for amount, unit in units)
    if seconds <= 0:
        raise ValueError(f"{quoted(value)} must be greater than zero")
    if seconds > MAX_DURATION_SECONDS:
        raise ValueError(f"{quoted(value)} is longer than a workflow run can last, 35 days")
    return seconds


def base_url(value: str) -> str:
    """Return the API's address without a slash at its end. Raises `ValueError`."""
    if re.search(r"[\s\x00-\x20\x7f]", value) or not value.isascii():
        raise ValueError("holds white space, control or non-ASCII characters; write the host name in its ASCII form")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not an address; write it like https://api.example.com") from None
    if parts.scheme not in {"https", "http"} or not host:
        raise ValueError("is not an https address; write it like https://api.example.com")
    if "@" in parts.netloc or "?" in value or "#" in value:
        raise ValueError("holds a user name, a query or a fragment; give scheme, host and, if there is one, a path only")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("is http, which would show the key to the network; use https (http is only for loopback hosts)")
    if not _HOST.fullmatch(parts.netloc) and not _IPV6_HOST.fullmatch(parts.netloc):
        raise ValueError("holds a host or port that cannot be used")
    path_is_plain = re.fullmatch(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*", parts.path)  # RFC 3986, section 3.3
    if port == 0 or not path_is_plain or {"..", "."} & set(parts.path.split("/")):
        raise ValueError("holds a port or path that cannot be used")
    return value.rstrip("/")


def admin_key(value: str) -> str:
    """Return the key. Raises `ValueError`."""
    if re.search(r"[^\x21-\x7e]", value):
        hint = "; give only the key, without `Bearer`" if value.lower().startswith("bearer ") else ""
        raise ValueError(f"contains white space, control or non-ASCII characters, so it cannot be a key{hint}")
    return value


def whole_number(value: str, most: int) -> int:
    """Read a number from 1 to `most`. Raises `ValueError`."""
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= most:
        raise ValueError(f"write a whole number from 1 to {most:,}, not {quoted(value)}")
    return int(value)


def identifier(value: str) -> str:
    """Return an identifier on one line. Raises `ValueError`."""
    if not is_job_id(value):
        raise ValueError("holds control characters or more than one line")
    return value


_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DOMAIN: Final = re.compile(rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?")
_HOST: Final = re.compile(rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*\.?(?::[0-9]{{1,5}})?")
"""As it may stand in an address: a full stop at its end is fine there."""
_IPV6_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")
"""Only `urlsplit` sees whether it is an address; it also accepts a zone, and other names in brackets."""
_JOINERS: Final = "\u200c\u200d"
"""Invisible characters that some scripts need within a word (source: RFC 5892, appendix A)."""


def domains(value: str) -> list[str]:
    """Read one domain a line. Raises `ValueError`."""
    lines = lines_of(value)
    if not lines:
        raise ValueError("holds no domain")
    wrong = [problem for problem in map(_domain_problem, lines) if problem]
    hosts = Counter(_spelled_alike(line) for line in lines if _is_domain(line))
    wrong += [f"{quoted(host)} is listed twice" for host, count in hosts.items() if count > 1]
    if wrong:
        more = f"; and {len(wrong) - MAX_ERRORS_PER_INPUT} more" if len(wrong) > MAX_ERRORS_PER_INPUT else ""
        raise ValueError("; ".join(wrong[:MAX_ERRORS_PER_INPUT]) + more)
    return lines


def lines_of(value: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    lines = (line.strip().strip("\ufeff").strip() for line in value.splitlines())
    return [line for line in lines if line]


def _spelled_alike(domain: str) -> str:
    host, _, port = domain.lower().partition(":")
    return f"{host}:{int(port)}" if port else host


def _domain_problem(line: str) -> str | None:
    if _is_domain(line):
        return None
    # what stands before an @ may be a password
    given = quoted("/".join(part if "@" not in part else f"…@{part.rpartition('@')[2]}" for part in line.split("/")))
    if len(listed := re.split(r"\s*[,;]\s*|\s+", line.strip(",; "))) > 1 and all(
        "." in one and _is_domain(one) for one in listed
    ):
        return f"{given} are {len(listed)} domains; write one per line"
    bare = re.sub(r"^-\s+|^[A-Za-z][A-Za-z0-9+.-]*://", "", line).partition("/")[0]
    bare = re.split(r"[?#\\]", bare)[0].rpartition("@")[2].strip().rstrip(".")
    seen = "".join(character for character in bare if character.isprintable() and not character.isspace())
    bare = seen if seen.isascii() else _ascii_host(bare)
    meant = f"; write {bare}" if _is_domain(bare) else ", such as docs.example.com"
    hidden = "holds an invisible character, so it " if not line.isprintable() else ""
    return f"{given} {hidden}is not a bare host name{meant}"


def _ascii_host(text: str) -> str:
    """Return the ASCII form of a host name, or an empty text if it has none.

    IDNA 2008, which browsers and registries use; Python's own codec is IDNA 2003, where `ß` becomes `ss`, another name.
    """
    visible = "".join(character for character in text if character.isprintable() or character in _JOINERS)
    host, colon, port = visible.replace(" ", "").partition(":")
    try:
        labels = idna.uts46_remap(host, std3_rules=False).rstrip(".").split(".")
        return ".".join(label if label.isascii() else idna.alabel(label).decode() for label in labels) + colon + port
    except idna.IDNAError:
        return ""


def _is_domain(text: str) -> bool:
    return bool(_DOMAIN.fullmatch(text)) and 0 < int(text.partition(":")[2] or "1") < 65536


def start_options(value: str) -> Mapping[str, object]:
    """Read a JSON object of further fields of the start request. Raises `ValueError`."""
    form = 'write a JSON object of further fields, such as {"version": "v2"}'
    try:
        options = json.loads(value, parse_constant=int)  # `int` refuses NaN and Infinity, which are not JSON
        json.dumps(options, allow_nan=False)  # a number such as 1e999 is read as infinite, which cannot be sent
    except (ValueError, RecursionError):
        raise ValueError(f"is not valid JSON: {form}") from None
    if not isinstance(options, dict):
        raise ValueError(f"is valid JSON, but not an object: {form}")
    if "domain" in options:
        raise ValueError("holds `domain`, which is a separate input")
    return options


def certificates(value: str, roots: Sequence[Path]) -> str:
    """Read the certificates of a PEM file, whose path is inside one of the `roots`. Raises `ValueError`."""
    path = read_path(value, roots).path
    try:
        if not path.is_file():
            raise ValueError("there is no such file" if not path.exists() else "it is not a regular file")
        with path.open("rb") as file:
            text = file.read(MAX_CA_BUNDLE_BYTES).decode("ascii", errors="ignore")
    except OSError as error:
        raise ValueError(f"the file cannot be read ({reason_of(error)})") from None
    ended = "".join(text.rpartition(_PEM_END)[:2])  # beginnings behind the last end would each have the rest searched for one
    pem = "\n".join(re.findall(f"{_PEM_BEGINNING}.*?{_PEM_END}", ended, re.DOTALL)) + "\n"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        convert = "convert one with `openssl x509 -in FILE -out ca.pem`"
        raise ValueError(f"the file holds no readable PEM certificates; {convert}") from None
    return pem

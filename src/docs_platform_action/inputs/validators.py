"""Readers of the input formats. Every one raises `ValueError`, whose text completes "Invalid input `x`: …"."""

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
from .paths import join_errors, quoted, read_path, reason_of

MAX_DURATION_SECONDS: Final = 35 * 24 * 3600.0
"""GitHub cancels a workflow run after 35 days (source: GitHub's documentation of usage limits)."""

MAX_CA_BUNDLE_BYTES: Final = 8 * 1024 * 1024
MAX_PARALLEL: Final = 100
MAX_PAGES: Final = 999_999_999
MAX_ERRORS_PER_INPUT: Final = 20

_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*\.?(?::[0-9]{{1,5}})?")
_IPV6_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")
"""`urlsplit` checks the address itself, but accepts a zone, and other names in brackets."""


def mode(value: str) -> str:
    """Return the name of a mode."""
    if value not in MODES:
        raise ValueError(f"unknown mode {quoted(value)}; use `export` or `agent`")
    return value


def boolean(value: str) -> bool:
    """Read `true` or `false`."""
    if value not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        raise ValueError(f"must be true or false, not {quoted(value)}")
    return value.lower() == "true"


def duration(value: str) -> float:
    """Read a duration such as `1h30m`; return seconds."""
    number = r"([0-9]+(?:\.[0-9]+)?)"
    with_unit = f"{value}s" if re.fullmatch(number, value) else value
    amounts = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?(?:{number}ms)?", with_unit)
    if amounts is None:
        raise ValueError(f"{quoted(value)} is not a duration; use a number with a unit, such as 500ms, 30s, 15m or 1h30m")
    units = zip(amounts.groups(default="0"), (3600.0, 60.0, 1.0, 0.001), strict=True)
    seconds = sum(float(amount) * unit for amount, unit in units)
    if seconds <= 0:
        raise ValueError(f"{quoted(value)} must be greater than zero")
    if seconds > MAX_DURATION_SECONDS:
        raise ValueError(f"{quoted(value)} is longer than 35 days, the maximum time of a workflow run")
    return seconds


def base_url(value: str) -> str:
    """Return the API's address without a trailing slash."""
    if re.search(r"[^\x21-\x7e]", value):
        raise ValueError("contains white space, control or non-ASCII characters; write the host name in ASCII (Punycode)")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a valid address; use one such as https://api.example.com") from None
    if parts.scheme not in {"https", "http"} or not host:
        raise ValueError("is not an https address; use one such as https://api.example.com")
    if "@" in parts.netloc or "?" in value or "#" in value:
        raise ValueError("contains a user name, query or fragment; only scheme, host, port and path are allowed")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("uses http, which would send the key unencrypted; use https (http is only for loopback hosts)")
    if port == 0 or not (_HOST.fullmatch(parts.netloc) or _IPV6_HOST.fullmatch(parts.netloc)):
        raise ValueError("contains an invalid host or port")
    path_is_valid = re.fullmatch(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*", parts.path)  # RFC 3986, section 3.3
    if not path_is_valid or {"..", "."} & set(parts.path.split("/")):
        raise ValueError("contains an invalid path")
    return value.rstrip("/")


def admin_key(value: str) -> str:
    """Return the key. The error does not show it."""
    if re.search(r"[^\x21-\x7e]", value):
        hint = "; use the key alone, without `Bearer`" if value.lower().startswith("bearer ") else ""
        raise ValueError(f"contains white space, control or non-ASCII characters, which a key cannot contain{hint}")
    return value


def whole_number(value: str, maximum: int) -> int:
    """Read a number from 1 to `maximum`."""
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= maximum:
        raise ValueError(f"must be a whole number from 1 to {maximum:,}, not {quoted(value)}")
    return int(value)


def identifier(value: str) -> str:
    """Return an identifier."""
    if not is_job_id(value):
        raise ValueError("must be one line without control characters")
    return value


def domains(value: str) -> list[str]:
    """Read one domain per line."""
    lines = lines_of(value)
    if not lines:
        raise ValueError("contains no domain")
    errors = [_domain_error(line) for line in lines if not _is_domain(line)]
    hosts = Counter(_normalized(line) for line in lines if _is_domain(line))
    errors += [f"{quoted(host)} is listed twice" for host, count in hosts.items() if count > 1]
    if errors:
        raise ValueError(join_errors(errors, MAX_ERRORS_PER_INPUT))
    return lines


def lines_of(value: str) -> list[str]:
    """Return the lines that are not blank, trimmed."""
    lines = (line.strip().strip("\ufeff").strip() for line in value.splitlines())
    return [line for line in lines if line]


def visible(text: str, *, also: str = "") -> str:
    """Return a text without white space and invisible characters, except those in `also`."""
    return "".join(character for character in text if character.isprintable() or character in also).replace(" ", "")


def _normalized(domain: str) -> str:
    host, _, port = domain.lower().partition(":")
    return f"{host}:{int(port)}" if port else host


def _domain_error(line: str) -> str:
    given = quoted(re.sub("[^/]*@", "…@", line))  # what precedes an @ may be a password
    parts = re.split(r"\s*[,;]\s*|\s+", line.strip(",; "))
    if len(parts) > 1 and all("." in part and _is_domain(part) for part in parts):
        return f"{given} contains {len(parts)} domains; write one per line"
    without_scheme = re.sub(r"^-\s+|^[A-Za-z][A-Za-z0-9+.-]*://", "", line)
    host = re.split(r"[/?#\\]", without_scheme)[0].rpartition("@")[2].strip().rstrip(".")
    host = visible(host) if visible(host).isascii() else _ascii_host(host)
    suggestion = f"; write {host}" if _is_domain(host) else ", such as docs.example.com"
    invisible = "contains an invisible character, so it " if not line.isprintable() else ""
    return f"{given} {invisible}is not a bare host name{suggestion}"


def _ascii_host(text: str) -> str:
    """Return the ASCII form of a host name, or an empty string if it has none.

    Browsers and registries use IDNA 2008. Python's own codec is IDNA 2003, where `ß` becomes `ss`, which is another name.
    """
    # some scripts need the two joiners (source: RFC 5892, appendix A)
    host, colon, port = visible(text, also="\u200c\u200d").partition(":")
    try:
        labels = idna.uts46_remap(host, std3_rules=False).rstrip(".").split(".")
        return ".".join(label if label.isascii() else idna.alabel(label).decode() for label in labels) + colon + port
    except idna.IDNAError:
        return ""


def _is_domain(text: str) -> bool:
    host, _, port = text.partition(":")
    return bool(_HOST.fullmatch(text)) and not host.endswith(".") and 0 < int(port or "1") < 65536


def start_options(value: str) -> Mapping[str, object]:
    """Read a JSON object of additional fields for the start request."""
    form = 'use a JSON object of additional fields, such as {"version": "v2"}'
    try:
        options = json.loads(value, parse_constant=int)  # `int` rejects NaN and Infinity, which are not JSON
        json.dumps(options, allow_nan=False)  # 1e999 is read as infinity, which cannot be sent
    except (ValueError, RecursionError):
        raise ValueError(f"is not valid JSON; {form}") from None
    if not isinstance(options, dict):
        raise ValueError(f"is not a JSON object; {form}")
    if "domain" in options:
        raise ValueError("contains `domain`; use the input `domain` for it")
    return options


def certificates(value: str, roots: Sequence[Path]) -> str:
    """Read the certificates in a PEM file inside one of the `roots`."""
    path = read_path(value, roots).path
    try:
        if not path.is_file():
            raise ValueError("the file does not exist" if not path.exists() else "the path is not a regular file")
        with path.open("rb") as file:
            text = file.read(MAX_CA_BUNDLE_BYTES).decode("ascii", errors="ignore")
    except OSError as error:
        raise ValueError(f"the file cannot be read ({reason_of(error)})") from None
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    ended = "".join(text.rpartition(end)[:2])  # each beginning after the last end would search the rest for one
    pem = "\n".join(re.findall(f"{begin}.*?{end}", ended, re.DOTALL)) + "\n"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        convert = "convert one with `openssl x509 -in FILE -out ca.pem`"
        raise ValueError(f"the file contains no valid PEM certificate; {convert}") from None
    return pem

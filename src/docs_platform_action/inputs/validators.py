"""Parsers of the input formats. Each raises `ValueError` with a text that completes "Invalid input `x`: …"."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from unicodedata import normalize
from urllib.parse import urlsplit

from ..addresses import is_loopback, is_web_address
from ..models import is_job_id
from ..text import UNUSABLE, join_errors, join_names, quoted
from .settings import MaxRemoved, Mode, Project

MAX_DURATION_SECONDS: Final = (
    35 * 24 * 3600.0
)  # of a workflow run (source: GitHub's documentation of usage limits)
MAX_LINE_LENGTH: Final = 1000  # that is searched for what is wrong
EXAMPLE: Final = "such as `docs.example.com: 6520f3a1c9b1a20012ab34cd`"

_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(
    rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*(?::0*([1-9][0-9]{{0,4}}))?"
)
_IPV6_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")
_SHELL: Final = re.compile(
    r"\A~|\$(?:[A-Za-z_]\w*|\{[^}]*\}+|\([^)]*\)?)|%[A-Za-z_]\w*%"
)  # what a shell would replace


def parse_mode(value: str) -> Mode:
    """Return the mode with this name."""
    if value not in [*Mode]:
        raise ValueError(f"unknown mode {quoted(value)}; use {join_names(Mode, 'or')}")
    return Mode(value)


def parse_boolean(value: str) -> bool:
    """Return whether a text is `true`, and not `false`."""
    if value not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        raise ValueError(f"must be true or false, not {quoted(value)}")
    return value.lower() == "true"


def parse_duration(value: str) -> float:
    """Return the seconds of a duration such as `1h30m`."""
    number = r"([0-9]+(?:\.[0-9]+)?)"
    with_unit = f"{value}s" if re.fullmatch(number, value) else value
    amounts = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?(?:{number}ms)?", with_unit)
    if amounts is None:
        raise ValueError(
            f"{quoted(value)} is not a duration; use a number with a unit, such as 500ms, 30s, 15m or 1h30m"
        )
    units = zip(amounts.groups(default="0"), (3600.0, 60.0, 1.0, 0.001), strict=True)
    seconds = sum(float(amount) * unit for amount, unit in units)
    if seconds <= 0:
        raise ValueError(f"{quoted(value)} must be greater than zero")
    if seconds > MAX_DURATION_SECONDS:
        raise ValueError(f"{quoted(value)} is longer than 35 days, the maximum of a workflow run")
    return seconds


def parse_base_url(value: str) -> str:
    """Return the API's address without a trailing slash."""
    if re.search(r"[^\x21-\x7e]", value):
        raise ValueError(
            "contains white space, control or non-ASCII characters; write the host name in ASCII (Punycode)"
        )
    if re.search("[?#]|//[^/]*@", value):
        raise ValueError(
            "contains a user name, query or fragment; only scheme, host, port and path are allowed"
        )
    scheme, _, address = value.partition("://")
    host = address.partition("/")[0]
    if (
        scheme.lower() not in {"https", "http"}
        or not is_web_address(value)
        or not (_is_host(host) or _IPV6_HOST.fullmatch(host))
    ):
        raise ValueError("is not a valid https address; use one such as https://api.example.com")
    if scheme.lower() == "http" and not is_loopback(urlsplit(value).hostname or ""):
        raise ValueError(
            "uses http; use https, which encrypts the key (http is only for loopback hosts)"
        )
    return value.rstrip("/")


def parse_key(value: str) -> str:
    """Return a key or a token. The error does not show it."""
    if re.search(r"[^\x21-\x7e]", value):
        hint = "; use it alone, without `Bearer`" if value.lower().startswith("bearer ") else ""
        raise ValueError(f"contains white space, control or non-ASCII characters{hint}")
    return value


def parse_hexadecimal(value: str, what: str, digits: int) -> str:
    """Return so many hexadecimal digits in lower case. The error says what they are."""
    if not re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", value):
        raise ValueError(f"must be {what}: {digits} hexadecimal digits, not {quoted(value)}")
    return value.lower()


def parse_whole_number(value: str, maximum: int, if_zero: str = "") -> int:
    """Return a number from 1 to `maximum`. The error about a zero has a hint."""
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= maximum:
        hint = if_zero if value == "0" else ""
        raise ValueError(f"must be a whole number from 1 to {maximum:,}, not {quoted(value)}{hint}")
    return int(value)


def parse_max_removed(value: str) -> MaxRemoved:
    """Return how many pages may be removed."""
    number = re.fullmatch("([0-9]{1,9})(%?)", value)
    if number is None or (number[2] and int(number[1]) > 100):
        raise ValueError(
            f"must be a whole number, or a percentage from 0% to 100%, not {quoted(value)}"
        )
    return MaxRemoved(amount=int(number[1]), is_percentage=bool(number[2]))


def parse_identifier(value: str) -> str:
    """Return an identifier."""
    if not is_job_id(value):
        raise ValueError("must be one line without control characters")
    return value


def parse_domains(value: str) -> list[str]:
    """Return the domains, one per line."""
    lines = lines_of(value)
    hosts = Counter(line.lower() for line in lines)
    errors = [_domain_error(line) for line in lines if not _is_host(line)]
    errors += [f"{quoted(host)} is listed twice" for host, count in hosts.items() if count > 1]
    if errors:
        raise ValueError(join_errors(errors))
    return lines


def _domain_error(line: str) -> str:
    line = line[:MAX_LINE_LENGTH]
    given = quoted(re.sub("[^/]*@", "…@", line))  # what precedes an @ may be a password
    parts = re.split(r"\s*[,;]\s*|\s+", line.strip(",; "))
    if len(parts) > 1 and all("." in part and _is_host(part) for part in parts):
        return f"{given} contains {len(parts)} domains; write one per line"
    if re.search(r":\s+\S", line):
        return f"{given} is not a bare host name; to export a project, set `project-id`"
    if not line.isascii():
        return f"{given} contains non-ASCII or invisible characters; write the host name in ASCII (Punycode)"
    without_scheme = re.sub(r"^-\s+|^[A-Za-z][A-Za-z0-9+.-]*://", "", line)
    host = "".join(re.split(r"[/?#\\]", without_scheme)[0].rpartition("@")[2].split()).rstrip(".")
    return f"{given} is not a bare host name{f'; write {host}' if _is_host(host) else ', such as docs.example.com'}"


def _is_host(text: str) -> bool:
    """Return whether a text is a host name, maybe with a port."""
    found = _HOST.fullmatch(text)
    return found is not None and int(found[1] or 1) < 65536


def parse_projects(value: str) -> list[Project]:
    """Return the projects, one per line, with or without a label.

    `project_errors` finds mistakes in projects to export.
    """
    lines = lines_of(value)
    for line in lines:
        if len(line) > MAX_LINE_LENGTH:
            raise ValueError(f"{quoted(line)} is longer than {MAX_LINE_LENGTH:,} characters")
        if not line.isprintable():
            raise ValueError(f"{quoted(line)} contains control or invisible characters")
    parts = [line.rpartition(": ") for line in lines]
    return [
        Project(project_id=project_id.strip(), label=label.strip() if separator else None)
        for label, separator, project_id in parts
    ]


def project_errors(projects: Sequence[Project]) -> list[str]:
    """Return what is wrong with projects to export, and what to write instead."""
    errors = [*filter(None, map(_project_error, projects))]
    labels = [normalize("NFC", project.label).casefold() for project in projects if project.label]
    errors += _repeated("identifier", [project.project_id for project in projects])
    errors += _repeated("label", labels)
    if len(projects) > 1:
        errors += [
            f"{quoted(project.project_id)} has no label; several projects need labels, {EXAMPLE}"
            for project in projects
            if project.label is None and _project_error(project) is None
        ]
    return errors


def _repeated(what: str, names: Sequence[str]) -> list[str]:
    counts = Counter(names)
    return [f"the {what} {quoted(name)} is listed twice" for name in counts if counts[name] > 1]


def _project_error(project: Project) -> str | None:
    """Return what is wrong with a project to export, and what to write instead."""
    project_id = project.project_id
    label = project.label
    given = quoted(project_id if label is None else f"{label}: {project_id}")
    if (label or project_id).startswith("- "):
        return f"{given} begins with a dash; write one project per line without it"
    if project_id.endswith(":"):
        return f"{given} has no identifier after the label; write both, {EXAMPLE}"
    if _is_domain(project_id):
        instead = f"{project_id}: IDENTIFIER"
        if label and not _is_domain(label):
            instead = f"{project_id}: {label}"
        said = f"{quoted(project_id)} is a domain, not a project's identifier"
        return f"{said}; write `{instead}`, or set only `domain`"
    odd = re.search(r"""["'#<>{}]|://""", project_id) or re.match(r"""["'#]""", label or "")
    if odd is not None:
        alone = "write only a label and an identifier, without quotation marks or a comment"
        return f"{given} contains {odd[0]}; {alone}, {EXAMPLE}"
    if label is not None and (re.search(r"[/\\]", label) or not re.search(r"\w", label)):
        named = re.sub(r"[/\\]+", "-", label).strip(".-")
        instead = f"`{named}: {project_id}`" if named else f"one {EXAMPLE}"
        return f"the label {quoted(label)} cannot be part of a file name; write {instead}"
    parts = [*filter(None, re.split(r"\s*[,;=]\s*|\s+|:(?=\S)", project_id))]
    if label is None and len(parts) == 2 and _is_domain(parts[0]):
        instead = f"{parts[0]}: {parts[1]}"
        return f"{given} needs a colon and a space after the label; write `{instead}`"
    if re.search(r"[,;]", project_id):
        return f"{given} contains a comma or semicolon; write one project per line"
    return None


def _is_domain(text: str) -> bool:
    """Return whether a text is a host name whose last part has no digit, unlike `proj.v2`."""
    return _is_host(text) and re.search(r"\.[A-Za-z-]{2,}(?::[0-9]+)?\Z", text) is not None


def parse_start_options(value: str) -> Mapping[str, object]:
    """Return a JSON object of additional fields for the start request."""
    try:
        options = json.loads(
            value, parse_constant=int
        )  # `int` rejects NaN and Infinity, which are not JSON
        json.dumps(options, allow_nan=False)  # 1e999 is read as infinity, which cannot be sent
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise ValueError(
            'must be a JSON object of additional fields, such as {"basePath": "/docs"}'
        )
    if "domain" in options:
        raise ValueError("contains `domain`; remove it, and set the input `domain` or `project-id`")
    return options


def parse_path(value: str) -> str:
    """Return a path as it is written: no shell has replaced anything in it."""
    if UNUSABLE.search(value):
        raise ValueError("contains a control character, or bytes that are not UTF-8")
    if "\\" in value:
        raise ValueError(f"{quoted(value)} contains a backslash; separate folders with a slash")
    if found := _SHELL.search(value):
        use = "use a path in the workspace, or one that starts with `${{ runner.temp }}/`"
        raise ValueError(
            f"{quoted(value)} contains {quoted(found[0])}, but no shell reads an input; {use}"
        )
    return value


def trimmed(text: str) -> str:
    """Return a text without white space and byte order marks around it."""
    while (stripped := text.strip().strip("\ufeff")) != text:
        text = stripped
    return text


def lines_of(text: str) -> list[str]:
    """Return the lines that are not blank, trimmed."""
    return [*filter(None, map(trimmed, text.splitlines()))]

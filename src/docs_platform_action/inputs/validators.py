"""Parsers of the input formats.

Each raises `ValueError` with a text that completes "Invalid input `x`: …".
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from unicodedata import normalize
from urllib.parse import urlsplit

from ..addresses import is_loopback, is_web_address
from ..models import MaxRemoved, Project, is_identifier
from ..text import UNUSABLE, join_errors, quoted

# of a workflow run (source: GitHub's documentation of usage limits)
MAX_DURATION_SECONDS: Final = 35 * 24 * 3600.0

MAX_LINE_LENGTH: Final = 1000  # that is searched for what is wrong
MAX_PORT: Final = 65535
EXAMPLE: Final = "such as `docs.example.com: 6520f3a1c9b1a20012ab34cd`"

_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME: Final = rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*"
_HOST: Final = re.compile(rf"{_NAME}(?::0*([1-9][0-9]{{0,4}}))?")
_IPV6_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")
_NOT_PLAIN: Final = re.compile(r"[^\x21-\x7e]")  # white space, control characters, or not ASCII

# what a shell would replace
_SHELL: Final = re.compile(r"\A~|\$(?:[A-Za-z_]\w*|\{[^}]*\}+|\([^)]*\)?)|%[A-Za-z_]\w*%")


def parse_boolean(value: str) -> bool:
    """Return the boolean in one of YAML's spellings."""
    if value not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        raise ValueError(f"must be true or false, not {quoted(value)}")
    return value.lower() == "true"


def parse_duration(value: str) -> float:
    """Return the seconds of a duration such as `1h30m`."""
    number = r"([0-9]+(?:\.[0-9]+)?)"
    with_unit = f"{value}s" if re.fullmatch(number, value) else value
    amounts = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?(?:{number}ms)?", with_unit)
    if amounts is None:
        advice = "use a number with a unit, such as 500ms, 30s, 15m or 1h30m"
        raise ValueError(f"{quoted(value)} is not a duration; {advice}")
    hours, minutes, rest, milliseconds = map(float, amounts.groups(default="0"))
    seconds = hours * 3600.0 + minutes * 60.0 + rest + milliseconds * 0.001
    if seconds <= 0:
        raise ValueError(f"{quoted(value)} must be greater than zero")
    if seconds > MAX_DURATION_SECONDS:
        raise ValueError(f"{quoted(value)} is longer than 35 days, the maximum of a workflow run")
    return seconds


def parse_base_url(value: str) -> str:
    """Return the platform's address without a trailing slash."""
    return _parse_api_url(value, "https://api.example.com", what="key")


def parse_github_api_url(value: str) -> str:
    """Return the address of GitHub's API without a trailing slash."""
    return _parse_api_url(value, "https://api.github.com", what="token")


def _parse_api_url(value: str, example: str, *, what: str) -> str:
    """Return an address without a trailing slash. `what` is the secret that is sent to it."""
    if _NOT_PLAIN.search(value):
        advice = "write the host name in ASCII (Punycode)"
        raise ValueError(f"contains white space, control or non-ASCII characters; {advice}")
    if re.search("[?#]|//[^/]*@", value):
        allowed = "only scheme, host, port and path are allowed"
        raise ValueError(f"contains a user name, query or fragment; {allowed}")
    scheme, _, address = value.partition("://")
    host = address.partition("/")[0]
    is_web = scheme.lower() in {"https", "http"} and is_web_address(value)
    has_plain_host = _is_host(host) or _IPV6_HOST.fullmatch(host) is not None
    if not is_web or not has_plain_host:
        raise ValueError(f"is not a valid https address; use one such as {example}")
    if scheme.lower() == "http" and not is_loopback(urlsplit(value).hostname or ""):
        advice = "use https (http is only for loopback hosts)"
        raise ValueError(f"uses http, so the {what} would be sent unencrypted; {advice}")
    return value.rstrip("/")


def parse_key(value: str) -> str:
    """Return a key or a token. The error does not show it."""
    if _NOT_PLAIN.search(value):
        error = "contains white space, control or non-ASCII characters"
        if value.lower().startswith("bearer "):
            error += "; use it alone, without `Bearer`"
        raise ValueError(error)
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
    is_percentage = value.endswith("%")
    number = value.removesuffix("%")
    is_number = re.fullmatch("[0-9]{1,9}", number) is not None
    if not is_number or (is_percentage and int(number) > 100):
        allowed = "a whole number, or a percentage from 0% to 100%"
        raise ValueError(f"must be {allowed}, not {quoted(value)}")
    return MaxRemoved(amount=int(number), is_percentage=is_percentage)


def parse_identifier(value: str) -> str:
    """Return the text, if it is one line without control characters."""
    if not is_identifier(value):
        raise ValueError("must be one line without control characters")
    return value


def parse_domains(value: str) -> list[str]:
    """Return the domains, one per line."""
    lines = lines_of(value)
    hosts = Counter(line.lower() for line in lines)
    errors = [_domain_error(line) for line in lines if not _is_host(line)]
    errors += [f"{quoted(host)} is listed twice" for host in hosts if hosts[host] > 1]
    if errors:
        raise ValueError(join_errors(errors))
    return lines


def _domain_error(line: str) -> str:
    """Return what is wrong with a line that is not a host name, and what to write instead."""
    line = line[:MAX_LINE_LENGTH]
    given = quoted(re.sub("[^/]*@", "…@", line))  # what precedes an @ may be a password
    parts = re.split(r"\s*[,;]\s*|\s+", line.strip(",; "))
    if len(parts) > 1 and all("." in part and _is_host(part) for part in parts):
        return f"{given} contains {len(parts)} domains; write one per line"
    if re.search(r":\s+\S", line):
        return f"{given} is not a bare host name; to export a project, set `project-id`"
    if not line.isascii():
        advice = "write the host name in ASCII (Punycode)"
        return f"{given} contains non-ASCII or invisible characters; {advice}"
    host = _host_in(line)
    if _is_host(host):
        return f"{given} is not a bare host name; write {host}"
    return f"{given} is not a bare host name, such as docs.example.com"


def _host_in(address: str) -> str:
    """Return the part of an address or a list item that may be its host name."""
    without_scheme = re.sub(r"^-\s+|^[A-Za-z][A-Za-z0-9+.-]*://", "", address)
    authority = re.split(r"[/?#\\]", without_scheme)[0]
    _, _, host = authority.rpartition("@")
    return "".join(host.split()).rstrip(".")


def _is_host(text: str) -> bool:
    """Return whether a text is a host name, maybe with a port."""
    found = _HOST.fullmatch(text)
    if found is None:
        return False
    port = found[1]
    return port is None or int(port) <= MAX_PORT


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
    return [_project_in(line) for line in lines]


def _project_in(line: str) -> Project:
    label, separator, project_id = line.rpartition(": ")
    if not separator:
        return Project(project_id=line)
    return Project(project_id=project_id.strip(), label=label.strip())


def project_errors(projects: Sequence[Project]) -> list[str]:
    """Return what is wrong with projects to export, and what to write instead."""
    errors = []
    unlabeled = []
    for project in projects:
        error = _project_error(project)
        if error is not None:
            errors.append(error)
        elif project.label is None:
            unlabeled.append(quoted(project.project_id))
    labels = [normalize("NFC", project.label).casefold() for project in projects if project.label]
    errors += _repeated("identifier", [project.project_id for project in projects])
    errors += _repeated("label", labels)
    if len(projects) > 1:
        reason = "has no label; several projects need labels"
        errors += [f"{given} {reason}, {EXAMPLE}" for given in unlabeled]
    return errors


def _repeated(what: str, names: Sequence[str]) -> list[str]:
    counts = Counter(names)
    return [f"the {what} {quoted(name)} is listed twice" for name in counts if counts[name] > 1]


def _project_error(project: Project) -> str | None:
    """Return what is wrong with a project to export, and what to write instead."""
    project_id = project.project_id
    label = project.label or ""
    given = quoted(project_id if project.label is None else f"{label}: {project_id}")
    if (label or project_id).startswith("- "):
        return f"{given} begins with a dash; write one project per line without it"
    if project_id.endswith(":"):
        return f"{given} has no identifier after the label; write both, {EXAMPLE}"
    if _is_domain(project_id):
        return _domain_as_identifier_error(project_id, label)
    odd = re.search(r"""["'#<>{}]|://""", project_id) or re.match(r"""["'#]""", label)
    if odd is not None:
        alone = "write only a label and an identifier, without quotation marks or a comment"
        return f"{given} contains {odd[0]}; {alone}, {EXAMPLE}"
    if project.label is not None and not _is_file_name(label):
        return _label_error(project_id, label)
    if project.label is None:
        parts = re.split(r"\s*[,;=]\s*|\s+|:(?=\S)", project_id)
        words = [part for part in parts if part]
        if len(words) == 2 and _is_domain(words[0]):
            instead = f"{words[0]}: {words[1]}"
            return f"{given} needs a colon and a space after the label; write `{instead}`"
    if re.search(r"[,;]", project_id):
        return f"{given} contains a comma or semicolon; write one project per line"
    return None


def _domain_as_identifier_error(domain: str, label: str) -> str:
    instead = f"{domain}: IDENTIFIER"
    if label and not _is_domain(label):  # then the two are swapped
        instead = f"{domain}: {label}"
    fact = f"{quoted(domain)} is a domain, not a project's identifier"
    return f"{fact}; write `{instead}`, or set only `domain`"


def _is_file_name(label: str) -> bool:
    """Return whether a label can be part of a file name, for `{domain}` in a path."""
    has_slash = re.search(r"[/\\]", label) is not None
    return not has_slash and re.search(r"\w", label) is not None


def _label_error(project_id: str, label: str) -> str:
    instead = f"one {EXAMPLE}"
    usable = re.sub(r"[/\\]+", "-", label).strip(".-")
    if usable:
        instead = f"`{usable}: {project_id}`"
    return f"the label {quoted(label)} cannot be part of a file name; write {instead}"


def _is_domain(text: str) -> bool:
    """Return whether a text is a host name whose last part has no digit, unlike `proj.v2`."""
    return _is_host(text) and re.search(r"\.[A-Za-z-]{2,}(?::[0-9]+)?\Z", text) is not None


def parse_start_options(value: str) -> Mapping[str, object]:
    """Return a JSON object of additional fields for the start request."""
    try:
        # `int` rejects NaN and Infinity, which are not JSON
        options = json.loads(value, parse_constant=int)
        json.dumps(options, allow_nan=False)  # 1e999 is read as infinity, which cannot be sent
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        example = '{"basePath": "/docs"}'
        raise ValueError(f"must be a JSON object of additional fields, such as {example}")
    if "domain" in options:
        raise ValueError("contains `domain`; remove it, and set the input `domain` or `project-id`")
    return options


def parse_path(value: str) -> str:
    """Return a path. What only a shell would replace, such as `~` and `$VAR`, is refused."""
    if UNUSABLE.search(value):
        raise ValueError("contains a control character, or bytes that are not UTF-8")
    if "\\" in value:
        raise ValueError(f"{quoted(value)} contains a backslash; separate folders with a slash")
    found = _SHELL.search(value)
    if found is not None:
        fact = f"{quoted(value)} contains {quoted(found[0])}, but no shell reads an input"
        advice = "use a path in the workspace, or one that starts with `${{ runner.temp }}/`"
        raise ValueError(f"{fact}; {advice}")
    return value


def trimmed(text: str) -> str:
    """Return a text without white space and byte order marks around it."""
    stripped = text.strip().strip("\ufeff")
    while stripped != text:
        text = stripped
        stripped = text.strip().strip("\ufeff")
    return text


def lines_of(text: str) -> list[str]:
    """Return the lines that are not blank, trimmed."""
    lines = [trimmed(line) for line in text.splitlines()]
    return [line for line in lines if line]

"""What the workflow asks for: inputs become frozen settings, and every mistake in them is reported at once."""

import json
import re
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import idna

from ..errors import DENIED_BY, DENIED_REMEDY, InvalidInput
from ..models import is_job_id, is_loopback
from ..redaction import SHORTEST_TO_RECOGNISE, Redactor
from .paths import (
    PLACEHOLDER,
    Place,
    is_usable,
    overlaps,
    read_each,
    read_file_place,
    read_folder_place,
    read_path,
    reason_of,
    shown,
)

T = TypeVar("T")

EXPORT: Final = "export"
AGENT: Final = "agent"
MODES: Final = (EXPORT, AGENT)

LONGEST_DURATION_SECONDS: Final = 35 * 24 * 3600.0
"""GitHub cancels a workflow run after 35 days (source: GitHub's documentation of usage limits)."""

LARGEST_CA_BUNDLE_BYTES: Final = 8 * 1024 * 1024

MOST_PARALLEL: Final = 100

MOST_MISTAKES: Final = 20
"""How many mistakes of one input are told before the rest is counted."""

LONGEST_NAME: Final = 80
"""Characters that are shown of a name that is not an input."""

_PREFIX: Final = "INPUT_"

_OF_EVERY_CONTAINER: Final = frozenset({"args", "entrypoint"})
"""Keys that GitHub allows in `with:` for every container action (source: actions/runner, ContainerActionHandler.cs)."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input of the action: its default as a workflow author would write it, and the modes that it belongs to."""

    name: str
    default: str = ""
    modes: tuple[str, ...] = MODES


INPUTS: Final = (
    Input(name="mode", default=EXPORT),
    Input(name="base-url"),
    Input(name="admin-key"),
    Input(name="domain", modes=(EXPORT,)),
    Input(name="job-id"),
    Input(name="project-id", modes=(AGENT,)),
    Input(name="timeout", default="60m"),
    Input(name="wait", default="true", modes=(EXPORT,)),
    Input(name="poll-interval", default="1s"),
    Input(name="max-poll-interval", default="30s"),
    Input(name="outage-tolerance", default="5m"),
    Input(name="start-options", modes=(EXPORT,)),
    Input(name="max-parallel", default="10", modes=(EXPORT,)),
    Input(name="bundle-path", modes=(EXPORT,)),
    Input(name="site-path", modes=(EXPORT,)),
    Input(name="min-pages", modes=(EXPORT,)),
    Input(name="values-file", modes=(EXPORT,)),
    Input(name="export-version", modes=(EXPORT,)),
    Input(name="mask-bundle-url", default="false", modes=(EXPORT,)),
    Input(name="require-pr", default="false", modes=(AGENT,)),
    Input(name="ca-bundle"),
)


@dataclass(frozen=True, kw_only=True)
class ApiSettings:
    """Where the API is and how to be let in. `authorities_pem` are certificate authorities to trust beside the public ones."""

    base_url: str
    admin_key: str = field(repr=False)
    outage_tolerance_seconds: float
    authorities_pem: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class WaitSettings:
    """How long to wait for a job, and the bounds of the pause between two readings; all in seconds."""

    timeout_seconds: float
    shortest_pause_seconds: float
    longest_pause_seconds: float


@dataclass(frozen=True, kw_only=True)
class DeliverySettings:
    """What is to become of a finished bundle. `scratch` is a folder for what nobody asked to keep.

    `min_pages` is the least number of pages that is published.
    """

    bundle: Place | None = None
    site: Place | None = None
    values: Place | None = None
    version: str | None = None
    min_pages: int | None = None
    scratch: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """One export. Without `job_id` there is a `domain` to start an export of."""

    api: ApiSettings
    waiting: WaitSettings
    domain: str | None
    job_id: str | None
    wait: bool
    start_options: Mapping[str, object]
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    mask_bundle_url: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The wait for one agent job."""

    api: ApiSettings
    waiting: WaitSettings
    project_id: str
    job_id: str
    require_pr: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to do: its jobs, at most `max_parallel` of them at the same time, and what its author should be warned of."""

    jobs: tuple[ExportSettings | AgentSettings, ...]
    max_parallel: int
    warnings: tuple[str, ...]


def read_key(environ: Mapping[str, str]) -> str:
    """Read the admin key as it is, before anything is known of it, so that it can be masked first."""
    return _raw(environ, "admin-key")


def read_names(environ: Mapping[str, str]) -> list[str]:
    """Read the inputs that name the run's own places and jobs, as they are."""
    names = ("base-url", "domain", "job-id", "project-id")
    return [line.strip() for name in names for line in _raw(environ, name).splitlines()]


def read_mode(environ: Mapping[str, str]) -> str | None:
    """Read the mode, if it is one of those that exist, so that a report on other inputs can name it."""
    mode = _raw(environ, "mode") or EXPORT
    return mode if mode in MODES else None


def unknown_inputs(environ: Mapping[str, str]) -> list[str]:
    """Make a warning for each `INPUT_` variable that is not an input, with the nearest input's name. Their values are not read.

    The runner passes whatever `with:` holds (source: actions/runner, Handler.cs).
    """
    known = [known.name for known in INPUTS]
    given = {name.removeprefix(_PREFIX).lower() for name in environ if name.startswith(_PREFIX)}
    unknown = sorted(given - {*known, *_OF_EVERY_CONTAINER, ""})
    if not unknown:
        return []
    from difflib import get_close_matches  # few runs need it

    key = Redactor([read_key(environ).lower()], shortest=SHORTEST_TO_RECOGNISE)
    warnings = []
    for name in unknown[:MOST_MISTAKES]:
        nearest = get_close_matches(name.replace("_", "-"), known, n=1)
        suggestion = f"did you mean `{nearest[0]}`?" if nearest else "it has no effect."
        warnings.append(f"`{key.hide(name)[:LONGEST_NAME]}` is not an input; {suggestion}")
    more = len(unknown) - MOST_MISTAKES
    return [*warnings, f"More names that are not inputs: {more}."] if more > 0 else warnings


def read_plan(environ: Mapping[str, str], *, roots: Sequence[Path]) -> Plan:
    """Read the inputs as the runner passes them: `INPUT_` and the name in upper case, hyphens kept.

    `roots` are the folders that outlive the container: the workspace first, which relative paths start at, then the runner's
    temporary folder. Raises `InvalidInput` that lists every mistake.
    """
    reader = _Reader(environ)
    mode = reader.get("mode", _mode)
    api, waiting = _read_api(reader, roots), _read_waiting(reader)
    if mode is None:  # the values can be checked all the same, but not what a mode requires
        _read_export(reader, api, waiting, roots, ())
        _read_agent(reader, api, waiting)
        raise reader.failure()
    warnings = tuple(reader.misplaced(mode))
    if mode == EXPORT:
        if not reader.text("domain") and not reader.text("job-id"):
            reader.problem("domain", "mode export needs a domain to export, or a job-id to attach to")
        plan = _read_export(reader, api, waiting, roots, warnings)
    else:
        reader.require("project-id", "mode agent needs the project: copy it from the API keys page")
        reader.require("job-id", "mode agent needs the agent job to wait for")
        plan = Plan(jobs=(_read_agent(reader, api, waiting),), max_parallel=1, warnings=warnings)
    if reader.problems:
        raise reader.failure()
    return plan


def _read_api(reader: "_Reader", roots: Sequence[Path]) -> ApiSettings:
    reader.require("base-url", "give the address of the administrative API, such as https://api.example.com")
    reader.require("admin-key", "pass the secret; one that does not exist is empty, and so are all in a pull request from a fork")
    return ApiSettings(
        base_url=reader.get("base-url", _base_url) or "",
        admin_key=reader.get("admin-key", _admin_key) or "",
        outage_tolerance_seconds=reader.get("outage-tolerance", _duration) or 0.0,
        authorities_pem=reader.get("ca-bundle", lambda value: _certificates(read_path(value, roots).path)),
    )


def _read_waiting(reader: "_Reader") -> WaitSettings:
    shortest, longest = reader.get("poll-interval", _duration), reader.get("max-poll-interval", _duration)
    if shortest is not None and longest is not None and longest < shortest:
        longest_shown, shortest_shown = reader.text("max-poll-interval"), reader.text("poll-interval")
        reader.problem("max-poll-interval", f"{longest_shown} is below poll-interval, {shortest_shown}; set it to that or more")
    return WaitSettings(
        timeout_seconds=reader.get("timeout", _duration) or 0.0,
        shortest_pause_seconds=shortest or 0.0,
        longest_pause_seconds=longest or 0.0,
    )


def _read_agent(reader: "_Reader", api: ApiSettings, waiting: WaitSettings) -> AgentSettings:
    return AgentSettings(
        api=api,
        waiting=waiting,
        project_id=reader.get("project-id", _identifier) or "",
        job_id=reader.get("job-id", _identifier) or "",
        require_pr=reader.get("require-pr", _boolean) is True,
    )


def _read_export(
    reader: "_Reader", api: ApiSettings, waiting: WaitSettings, roots: Sequence[Path], warnings: tuple[str, ...]
) -> Plan:
    domains, attaching = reader.get("domain", _domains) or [None], bool(reader.text("job-id"))
    named = len(_lines(reader.text("domain")))  # however many of them can be used
    if attaching and named > 1:
        reader.problem("domain", f"names {named} domains, but job-id one job; give the one domain that it belongs to, or none")
    first = ExportSettings(
        api=api,
        waiting=waiting,
        domain=domains[0],
        job_id=reader.get("job-id", _identifier),
        wait=reader.get("wait", _boolean) is not False,
        start_options=reader.get("start-options", _options) or {},
        mask_bundle_url=reader.get("mask-bundle-url", _boolean) is True,
    )
    max_parallel = reader.get("max-parallel", _parallel) or 1
    deliveries = _read_deliveries(reader, roots, domains, several=named > 1)
    if attaching and not first.wait:
        reader.problem("wait", "false starts a job and stops there, but job-id names one that is started; leave one of them out")
    jobs = tuple(replace(first, domain=domain, delivery=delivery) for domain, delivery in zip(domains, deliveries, strict=True))
    return Plan(jobs=jobs, max_parallel=max_parallel, warnings=(*warnings, *_without_effect(jobs[0])))


def _without_effect(settings: ExportSettings) -> Iterator[str]:
    delivery = settings.delivery
    if settings.job_id is not None and settings.start_options:
        yield "Input `start-options` has no effect together with `job-id`: no job is started."
    if not settings.wait:
        given = {
            "bundle-path": delivery.bundle,
            "site-path": delivery.site,
            "min-pages": delivery.min_pages,
            "values-file": delivery.values,
        }
        for name in (name for name, value in given.items() if value is not None):
            yield f"Input `{name}` has no effect together with `wait: false`: set it where `job-id` attaches to the job."
    if delivery.version is not None and delivery.values is None:
        yield "Input `export-version` has no effect without `values-file`, which it goes into."


def _read_deliveries(
    reader: "_Reader", roots: Sequence[Path], domains: Sequence[str | None], *, several: bool
) -> list[DeliverySettings]:
    """Read what is to become of each domain's bundle."""

    def read(name: str, read_place: Callable[[str, Sequence[Path]], Place]) -> list[Place] | None:
        if reader.is_refused("domain") and PLACEHOLDER in reader.text(name):
            return None  # nobody knows yet which places are meant
        return reader.get(name, lambda value: read_each(value, domains, lambda path: read_place(path, roots), several=several))

    found = {
        "bundle-path": read("bundle-path", read_file_place),
        "site-path": read("site-path", read_folder_place),
        "values-file": read("values-file", read_file_place),
    }
    places = {name: given for name, given in found.items() if given is not None}
    for name, problem in overlaps(places):
        reader.problem(name, problem)
    version, min_pages = reader.get("export-version", _identifier), reader.get("min-pages", _min_pages)
    scratch = next((root for root in roots[1:] if is_usable(root)), None)

    def delivery_of(number: int) -> DeliverySettings:
        bundle, site, values = (given[number] if given is not None else None for given in found.values())
        apart = None if scratch is None or _within(scratch, site) else scratch
        return DeliverySettings(bundle=bundle, site=site, values=values, version=version, min_pages=min_pages, scratch=apart)

    return [delivery_of(number) for number in range(len(domains))]


def _within(folder: Path, place: Place | None) -> bool:
    return place is not None and folder.resolve().is_relative_to(place.path)


class _Reader:
    """Reads input by input and collects what is wrong with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        # whole: an identifier that the key holds, such as the project's, is a good input
        self._redactor = Redactor([read_key(environ)], shortest=SHORTEST_TO_RECOGNISE, parts=False)
        self._defaults = {known.name: known.default for known in INPUTS}
        self.problems: list[tuple[str, str]] = []

    def text(self, name: str) -> str:
        """Give an input's text, or its default where it is empty."""
        return _raw(self._environ, name) or self._defaults[name]

    def get(self, name: str, clean: Callable[[str], T]) -> T | None:
        """Give an input's value, or `None` where it has neither text nor default, or is wrong, which is noted."""
        text = self.text(name)
        if not text:
            return None
        if name != "admin-key" and self._holds_key(text):
            self.problem(name, "holds the admin key, which belongs in `admin-key` alone")
            return None
        try:
            text.encode()
            return clean(text)
        except UnicodeEncodeError:
            self.problem(name, "is not valid UTF-8")
        except ValueError as error:
            self.problem(name, str(error))
        return None

    def _holds_key(self, text: str) -> bool:
        """Look for the key in any form, also for one that was pasted with a line's end or something invisible inside."""
        seen = "".join(character for character in text if character.isprintable() and not character.isspace())
        return self._redactor.finds_in(seen)

    def require(self, name: str, how: str) -> None:
        """Note a mistake if an input is empty."""
        if not self.text(name):
            self.problem(name, f"missing: {how}")

    def problem(self, name: str, what: str) -> None:
        """Note a mistake, once however often it is found."""
        if (name, what) not in self.problems:
            self.problems.append((name, what))

    def is_refused(self, name: str) -> bool:
        """Tell whether an input has a mistake."""
        return any(name == wrong for wrong, _ in self.problems)

    def misplaced(self, mode: str) -> list[str]:
        """Tell of inputs that are set but belong to another mode."""
        is_agents = mode == EXPORT and self.text("project-id") and self.text("job-id")
        return [
            f"Input `{known.name}` has no effect in mode `{mode}`; it belongs to mode `{known.modes[0]}`."
            + (" Did you mean `mode: agent`?" if known.name == "project-id" and is_agents else "")
            for known in INPUTS
            if mode not in known.modes and self.text(known.name) != known.default
        ]

    def failure(self) -> InvalidInput:
        """Make one error of all mistakes, in the order in which the inputs are documented."""
        order = [*self._defaults]
        problems = sorted(self.problems, key=lambda problem: order.index(problem[0]))
        remedies = (DENIED_REMEDY if DENIED_BY in what else InvalidInput.remedy for _, what in problems)
        remedy = " ".join(dict.fromkeys(remedies))
        if len(problems) == 1:
            name, what = problems[0]
            return InvalidInput(f"Invalid input `{name}`: {what}", remedy=remedy)
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(name for name, _ in problems))
        return InvalidInput(
            f"{len(problems)} invalid inputs: {names}",
            facts=tuple(f"`{name}`: {what}." for name, what in problems),
            remedy=remedy,
        )


def _raw(environ: Mapping[str, str], name: str) -> str:
    return environ.get(f"{_PREFIX}{name.upper()}", "").strip().strip("\ufeff").strip()


def _mode(value: str) -> str:
    if value not in MODES:
        raise ValueError(f"unknown mode {shown(value)}; the two that exist are `export` and `agent`")
    return value


def _boolean(value: str) -> bool:
    if value in {"true", "True", "TRUE"}:
        return True
    if value in {"false", "False", "FALSE"}:
        return False
    raise ValueError(f"write true or false, not {shown(value)}")


def _duration(value: str) -> float:
    form = "a number with a unit, such as 500ms, 30s, 15m or 1h30m; a bare number is seconds"
    number = r"([0-9]+(?:\.[0-9]+)?)"
    bare = re.fullmatch(number, value)
    units = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?(?:{number}ms)?", value)
    if bare:
        seconds = float(value)
    elif units:
        amounts = zip(units.groups(default="0"), (3600.0, 60.0, 1.0, 0.001), strict=True)
        seconds = sum(float(amount) * unit for amount, unit in amounts)
    else:
        raise ValueError(f"{shown(value)} is no duration: write {form}")
    if seconds <= 0:
        raise ValueError(f"{shown(value)} is no time at all: a duration is above zero")
    if seconds > LONGEST_DURATION_SECONDS:
        raise ValueError(f"{shown(value)} is longer than a workflow run can last, 35 days")
    return seconds


def _base_url(value: str) -> str:
    if re.search(r"[\s\x00-\x20\x7f]", value) or not value.isascii():
        raise ValueError("holds white space, control or non-ASCII characters; write the host name in its ASCII form")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is no address; write it like https://api.example.com") from None
    if parts.scheme not in {"https", "http"} or not host:
        raise ValueError("is no https address; write it like https://api.example.com")
    if "@" in parts.netloc or "?" in value or "#" in value:
        raise ValueError("holds a user name, a query or a fragment; give scheme, host and, where there is one, a path alone")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("is http, which would show the key to the network; use https (http is for loopback hosts alone)")
    if not _HOST.fullmatch(parts.netloc) and not _is_ipv6(parts.netloc, host):
        raise ValueError("holds a host or port that cannot be used")
    path_is_plain = re.fullmatch(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*", parts.path)  # RFC 3986, section 3.3
    if port == 0 or not path_is_plain or {"..", "."} & set(parts.path.split("/")):
        raise ValueError("holds a port or path that cannot be used")
    return value.rstrip("/")


def _admin_key(value: str) -> str:
    if re.search(r"[^\x21-\x7e]", value):
        hint = "; give the key alone, without `Bearer`" if value.lower().startswith("bearer ") else ""
        raise ValueError(f"holds white space, control or non-ASCII characters inside, so it cannot be a key{hint}")
    return value


def _parallel(value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= MOST_PARALLEL:
        raise ValueError(f"write a whole number from 1 to {MOST_PARALLEL}, not {shown(value)}")
    return int(value)


def _min_pages(value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or int(value) == 0:
        raise ValueError(f"write a whole number from 1 to 999,999,999, not {shown(value)}")
    return int(value)


def _identifier(value: str) -> str:
    if not is_job_id(value):
        raise ValueError("holds control characters or more than one line")
    return value


def _is_ipv6(netloc: str, host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return re.fullmatch(r"\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?", netloc) is not None


_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_DOMAIN: Final = re.compile(rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?")
_HOST: Final = re.compile(rf"(?=[^:]{{1,253}}(?::|\Z)){_LABEL}(?:\.{_LABEL})*\.?(?::[0-9]{{1,5}})?")
"""As it may stand in an address: a full stop at its end is fine there."""
_JOINERS: Final = "\u200c\u200d"
"""Invisible characters that some scripts need within a word (source: RFC 5892, appendix A)."""


def _domains(value: str) -> list[str | None]:
    lines = _lines(value)
    if not lines:
        raise ValueError("holds no domain")
    wrong = [problem for problem in map(_domain_problem, lines) if problem]
    hosts = Counter(_spelled_alike(line) for line in lines if _is_domain(line))
    wrong += [f"{shown(host)} is named twice" for host, count in hosts.items() if count > 1]
    if wrong:
        more = f"; and {len(wrong) - MOST_MISTAKES} more" if len(wrong) > MOST_MISTAKES else ""
        raise ValueError("; ".join(wrong[:MOST_MISTAKES]) + more)
    return [*lines]


def _lines(value: str) -> list[str]:
    lines = (line.strip().strip("\ufeff").strip() for line in value.splitlines())
    return [line for line in lines if line]


def _spelled_alike(domain: str) -> str:
    host, _, port = domain.lower().partition(":")
    return f"{host}:{int(port)}" if port else host


def _domain_problem(line: str) -> str | None:
    if _is_domain(line):
        return None
    # what stands before an @ may be a password
    quoted = shown("/".join(part if "@" not in part else f"…@{part.rpartition('@')[2]}" for part in line.split("/")))
    if len(listed := re.split(r"\s*[,;]\s*|\s+", line.strip(",; "))) > 1 and all(
        "." in one and _is_domain(one) for one in listed
    ):
        return f"{quoted} are {len(listed)} domains; write each on a line of its own"
    bare = re.sub(r"^-\s+|^[A-Za-z][A-Za-z0-9+.-]*://", "", line).partition("/")[0]
    bare = re.split(r"[?#\\]", bare)[0].rpartition("@")[2].strip().rstrip(".")
    seen = "".join(character for character in bare if character.isprintable() and not character.isspace())
    bare = seen if seen.isascii() else _ascii_host(bare)
    meant = f"; write {bare}" if _is_domain(bare) else ", such as docs.example.com"
    hidden = "holds an invisible character, so it " if not line.isprintable() else ""
    return f"{quoted} {hidden}is no bare host name{meant}"


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


def _options(value: str) -> Mapping[str, object]:
    form = 'write a JSON object of further fields, such as {"version": "v2"}'

    def no_constant(name: str) -> object:
        raise ValueError(f"{name} is no JSON")

    try:
        options = json.loads(value, parse_constant=no_constant)
        json.dumps(options, allow_nan=False)  # a number such as 1e999 is read as infinite, which cannot be sent
    except (ValueError, RecursionError):
        raise ValueError(f"is no JSON: {form}") from None
    if not isinstance(options, dict):
        raise ValueError(f"is JSON, but no object: {form}")
    if "domain" in options:
        raise ValueError("holds `domain`, which is an input of its own")
    return options


def _certificates(path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError("there is no such file" if not path.exists() else "it is no regular file")
        with path.open("rb") as file:
            text = file.read(LARGEST_CA_BUNDLE_BYTES).decode("ascii", errors="ignore")
    except OSError as error:
        raise ValueError(f"the file cannot be read ({reason_of(error)})") from None
    pem = "\n".join(_pem_blocks(text)) + "\n"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise ValueError(
            "the file holds no PEM certificates that can be read; convert one with `openssl x509 -in FILE -out ca.pem`"
        ) from None
    return pem


def _pem_blocks(text: str) -> Iterator[str]:
    """Find the certificates; not by an expression, which would look for an end anew from each beginning that has none."""
    beginning, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    at = text.find(beginning)
    while at >= 0 and (until := text.find(end, at + len(beginning))) >= 0:
        until += len(end)
        yield text[at:until]
        at = text.find(beginning, until)

"""Reads the inputs, and reports every mistake in them at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from ..errors import DENIED_BY, DENIED_REMEDY, InvalidInput
from ..models import AGENT, EXPORT, MODES
from ..redaction import MIN_SECRET_LENGTH, Redactor
from . import validators
from .paths import PLACEHOLDER, is_usable, overlaps, read_each, read_file_path, read_folder_path
from .settings import INPUTS, AgentSettings, ApiSettings, DeliverySettings, ExportSettings, OutputPath, Plan, WaitSettings
from .validators import MAX_ERRORS_PER_INPUT, MAX_PAGES, MAX_PARALLEL

P = ParamSpec("P")
T = TypeVar("T")

MAX_NAME_LENGTH: Final = 80
"""Characters that are shown of a name that is not an input."""

_PREFIX: Final = "INPUT_"

_PLACES: Final = {"bundle-path": read_file_path, "site-path": read_folder_path, "values-file": read_file_path}

_OF_EVERY_CONTAINER: Final = frozenset({"args", "entrypoint"})
"""Keys that GitHub allows in `with:` for every container action (source: actions/runner, ContainerActionHandler.cs)."""


def read_key(environ: Mapping[str, str]) -> str:
    """Return the admin key as it is given, so that it can be masked before anything is checked."""
    return _raw(environ, "admin-key")


def read_names(environ: Mapping[str, str]) -> list[str]:
    """Return the inputs that name the run's own places and jobs, as they are given."""
    names = ("base-url", "domain", "job-id", "project-id")
    return [line.strip() for name in names for line in _raw(environ, name).splitlines()]


def read_mode(environ: Mapping[str, str]) -> str | None:
    """Return the mode if it exists, so that a report on other inputs can name it."""
    mode = _raw(environ, "mode") or EXPORT
    return mode if mode in MODES else None


def unknown_inputs(environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each `INPUT_` variable that is not an input, with the nearest input's name. No value is read.

    The runner passes whatever `with:` holds (source: actions/runner, Handler.cs).
    """
    known = [known.name for known in INPUTS]
    given = {name.removeprefix(_PREFIX).lower() for name in environ if name.startswith(_PREFIX)}
    unknown = sorted(given - {*known, *_OF_EVERY_CONTAINER, ""})
    if not unknown:
        return []
    from difflib import get_close_matches  # few runs need it

    key = Redactor([read_key(environ).lower()], min_length=MIN_SECRET_LENGTH)
    warnings = []
    for name in unknown[:MAX_ERRORS_PER_INPUT]:
        nearest = get_close_matches(name.replace("_", "-"), known, n=1)
        suggestion = f"did you mean `{nearest[0]}`?" if nearest else "it has no effect."
        warnings.append(f"`{key.hide(name)[:MAX_NAME_LENGTH]}` is not an input; {suggestion}")
    more = len(unknown) - MAX_ERRORS_PER_INPUT
    return [*warnings, f"More names that are not inputs: {more}."] if more > 0 else warnings


def read_plan(environ: Mapping[str, str], *, roots: Sequence[Path]) -> Plan:
    """Read the inputs as the runner passes them: `INPUT_` and the name in upper case, hyphens kept.

    `roots` are the folders that outlive the container: the workspace first, which relative paths start at, then the runner's
    temporary folder. Raises `InvalidInput` that lists every mistake.
    """
    reader = _Reader(environ)
    mode = reader.get("mode", validators.mode)  # of an unknown mode, the inputs of both are checked, but none is required
    api, waiting = _read_api(reader, roots), _read_waiting(reader)
    if mode == EXPORT and not reader.text("domain") and not reader.text("job-id"):
        reader.problem("domain", "mode export needs a domain to export, or a job-id to attach to")
    if mode == AGENT:
        reader.require("project-id", "mode agent needs the project: copy it from the API keys page")
        reader.require("job-id", "mode agent needs the agent job to wait for")
    exports = _read_exports(reader, waiting, roots) if mode != AGENT else []
    agents = [_read_agent(reader, waiting)] if mode != EXPORT else []
    max_parallel = reader.get("max-parallel", validators.whole_number, MAX_PARALLEL) if mode != AGENT else None
    if reader.problems:
        raise reader.failure()
    warnings = [*reader.misplaced(mode), *(_without_effect(exports[0]) if exports else ())]
    return Plan(api=api, jobs=(*exports, *agents), max_parallel=max_parallel or 1, warnings=tuple(warnings))


def _read_api(reader: "_Reader", roots: Sequence[Path]) -> ApiSettings:
    reader.require("base-url", "give the address of the administrative API, such as https://api.example.com")
    reader.require(
        "admin-key",
        "pass the secret. A secret that does not exist is empty, and so are all secrets in a pull request from a fork",
    )
    return ApiSettings(
        base_url=reader.get("base-url", validators.base_url) or "",
        admin_key=reader.get("admin-key", validators.admin_key) or "",
        outage_tolerance_seconds=reader.get("outage-tolerance", validators.duration) or 0.0,
        authorities_pem=reader.get("ca-bundle", validators.certificates, roots),
    )


def _read_waiting(reader: "_Reader") -> WaitSettings:
    shortest, longest = reader.get("poll-interval", validators.duration), reader.get("max-poll-interval", validators.duration)
    if shortest is not None and longest is not None and longest < shortest:
        longest_shown, shortest_shown = reader.text("max-poll-interval"), reader.text("poll-interval")
        reader.problem("max-poll-interval", f"{longest_shown} is below poll-interval, {shortest_shown}; set it to that or more")
    return WaitSettings(
        timeout_seconds=reader.get("timeout", validators.duration) or 0.0,
        shortest_pause_seconds=shortest or 0.0,
        longest_pause_seconds=longest or 0.0,
    )


def _read_agent(reader: "_Reader", waiting: WaitSettings) -> AgentSettings:
    return AgentSettings(
        waiting=waiting,
        project_id=reader.get("project-id", validators.identifier) or "",
        job_id=reader.get("job-id", validators.identifier) or "",
        require_pr=reader.get("require-pr", validators.boolean) is True,
    )


def _read_exports(reader: "_Reader", waiting: WaitSettings, roots: Sequence[Path]) -> list[ExportSettings]:
    domains: Sequence[str | None] = reader.get("domain", validators.domains) or [None]
    named = len(validators.lines_of(reader.text("domain")))  # however many of them can be used
    job_id, attaching = reader.get("job-id", validators.identifier), bool(reader.text("job-id"))
    if attaching and named > 1:
        reader.problem(
            "domain", f"names {named} domains, but job-id names one job; give the one domain that it belongs to, or none"
        )
    wait = reader.get("wait", validators.boolean) is not False
    if attaching and not wait:
        reader.problem("wait", "false starts a job and stops, but job-id names a job that is already started; remove one of them")
    start_options = reader.get("start-options", validators.start_options) or {}
    places = _read_places(reader, roots, domains, several=named > 1)
    for name, problem in overlaps(places):
        reader.problem(name, problem)
    version = reader.get("export-version", validators.identifier)
    min_pages = reader.get("min-pages", validators.whole_number, MAX_PAGES)
    mask_bundle_url = reader.get("mask-bundle-url", validators.boolean) is True
    temporary = [root for root in roots[1:] if is_usable(root)]
    nowhere = [None] * len(domains)
    bundles, sites, values = (places.get(name, nowhere) for name in _PLACES)
    return [
        ExportSettings(
            waiting=waiting,
            domain=domain,
            job_id=job_id,
            wait=wait,
            start_options=start_options,
            delivery=DeliverySettings(
                bundle=bundle,
                site=site,
                values=values_file,
                version=version,
                min_pages=min_pages,
                scratch=next((root for root in temporary if site is None or not root.resolve().is_relative_to(site.path)), None),
                mask_bundle_url=mask_bundle_url,
            ),
        )
        for domain, bundle, site, values_file in zip(domains, bundles, sites, values, strict=True)
    ]


def _read_places(
    reader: "_Reader", roots: Sequence[Path], domains: Sequence[str | None], *, several: bool
) -> dict[str, list[OutputPath]]:
    """Return the places of each input that names some, one for each domain."""
    places = {}
    for name, read in _PLACES.items():
        if PLACEHOLDER in reader.text(name) and any(wrong == "domain" for wrong, _ in reader.problems):
            continue  # nobody knows yet which places are meant
        given = reader.get(name, read_each, read, roots, domains, several=several)
        if given is not None:
            places[name] = given
    return places


def _without_effect(settings: ExportSettings) -> Iterator[str]:
    delivery = settings.delivery
    if settings.job_id is not None and settings.start_options:
        yield "Input `start-options` has no effect together with `job-id`: no job is started."
    if not settings.wait:
        values = (delivery.bundle, delivery.site, delivery.min_pages, delivery.values)
        for name, value in zip(("bundle-path", "site-path", "min-pages", "values-file"), values, strict=True):
            if value is not None:
                yield f"Input `{name}` has no effect together with `wait: false`: set it where `job-id` attaches to the job."
    if delivery.version is not None and delivery.values is None:
        yield "Input `export-version` has no effect without `values-file`."


class _Reader:
    """Reads inputs and collects what is wrong with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        # whole: an identifier that the key holds, such as the project's, is a good input
        self._redactor = Redactor([read_key(environ)], min_length=MIN_SECRET_LENGTH, parts=False)
        self._defaults = {known.name: known.default for known in INPUTS}
        self.problems: list[tuple[str, str]] = []

    def text(self, name: str) -> str:
        """Return an input's text, or its default if it is empty."""
        return _raw(self._environ, name) or self._defaults[name]

    def get(self, name: str, clean: Callable[Concatenate[str, P], T], *args: P.args, **options: P.kwargs) -> T | None:
        """Return what `clean` makes of an input's text and the other arguments, or `None` if it has no text or a mistake."""
        text = self.text(name)
        if not text:
            return None
        # the key is found in any form, also pasted with a line's end or something invisible inside
        visible = "".join(filter(str.isprintable, text)).replace(" ", "")  # the one space that is printable
        if name != "admin-key" and self._redactor.finds_in(visible):
            self.problem(name, "holds the admin key, which belongs only in `admin-key`")
            return None
        try:
            text.encode()
            return clean(text, *args, **options)
        except UnicodeEncodeError:
            self.problem(name, "is not valid UTF-8")
        except ValueError as error:
            self.problem(name, str(error))
        return None

    def require(self, name: str, how: str) -> None:
        """Record a mistake if an input is empty."""
        if not self.text(name):
            self.problem(name, f"missing: {how}")

    def problem(self, name: str, what: str) -> None:
        """Record a mistake, once however often it is found."""
        if (name, what) not in self.problems:
            self.problems.append((name, what))

    def misplaced(self, mode: str | None) -> list[str]:
        """Return a warning for each input that is set but belongs to another mode."""
        is_agents = mode == EXPORT and self.text("project-id") and self.text("job-id")
        return [
            f"Input `{known.name}` has no effect in mode `{mode}`; it belongs to mode `{known.modes[0]}`."
            + (" Did you mean `mode: agent`?" if known.name == "project-id" and is_agents else "")
            for known in INPUTS
            if mode not in known.modes and self.text(known.name) != known.default
        ]

    def failure(self) -> InvalidInput:
        """Return one error for all mistakes, in the order in which the inputs are documented."""
        problems = [(name, what) for name in self._defaults for wrong, what in self.problems if wrong == name]
        remedies = (DENIED_REMEDY if DENIED_BY in what else InvalidInput.default_remedy for _, what in problems)
        remedy = " ".join(dict.fromkeys(remedies))
        if len(problems) == 1:
            name, what = problems[0]
            return InvalidInput(f"Invalid input `{name}`: {what}", remedy=remedy)
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(name for name, _ in problems))
        return InvalidInput(
            f"{len(problems)} invalid inputs: {names}",
            details=tuple(f"`{name}`: {what}." for name, what in problems),
            remedy=remedy,
        )


def _raw(environ: Mapping[str, str], name: str) -> str:
    return environ.get(f"{_PREFIX}{name.upper()}", "").strip().strip("\ufeff").strip()

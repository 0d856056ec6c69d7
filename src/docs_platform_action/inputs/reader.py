"""Reads the inputs, and reports every mistake in them at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from ..errors import DENIED_BY, DENIED_REMEDY, InvalidInput
from ..models import EXPORT, MODES
from ..redaction import SHORTEST_TO_RECOGNISE, Redactor
from . import validators
from .paths import PLACEHOLDER, is_usable, overlaps, read_each, read_file_place, read_folder_place, read_path
from .settings import INPUTS, AgentSettings, ApiSettings, DeliverySettings, ExportSettings, Place, Plan, WaitSettings
from .validators import MOST_MISTAKES

T = TypeVar("T")

LONGEST_NAME: Final = 80
"""Characters that are shown of a name that is not an input."""

_PREFIX: Final = "INPUT_"

_OF_EVERY_CONTAINER: Final = frozenset({"args", "entrypoint"})
"""Keys that GitHub allows in `with:` for every container action (source: actions/runner, ContainerActionHandler.cs)."""


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
    mode = reader.get("mode", validators.mode)
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
        base_url=reader.get("base-url", validators.base_url) or "",
        admin_key=reader.get("admin-key", validators.admin_key) or "",
        outage_tolerance_seconds=reader.get("outage-tolerance", validators.duration) or 0.0,
        authorities_pem=reader.get("ca-bundle", lambda value: validators.certificates(read_path(value, roots).path)),
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


def _read_agent(reader: "_Reader", api: ApiSettings, waiting: WaitSettings) -> AgentSettings:
    return AgentSettings(
        api=api,
        waiting=waiting,
        project_id=reader.get("project-id", validators.identifier) or "",
        job_id=reader.get("job-id", validators.identifier) or "",
        require_pr=reader.get("require-pr", validators.boolean) is True,
    )


def _read_export(
    reader: "_Reader", api: ApiSettings, waiting: WaitSettings, roots: Sequence[Path], warnings: tuple[str, ...]
) -> Plan:
    domains, attaching = reader.get("domain", validators.domains) or [None], bool(reader.text("job-id"))
    named = len(validators.lines_of(reader.text("domain")))  # however many of them can be used
    if attaching and named > 1:
        reader.problem("domain", f"names {named} domains, but job-id one job; give the one domain that it belongs to, or none")
    first = ExportSettings(
        api=api,
        waiting=waiting,
        domain=domains[0],
        job_id=reader.get("job-id", validators.identifier),
        wait=reader.get("wait", validators.boolean) is not False,
        start_options=reader.get("start-options", validators.start_options) or {},
    )
    max_parallel = reader.get("max-parallel", validators.max_parallel) or 1
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
    version, min_pages = reader.get("export-version", validators.identifier), reader.get("min-pages", validators.min_pages)
    scratch = next((root for root in roots[1:] if is_usable(root)), None)
    mask_bundle_url = reader.get("mask-bundle-url", validators.boolean) is True

    def delivery_of(number: int) -> DeliverySettings:
        bundle, site, values = (given[number] if given is not None else None for given in found.values())
        apart = None if scratch is None or _within(scratch, site) else scratch
        return DeliverySettings(
            bundle=bundle,
            site=site,
            values=values,
            version=version,
            min_pages=min_pages,
            scratch=apart,
            mask_bundle_url=mask_bundle_url,
        )

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
        """Return an input's text, or its default if it is empty."""
        return _raw(self._environ, name) or self._defaults[name]

    def get(self, name: str, clean: Callable[[str], T]) -> T | None:
        """Return an input's value, or `None` if it has no text and no default. A mistake is recorded, and gives `None` too."""
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
        """Return whether an input has a mistake."""
        return any(name == wrong for wrong, _ in self.problems)

    def misplaced(self, mode: str) -> list[str]:
        """Return a warning for each input that is set but belongs to another mode."""
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

"""Reads the inputs, and reports all errors in them together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ..errors import DENIED_BY, DENIED_REMEDY, InvalidInput
from ..models import AGENT, EXPORT, MODES
from ..redaction import Redactor
from ..text import as_sentence
from . import validators
from .paths import PLACEHOLDER, overlaps, overlaps_with_env_file, read_targets
from .settings import INPUTS, AgentSettings, DeliverySettings, ExportSettings, OutputPath, Plan, WaitSettings

T = TypeVar("T")


def read_key(environ: Mapping[str, str]) -> str:
    """Return the admin key unchecked, so that it can be masked first."""
    return _raw(environ, "admin-key")


def read_names(environ: Mapping[str, str]) -> list[str]:
    """Return the names that the workflow gives to hosts, jobs and projects, unchecked."""
    names = ("base-url", "domain", "job-id", "project-id")
    return [line for name in names for line in validators.lines_of(_raw(environ, name))]


def read_mode(environ: Mapping[str, str]) -> str | None:
    """Return the mode, or `None` if there is no such mode."""
    mode = _raw(environ, "mode") or EXPORT
    return mode if mode in MODES else None


def unknown_inputs(environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each `INPUT_` variable that is not an input. Only the key's value is read, to hide it in names.

    The runner passes everything in `with:` (source: actions/runner, Handler.cs).
    """
    names = [known.name for known in INPUTS]
    given = {name.removeprefix("INPUT_").lower() for name in environ if name.startswith("INPUT_")}
    # GitHub allows `args` and `entrypoint` for every container action (source: actions/runner, ContainerActionHandler.cs)
    unknown = sorted(given - {*names, "args", "entrypoint", ""})
    if not unknown:
        return []
    from difflib import get_close_matches  # few runs need it

    redactor = Redactor([read_key(environ)])
    warnings = []
    for name in unknown[: validators.MAX_ERRORS_PER_INPUT]:
        nearest = get_close_matches(name.replace("_", "-"), names, n=1)
        suggestion = f"did you mean `{nearest[0]}`?" if nearest else "it has no effect."
        warnings.append(f"`{redactor.hide_keys(name)[:80]}` is not an input; {suggestion}")
    more = len(unknown) - validators.MAX_ERRORS_PER_INPUT
    return [*warnings, f"More names that are not inputs: {more}."] if more > 0 else warnings


def read_plan(environ: Mapping[str, str], *, roots: Sequence[Path], env_file: Path | None = None) -> Plan:
    """Read the inputs as the runner passes them, such as `INPUT_JOB-ID`. Raises `InvalidInput` with every error.

    `roots` are the folders that outlive the container: the workspace, then the runner's temporary folder if there is one.
    `env_file` is the file that `OUTPUT_ENV_FILE` names, if the run writes it.
    """
    reader = _Reader(environ)
    mode = reader.get("mode", validators.mode)  # of an unknown mode, the inputs of both are checked, but none is required
    reader.require("base-url", "set it to the address of the administrative API, such as https://api.example.com")
    reader.require(
        "admin-key",
        "set it from a secret. Secrets are empty if they do not exist, if the job does not name their environment, and in pull "
        "requests from forks",
    )
    if mode == EXPORT and not reader.text("job-id"):
        reader.require("domain", "mode export requires it, or `job-id` to attach to a job")
    if mode == AGENT:
        reader.require("project-id", "mode agent requires it; copy it from the dashboard's API keys page")
        reader.require("job-id", "mode agent requires the job to wait for")
    timeout, shortest, longest = map(reader.seconds, ("timeout", "poll-interval", "max-poll-interval"))
    if 0.0 < longest < shortest:
        minimum = reader.text("poll-interval")
        error = f"{reader.text('max-poll-interval')} is less than poll-interval, {minimum}; set it to {minimum} or more"
        reader.errors.append(("max-poll-interval", error))
    waiting = WaitSettings(timeout_seconds=timeout, shortest_pause_seconds=shortest, longest_pause_seconds=longest)
    jobs: list[ExportSettings | AgentSettings] = []
    max_parallel = None
    if mode != AGENT:
        max_parallel = reader.get("max-parallel", partial(validators.whole_number, maximum=validators.MAX_PARALLEL))
        jobs += _read_exports(reader, waiting, roots, env_file)
    if mode != EXPORT:
        project_id, job_id = reader.get("project-id", validators.identifier), reader.get("job-id", validators.identifier)
        require_pr = reader.get("require-pr", validators.boolean) is True
        jobs.append(AgentSettings(waiting=waiting, project_id=project_id or "", job_id=job_id or "", require_pr=require_pr))
    plan = Plan(
        base_url=reader.get("base-url", validators.base_url) or "",
        admin_key=reader.get("admin-key", validators.admin_key) or "",
        outage_tolerance_seconds=reader.seconds("outage-tolerance"),
        authorities_pem=reader.get("ca-bundle", partial(validators.certificates, roots=roots)),
        jobs=tuple(jobs),
        max_parallel=max_parallel or 1,
        warnings=tuple(reader.warnings(mode)),
    )
    if reader.errors:
        raise reader.failure()
    return plan


def _read_exports(reader: "_Reader", waiting: WaitSettings, roots: Sequence[Path], env_file: Path | None) -> list[ExportSettings]:
    lines = validators.lines_of(reader.text("domain"))
    domains: Sequence[str | None] = reader.get("domain", validators.domains) or [None] * max(len(lines), 1)
    wait = reader.get("wait", validators.boolean) is not False
    if reader.text("job-id") and len(lines) > 1:
        error = f"lists {len(lines)} domains, but `job-id` is the job of one; set that domain alone, or none"
        reader.errors.append(("domain", error))
    if reader.text("job-id") and not wait:
        error = "false only starts a job, but `job-id` is a job that has already started; remove one of them"
        reader.errors.append(("wait", error))
    job_id = reader.get("job-id", validators.identifier)
    start_options = reader.get("start-options", validators.start_options) or {}
    delivery = DeliverySettings(
        version=reader.get("export-version", validators.identifier),
        min_pages=reader.get("min-pages", partial(validators.whole_number, maximum=validators.MAX_PAGES)),
        mask_bundle_url=reader.get("mask-bundle-url", validators.boolean) is True,
    )
    export = ExportSettings(waiting=waiting, domain=None, job_id=job_id, wait=wait, start_options=start_options)
    exports = []
    for domain, (bundle, site, values) in zip(domains, _read_targets(reader, roots, domains, env_file), strict=True):
        own_delivery = replace(delivery, bundle=bundle, site=site, values=values)
        exports.append(replace(export, domain=domain, delivery=own_delivery))
    return exports


def _read_targets(
    reader: "_Reader", roots: Sequence[Path], domains: Sequence[str | None], env_file: Path | None
) -> Iterable[Sequence[OutputPath | None]]:
    """Return the bundle, the site and the values file of each domain."""
    names = ("bundle-path", "site-path", "values-file")
    targets: dict[str, Sequence[OutputPath]] = {}
    for name in names:
        if PLACEHOLDER in reader.text(name) and any(invalid == "domain" for invalid, _ in reader.errors):
            continue  # the paths are not known yet
        paths = reader.get(name, partial(read_targets, roots=roots, domains=domains, is_folder=name == "site-path"))
        if paths is not None:
            targets[name] = paths
    reader.errors += overlaps(targets)
    if env_file is not None:
        reader.errors += overlaps_with_env_file(targets, env_file)
    return zip(*(targets.get(name, [None] * len(domains)) for name in names), strict=True)


class _Reader:
    """Reads inputs and collects the errors in them: pairs of a name and what is wrong with the value."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._redactor = Redactor([read_key(environ)])
        self._defaults = {known.name: known.default for known in INPUTS}
        self.errors: list[tuple[str, str]] = []

    def text(self, name: str) -> str:
        """Return an input's text, or its default if it is empty."""
        return _raw(self._environ, name) or self._defaults[name]

    def get(self, name: str, read: Callable[[str], T]) -> T | None:
        """Return what `read` makes of an input's text, or `None` if the input is empty or invalid."""
        text = self.text(name)
        if not text:
            return None
        # the whole key, maybe pasted with a line break or an invisible character inside: a part of it may be the project's id
        if name != "admin-key" and self._redactor.has_whole_key(validators.visible(text)):
            error = "contains the admin key, which belongs only in `admin-key`"
        else:
            try:
                text.encode()
                return read(text)
            except UnicodeEncodeError:
                error = "is not valid UTF-8"
            except ValueError as invalid:
                error = str(invalid)
        self.errors.append((name, error))
        return None

    def seconds(self, name: str) -> float:
        """Return a duration, or 0 if it is invalid."""
        return self.get(name, validators.duration) or 0.0

    def require(self, name: str, hint: str) -> None:
        if not self.text(name):
            self.errors.append((name, f"missing; {hint}"))

    def warnings(self, mode: str | None) -> list[str]:
        """Return a warning for each input that is set but has no effect."""
        other_mode = [known for known in INPUTS if mode not in known.modes]
        reasons = {known.name: f"in mode `{mode}`; it belongs to mode `{known.modes[0]}`" for known in other_mode}
        if mode == EXPORT and self.text("job-id"):
            reasons["project-id"] += ". Did you mean `mode: agent`?"
            if self.get("start-options", validators.start_options):  # `{}` has no effect anyway
                reasons["start-options"] = "with `job-id`, because no job is started"
        if mode == EXPORT and self.text("wait").lower() == "false":
            reason = "with `wait: false`; set it in the step that attaches with `job-id`"
            reasons |= dict.fromkeys(("bundle-path", "site-path", "min-pages", "values-file"), reason)
        if mode == EXPORT and not self.text("values-file"):
            reasons["export-version"] = "without `values-file`"
        ineffective = [name for name in reasons if self.text(name) != self._defaults[name]]
        return [as_sentence(f"Input `{name}` has no effect {reasons[name]}") for name in ineffective]

    def failure(self) -> InvalidInput:
        """Return one exception for all errors, in the order in which the inputs are documented."""
        order = [*self._defaults]
        unique = dict.fromkeys(self.errors)  # with an unknown mode, some inputs are read twice
        errors = sorted(unique, key=lambda error: order.index(error[0]))
        remedies = (DENIED_REMEDY if DENIED_BY in text else InvalidInput.default_remedy for _, text in errors)
        remedy = " ".join(dict.fromkeys(remedies))
        if len(errors) == 1:
            name, text = errors[0]
            return InvalidInput(f"Invalid input `{name}`: {text}", remedy=remedy)
        names = ", ".join(dict.fromkeys(f"`{name}`" for name, _ in errors))
        details = tuple(f"`{name}`: {text}." for name, text in errors)
        return InvalidInput(f"{len(errors)} invalid inputs: {names}", details=details, remedy=remedy)


def _raw(environ: Mapping[str, str], name: str) -> str:
    return environ.get(f"INPUT_{name.upper()}", "").strip().strip("\ufeff").strip()

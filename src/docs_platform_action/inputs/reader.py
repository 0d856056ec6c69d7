"""Reads the inputs by the table, and reports all errors in them together."""

import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from ..errors import DENIED, DENIED_BY, InvalidInput
from ..redaction import Redactor
from ..text import as_sentence, join_errors, join_names, quoted
from .paths import (
    PLACEHOLDER,
    load_certificates,
    load_manifest,
    overlaps,
    readable,
    resolve_each,
    writable,
)
from .settings import (
    CommitSettings,
    DeliverySettings,
    JobSettings,
    Mode,
    OutputPath,
    Project,
    Settings,
    WaitSettings,
)
from .table import COMPARE_WITH, DEFAULTS, INPUTS, TARGETS
from .validators import EXAMPLE, project_errors, trimmed

T = TypeVar("T")
MAX_EDITS: Final = 2  # in a misspelled name, and at most a third of the right name's length
ENV_FILE: Final = "OUTPUT_ENV_FILE"


class Reader:
    """Reads the inputs of a step.

    `secrets` has both forms of the admin key and of the token, `warnings` is for the log.
    `mode` is `None` if there is no such mode.
    The runner passes everything in `with:`, `job-id` as `INPUT_JOB-ID` (source: actions/runner, Handler.cs). Outside a workflow
    `INPUT_JOB_ID` is the same input, because most shells cannot set a variable with a hyphen.
    """

    def __init__(self, environ: Mapping[str, str], *, in_workflow: bool) -> None:
        keys = _both_forms(environ, "ADMIN", "KEY")
        self.secrets = [*keys, *_both_forms(environ, "GITHUB", "TOKEN")]
        self.warnings: list[str] = []
        self._redactor = Redactor(keys)
        self._runner = {
            "github-api-url": environ.get("GITHUB_API_URL") if in_workflow else None,
            "github-repository": environ.get("GITHUB_REPOSITORY") if in_workflow else None,
            "github-server-url": environ.get("GITHUB_SERVER_URL") or "https://github.com",
        }
        self._errors: list[tuple[str, str]] = []  # each with the name of its input
        self._texts: dict[str, str] = {}
        self._values: dict[str, Any] = {}  # no entry for an input that is missing or invalid
        unknown: dict[
            str, str
        ] = {}  # the names as they are given, each with the name that it stands for
        for variable in sorted(environ):
            given = variable.removeprefix("INPUT_").lower()
            if (
                not given or variable != f"INPUT_{given.upper()}"
            ):  # the runner writes every name in upper case
                continue
            name = given if in_workflow else given.replace("_", "-")
            if name not in DEFAULTS:
                unknown[given] = name
            elif (text := trimmed(environ[variable])) and self._texts.setdefault(
                name, text
            ) != text:
                self._errors.append(
                    (
                        name,
                        "is set twice, with a hyphen and with an underscore, to different values; remove one",
                    )
                )
        self.mode = self._text("mode") if self._text("mode") in [*Mode] else None
        self._check_names(unknown)

    def read(self, *, roots: Sequence[Path], env_file: Path | None = None) -> Settings:
        """Return the settings. Raises `InvalidInput` with every error.

        `roots` are the folders that outlive the container: the workspace, then the runner's temporary folder if there is one.
        `env_file` is the file that `OUTPUT_ENV_FILE` names, if the run writes it.
        """
        self._parse()
        self._check_together()
        self._resolve_paths(roots, env_file)
        if self._errors:
            raise self._failure()
        self._warn_of_no_effect()
        values, jobs = self._values, []
        for number, (domain, project_id) in enumerate(self._sites):
            paths = {
                name: values[name] and values[name][number] for name in (*TARGETS, COMPARE_WITH)
            }
            own = {**values, "domain": domain, "project-id": project_id, **paths}
            own["waiting"], own["delivery"] = (
                _filled(WaitSettings, own),
                _filled(DeliverySettings, own),
            )
            jobs.append(_filled(JobSettings, own))
        deployment = (
            _filled(CommitSettings, {**values, **self._runner}) if values["commit"] else None
        )
        return _filled(Settings, {**values, "jobs": tuple(jobs), "deployment": deployment})

    @property
    def _sites(self) -> list[tuple[str | None, str | None]]:
        """The name of each site, and its project."""
        domains: Sequence[str | None] = self._values.get("domain") or [None]
        projects: Sequence[Project] = self._values.get("project-id") or []
        if not projects:
            return [(domain, None) for domain in domains]
        return [(project.label or domains[0], project.project_id) for project in projects]

    @property
    def _checks_delivery(self) -> bool:
        """Whether inputs about delivery are checked: an invalid `wait` hides no errors of them."""
        return bool(self._values.get("wait", True))

    def _text(self, name: str) -> str:
        return self._texts.get(name) or DEFAULTS[name]

    def _is_set(self, name: str) -> bool:
        """Return whether an input differs from its default, which the runner passes too."""
        return self._text(name) != DEFAULTS[name]

    def _check_names(self, unknown: Mapping[str, str]) -> None:
        """Refuse the names that are close to that of an input: a guard that is misspelled does not guard."""
        others, unset = [], [known for known in DEFAULTS if not self._is_set(known)]
        for given, name in unknown.items():
            shown = f"`{self._redactor.hide_key(given)[:80]}`"
            meant = next(
                (
                    known
                    for known in unset
                    if is_close(name, known, min(MAX_EDITS, len(known) // 3))
                ),
                None,
            )
            if meant is not None:
                self._errors.append((meant, f"{shown} is not an input; did you mean `{meant}`?"))
            else:
                others.append(shown)
        if others:
            self.warnings.append(
                f"Names that are not inputs have no effect: {join_errors(others)}."
            )

    @contextmanager
    def _reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            self._errors.append((name, str(error)))

    def _parse(self) -> None:
        values = self._values
        for row in INPUTS:
            modes = (
                [values["mode"]] if "mode" in values else [*Mode]
            )  # of an unknown mode, every input is read
            text = self._text(row.name) if any(mode in row.modes for mode in modes) else row.default
            with self._reporting(row.name):
                is_required = all(mode in row.required_in for mode in modes)
                if row.unless and self._is_set(row.unless):
                    is_required = False
                if not text and is_required and row.name not in dict(self._errors):
                    raise ValueError(
                        ". ".join(
                            filter(None, [f"missing; mode `{modes[0]}` requires it", row.hint])
                        )
                    )
                if row.name != "admin-key" and self._redactor.has_key(text):
                    raise ValueError("contains the admin key, which belongs only in `admin-key`")
                values[row.name] = row.parse(text) if text else None

    def _check_together(self) -> None:
        """Check what concerns two inputs."""
        values, errors = self._values, self._errors
        mode, domains = values.get("mode"), values.get("domain") or []
        if values.get("max-poll-interval", math.inf) < values.get("poll-interval", 0.0):
            minimum = self._text("poll-interval")
            error = f"{self._text('max-poll-interval')} is less than poll-interval, {minimum}; set it to {minimum} or more"
            errors.append(("max-poll-interval", error))
        if mode == Mode.EXPORT and self._is_set("job-id"):
            question = ", or did you mean `mode: agent`?" if self._is_set("project-id") else ""
            error = f"mode `export` starts a new job; to collect this one, set `mode: collect`{question}"
            errors.append(("job-id", error))
        if mode in {Mode.COLLECT, Mode.UNPACK} and len(domains) > 1:
            error = f"lists {len(domains)} domains, but mode `{mode}` delivers one bundle; set one domain, or none"
            errors.append(("domain", error))
            values["domain"] = domains[:1]
        self._check_projects(mode, domains, values.get("project-id") or [])
        if mode == Mode.EXPORT and self._is_set("commit"):
            for name, usual in (
                ("github-token", "`${{ github.token }}`"),
                ("deployment-creator", "`docs-platform[bot]`"),
            ):
                if not self._is_set(name):
                    errors.append((name, f"missing; `commit` requires it, such as {usual}"))
            if not all(self._runner.values()):
                error = "works only in a workflow, whose runner sets GITHUB_REPOSITORY and GITHUB_API_URL; remove it"
                errors.append(("commit", error))
        for row in INPUTS if self._checks_delivery else ():  # else it has no effect anyway
            if row.needs and values.get(row.name) and not self._is_set(row.needs):
                errors.append(
                    (
                        row.name,
                        f"has no effect without `{row.needs}`; set both, or remove `{row.name}`",
                    )
                )

    def _check_projects(
        self,
        mode: Mode | None,
        domains: Sequence[str],
        projects: Sequence[Project],
    ) -> None:
        """Check `project-id`, together with the mode, `domain` and `min-pages`."""
        values = self._values
        errors = self._errors
        label = projects[0].label if projects else None
        if mode in {Mode.COLLECT, Mode.AGENT} and len(projects) > 1:
            count = len(projects)
            error = f"lists {count} projects, but mode `{mode}` is about one job; set one project"
            errors.append(("project-id", error))
            values["project-id"] = projects[:1]
        elif mode == Mode.AGENT and label is not None:
            error = f"has a label, which mode `agent` does not use; write {projects[0].project_id}"
            errors.append(("project-id", error))
        elif mode != Mode.AGENT and (mistakes := project_errors(projects)):
            errors.append(("project-id", join_errors(mistakes)))
            del values["project-id"]
        if projects and domains and (len(projects) > 1 or len(domains) > 1):
            instead = f"write each domain before its project, {EXAMPLE}, and remove `domain`"
            error = f"with several sites, `project-id` names them all; {instead}"
            errors.append(("domain", error))
        elif projects and domains and label is not None:
            error = f"names the site, as does the label {quoted(label)} in `project-id`; remove one"
            errors.append(("domain", error))
        if not self._is_set("project-id") or not self._checks_delivery:
            return
        if values.get("min-pages") and not self._is_set("site-path"):
            reason = "because such an export reports no number of pages"
            error = f"needs `site-path` with `project-id`, {reason}"
            errors.append(("min-pages", f"{error}; set both, or remove `min-pages`"))

    def _resolve_paths(self, roots: Sequence[Path], env_file: Path | None) -> None:
        """Replace the paths to write to by those of each domain, and the path of the certificates by the certificates."""
        values, found = self._values, dict[str, Sequence[OutputPath]]()
        if env_file is not None:  # a link at the path itself is replaced
            folder = Path(os.path.realpath(env_file.parent))
            found[ENV_FILE] = [
                OutputPath(path=folder / env_file.name, root=folder, name=str(env_file))
            ]
        domains = [domain for domain, _ in self._sites]
        for name in filter(values.get, (*TARGETS, COMPARE_WITH)):
            path = values[name]
            is_named = "domain" in values and "project-id" in values
            if PLACEHOLDER in path and not is_named:
                continue
            with self._reporting(name):
                if name != COMPARE_WITH:
                    is_read = name == "bundle-path" and values.get("mode") == Mode.UNPACK
                    use = (
                        readable
                        if is_read
                        else partial(writable, roots=roots, is_folder=name == "site-path")
                    )
                    found[name] = values[name] = resolve_each(path, roots, domains, use)
                else:
                    found[name] = resolve_each(path, roots, domains, lambda _, target: target)
                    load = partial(load_manifest, is_first=values.get("first-publication", False))
                    values[name] = None
                    if self._checks_delivery:
                        values[name] = resolve_each(path, roots, domains, load)
        if (
            values.get("first-publication")
            and isinstance(published := values.get(COMPARE_WITH), list)
            and all(published)
        ):
            error = (
                "is `true`, but the manifest of `compare-with` exists; remove `first-publication`"
            )
            self._errors.append(("first-publication", error))
        self._errors += overlaps(found)
        if values.get("ca-bundle"):
            with self._reporting("ca-bundle"):
                values["ca-bundle"] = load_certificates(values["ca-bundle"], roots)

    def _warn_of_no_effect(self) -> None:
        mode, waits = self._values["mode"], self._values["wait"]
        if (
            self._values["deployment-creator"] and not self._values["commit"]
        ):  # both are empty in another mode
            self.warnings.append(
                "Input `deployment-creator` has no effect without `commit`: the run does not wait for a deployment."
            )
        for row in filter(lambda row: self._is_set(row.name), INPUTS):
            effect = f"Input `{row.name}` has no effect"
            if mode not in row.modes:
                self.warnings.append(
                    f"{effect} in mode `{mode}`, only in {join_names(row.modes, 'and')}."
                )
            elif row.is_about_delivery and not waits:
                self.warnings.append(
                    f"{effect} with `wait: false`; set it in the step that collects the job with `mode: collect`."
                )

    def _failure(self) -> InvalidInput:
        """Return one exception for all errors."""
        remedies = (
            DENIED["remedy"] if DENIED_BY in text else InvalidInput.default_remedy
            for _, text in self._errors
        )
        remedy = " ".join(dict.fromkeys(remedies))
        if len(self._errors) == 1:
            name, text = self._errors[0]
            return InvalidInput(f"Invalid input `{name}`: {text}", remedy=remedy)
        names = ", ".join(dict.fromkeys(f"`{name}`" for name, _ in self._errors))
        details = tuple(as_sentence(f"`{name}`: {text}") for name, text in self._errors)
        return InvalidInput(f"Invalid inputs: {names}", details=details, remedy=remedy)


def _both_forms(environ: Mapping[str, str], *words: str) -> list[str]:
    """Return the values of an input with a hyphen and with an underscore."""
    return [*filter(None, (trimmed(environ.get(f"INPUT_{mark.join(words)}", "")) for mark in "-_"))]


def _filled(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Return settings whose fields are named after inputs: `timeout_seconds` is `timeout`."""
    names = {
        field: field.removesuffix("_seconds").replace("_", "-")
        for field in inspect.signature(kind).parameters
    }
    return kind(**{field: values[name] for field, name in names.items()})


def is_close(one: str, other: str, edits: int) -> bool:
    """Return whether at most so many edits make one text from another.

    An edit inserts, deletes or replaces a character, or swaps it with the next one.
    """
    if one and one[0] == other[:1]:
        return is_close(one[1:], other[1:], edits)
    edited = [(one[1:], other), (one, other[1:]), (one[1:], other[1:])]
    if one[:2] == other[1::-1]:
        edited.append((one[2:], other[2:]))
    return one == other or (edits > 0 and any(is_close(*pair, edits - 1) for pair in edited))

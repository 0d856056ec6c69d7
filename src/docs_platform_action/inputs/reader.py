"""Reads the inputs by the table, and reports all mistakes in them together."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ..manifest import FileDigests
from ..models import OutputPath
from . import table
from .checks import (
    check_commit,
    check_intervals,
    check_job_id,
    check_min_pages,
    check_needs,
    warnings_of_no_effect,
)
from .given import GivenInputs
from .mistakes import Mistakes
from .paths import (
    PLACEHOLDER,
    for_each_site,
    load_certificates,
    load_manifest,
    overlaps,
    path_of_new_file,
    readable,
    resolve,
    writable,
)
from .settings import (
    AgentSettings,
    CollectSettings,
    CommitSettings,
    DeliverySettings,
    ExportSettings,
    PlatformSettings,
    PublicationSettings,
    Settings,
    SiteSettings,
    UnpackSettings,
    WaitSettings,
)
from .sites import Site, read_sites
from .table import TARGETS, Input, Mode
from .values import InputValues

ENV_FILE: Final = "OUTPUT_ENV_FILE"


class Reader:
    """Reads the inputs of a step.

    `secrets` is to be masked, and `warnings` is for the log.
    `mode` is `None` if there is no such mode.
    """

    def __init__(self, environ: Mapping[str, str], *, in_workflow: bool) -> None:
        given = GivenInputs(environ, in_workflow=in_workflow)
        self.secrets = given.secrets
        self.warnings: list[str] = []
        self._mistakes = Mistakes()
        given.check_names(self._mistakes, self.warnings)
        self._values = InputValues(given, self._mistakes)
        self.mode = self._values.mode
        self._github_api_url = ""
        self._github_repository = ""
        self._github_server_url = environ.get("GITHUB_SERVER_URL") or "https://github.com"
        if in_workflow:
            self._github_api_url = environ.get("GITHUB_API_URL", "")
            self._github_repository = environ.get("GITHUB_REPOSITORY", "")
        self._sites: Sequence[Site] = ()
        self._targets: dict[str, Sequence[OutputPath]] = {}  # of each site, by input
        self._published: Sequence[Mapping[bytes, FileDigests]] | None = None  # of each site
        self._certificates: str | None = None

    def read(self, *, roots: Sequence[Path], env_file: Path | None = None) -> Settings:
        """Return the settings. Raises `InvalidInput` with every mistake.

        `roots` are the folders that outlive the container: the workspace, then the runner's
        temporary folder if there is one. `env_file` is the file that `OUTPUT_ENV_FILE` names, if
        the run writes it.
        """
        has_github = bool(self._github_api_url and self._github_repository)
        self._values.check()
        check_intervals(self._values, self._mistakes)
        check_job_id(self._values, self._mistakes)
        self._sites = read_sites(self._values, self._mistakes)
        check_min_pages(self._values, self._mistakes)
        check_commit(self._values, self._mistakes, has_github=has_github)
        check_needs(self._values, self._mistakes)
        self._resolve_paths(roots, env_file)
        self._mistakes.check()
        self.warnings += warnings_of_no_effect(self._values)
        match self._values.required(table.MODE):
            case Mode.EXPORT:
                return self._export_settings()
            case Mode.COLLECT:
                return self._collect_settings()
            case Mode.UNPACK:
                return self._unpack_settings()
            case Mode.AGENT:
                return self._agent_settings()

    # The paths of each site.

    def _resolve_paths(self, roots: Sequence[Path], env_file: Path | None) -> None:
        """Find the paths of each site, and read the published manifests and the certificates."""
        for row in TARGETS:
            self._resolve_target(row, roots)
        found = dict(self._targets)
        if env_file is not None:
            found[ENV_FILE] = [path_of_new_file(env_file)]
        found |= self._resolve_compared(roots)
        for name, error in overlaps(found):
            self._mistakes.add(name, error)
        certificates = self._values.value(table.CA_BUNDLE)
        if certificates is not None:
            with self._mistakes.reported("ca-bundle"):
                self._certificates = load_certificates(certificates, roots)

    def _resolve_target(self, row: Input[str], roots: Sequence[Path]) -> None:
        path = self._values.value(row)
        if path is None or self._has_refused_names(path):
            return
        use = partial(writable, roots=roots, is_folder=row is table.SITE_PATH)
        if row is table.BUNDLE_PATH and self.mode == Mode.UNPACK:
            use = partial(readable, roots=roots)
        with self._mistakes.reported(row.name):
            self._targets[row.name] = for_each_site(path, self._site_names, use)

    def _resolve_compared(self, roots: Sequence[Path]) -> Mapping[str, Sequence[OutputPath]]:
        """Read each published manifest, if the run delivers a site. Return their paths.

        Refuses `first-publication` if every site has a manifest.
        """
        path = self._values.value(table.COMPARE_WITH)
        if path is None or self._has_refused_names(path):
            return {}
        is_first = self._values.value(table.FIRST_PUBLICATION) or False
        found: dict[str, Sequence[OutputPath]] = {}
        with self._mistakes.reported("compare-with"):
            names = self._site_names
            found["compare-with"] = for_each_site(path, names, partial(resolve, roots=roots))
            if self._values.delivers:
                load = partial(load_manifest, roots=roots, is_first=is_first)
                self._published = for_each_site(path, names, load)
        # the input is for all sites: it is of use while one of them has no manifest, so no digests
        is_each_published = self._published is not None and all(self._published)
        if is_first and is_each_published:
            fact = "is `true`, but the manifest of `compare-with` exists"
            self._mistakes.add("first-publication", f"{fact}; remove `first-publication`")
        return found

    def _has_refused_names(self, path: str) -> bool:
        """Return whether a path has `{domain}`, but the names for it are refused.

        An error about the path would only follow from that one.
        """
        are_valid = self._values.is_valid(table.DOMAIN) and self._values.is_valid(table.PROJECT_ID)
        return PLACEHOLDER in path and not are_valid

    @property
    def _site_names(self) -> Sequence[str | None]:
        return [site.name for site in self._sites]

    # The settings of each mode, from inputs that have no mistakes.

    def _export_settings(self) -> ExportSettings:
        return ExportSettings(
            platform=self._platform_settings(),
            sites=tuple(self._site_settings(number) for number in range(len(self._sites))),
            start_timeout_seconds=self._values.required(table.START_TIMEOUT),
            start_options=self._values.value(table.START_OPTIONS) or {},
            wait=self._values.required(table.WAIT),
            waiting=self._wait_settings(),
            max_parallel=self._values.required(table.PARALLEL),
            commit=self._commit_settings(),
        )

    def _collect_settings(self) -> CollectSettings:
        return CollectSettings(
            platform=self._platform_settings(),
            job_id=self._values.required(table.JOB_ID),
            site=self._site_settings(0),
            waiting=self._wait_settings(),
        )

    def _unpack_settings(self) -> UnpackSettings:
        return UnpackSettings(
            domain=self._sites[0].name,
            bundle_path=self._targets["bundle-path"][0],
            bundle_sha256=self._values.required(table.BUNDLE_SHA256),
            site_path=self._targets["site-path"][0],
            publication=self._publication_settings(0),
        )

    def _agent_settings(self) -> AgentSettings:
        (project,) = self._values.required(table.PROJECT_ID)
        return AgentSettings(
            platform=self._platform_settings(),
            project_id=project.project_id,
            job_id=self._values.required(table.JOB_ID),
            waiting=self._wait_settings(),
            require_pr=self._values.required(table.REQUIRE_PR),
        )

    def _platform_settings(self) -> PlatformSettings:
        return PlatformSettings(
            base_url=self._values.required(table.BASE_URL),
            admin_key=self._values.required(table.ADMIN_KEY),
            outage_tolerance_seconds=self._values.required(table.OUTAGE_TOLERANCE),
            ca_bundle=self._certificates,
        )

    def _wait_settings(self) -> WaitSettings:
        return WaitSettings(
            timeout_seconds=self._values.required(table.TIMEOUT),
            poll_interval_seconds=self._values.required(table.POLL_INTERVAL),
            max_poll_interval_seconds=self._values.required(table.MAX_POLL_INTERVAL),
        )

    def _commit_settings(self) -> CommitSettings | None:
        commit = self._values.value(table.COMMIT)
        if commit is None:
            return None
        return CommitSettings(
            commit=commit,
            commit_timeout_seconds=self._values.required(table.COMMIT_TIMEOUT),
            github_token=self._values.required(table.GITHUB_TOKEN),
            deployment_creator=self._values.required(table.DEPLOYMENT_CREATOR),
            deployment_environment=self._values.value(table.DEPLOYMENT_ENVIRONMENT),
            github_api_url=self._github_api_url,
            github_server_url=self._github_server_url,
            github_repository=self._github_repository,
        )

    def _site_settings(self, number: int) -> SiteSettings:
        site = self._sites[number]
        delivery = DeliverySettings(
            bundle_path=self._target(table.BUNDLE_PATH, number),
            site_path=self._target(table.SITE_PATH, number),
            publication=self._publication_settings(number),
            values_file=self._target(table.VALUES_FILE, number),
            export_version=self._values.value(table.EXPORT_VERSION),
            mask_bundle_url=self._values.required(table.MASK_BUNDLE_URL),
        )
        return SiteSettings(domain=site.name, project_id=site.project_id, delivery=delivery)

    def _publication_settings(self, number: int) -> PublicationSettings:
        return PublicationSettings(
            min_pages=self._values.value(table.MIN_PAGES),
            manifest_path=self._target(table.MANIFEST_PATH, number),
            compare_with=self._published[number] if self._published is not None else None,
            changes_path=self._target(table.CHANGES_PATH, number),
            max_removed=self._values.value(table.MAX_REMOVED),
        )

    def _target(self, row: Input[str], number: int) -> OutputPath | None:
        targets = self._targets.get(row.name)
        return targets[number] if targets is not None else None

"""Reads the inputs by the table, and reports all mistakes in them together."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from ..models import Manifest, OutputPath
from ..site.page import is_page
from ..text import quoted
from . import table
from .checked import Inputs
from .checks import (
    check_commit,
    check_intervals,
    check_job_id,
    check_max_removed,
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
)
from .sites import Site, read_sites
from .table import PATHS, Input, PathInput
from .values import InputValues

ENV_FILE: Final = "OUTPUT_ENV_FILE"

T = TypeVar("T")


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

    def read(self, *, roots: Sequence[Path], env_file: Path | None = None) -> Inputs:
        """Return the inputs. Raises `InvalidInput` with every mistake.

        `roots` are the folders that outlive the container: the workspace, then the runner's
        temporary folder if there is one. `env_file` is the file that `OUTPUT_ENV_FILE` names, if
        the run writes it.
        """
        self._values.check()
        check_intervals(self._values, self._mistakes)
        check_job_id(self._values, self._mistakes)
        sites = read_sites(self._values, self._mistakes)
        check_min_pages(self._values, self._mistakes)
        check_commit(
            self._values,
            sites,
            self._mistakes,
            api_url=self._github_api_url,
            repository=self._github_repository,
        )
        check_needs(self._values, self._mistakes)
        paths = self._resolve_paths(sites, roots)
        compared = self._resolve_compared(sites, roots)
        published = None
        if compared and self._values.delivers:
            published = self._load_published(sites, roots)
        self._check_overlaps({**paths, table.COMPARE_WITH.name: compared}, env_file)
        certificates = self._load_certificates(roots)
        self._mistakes.check()
        self.warnings += warnings_of_no_effect(self._values)
        return Inputs(
            values=self._values,
            sites=sites,
            paths=paths,
            published=published,
            certificates=certificates,
            github_api_url=self._github_api_url,
            github_server_url=self._github_server_url,
            github_repository=self._github_repository,
        )

    def _resolve_paths(
        self, sites: Sequence[Site], roots: Sequence[Path]
    ) -> dict[str, Sequence[OutputPath]]:
        """Return the paths of each site, by input."""
        found = {}
        for row in PATHS:
            paths = self._resolve_path(row, sites, roots)
            if paths is not None:
                found[row.name] = paths
        return found

    def _resolve_path(
        self, row: PathInput, sites: Sequence[Site], roots: Sequence[Path]
    ) -> Sequence[OutputPath] | None:
        use = readable if self.mode in row.read_in else row.resolve
        return self._use_path(row, sites, lambda path: use(path, roots))

    def _resolve_compared(
        self, sites: Sequence[Site], roots: Sequence[Path]
    ) -> Sequence[OutputPath]:
        """Return the path of each published manifest, if there are any."""
        return self._use_path(table.COMPARE_WITH, sites, partial(resolve, roots=roots)) or []

    def _load_published(
        self, sites: Sequence[Site], roots: Sequence[Path]
    ) -> Sequence[Manifest] | None:
        """Read each published manifest.

        Refuses `first-publication` if every site has a manifest, and `max-removed` if one of them
        lists no page.
        """
        is_first = self._values.value(table.FIRST_PUBLICATION) or False
        without_pages: list[str] = []

        def load(path: str) -> Manifest:
            manifest = load_manifest(path, roots, is_first=is_first)
            if manifest.files and not any(is_page(name) for name in manifest.files):
                without_pages.append(quoted(path))
            return manifest

        published = self._use_path(table.COMPARE_WITH, sites, load)
        check_max_removed(self._values, without_pages, self._mistakes)
        # the input is for all sites: it is needed while one of them has no manifest
        is_each_published = published is not None and all(manifest.files for manifest in published)
        if is_first and is_each_published:
            fact = "is `true`, but the manifest of `compare-with` exists"
            self._mistakes.add("first-publication", f"{fact}; remove `first-publication`")
        return published

    def _use_path(
        self, row: Input[str], sites: Sequence[Site], use: Callable[[str], T]
    ) -> Sequence[T] | None:
        """Return what `use` makes of the path of each site, unless it is empty or invalid."""
        path = self._values.value(row)
        if path is None or self._has_refused_names(path):
            return None
        with self._mistakes.reported(row.name):
            return for_each_site(path, [site.name for site in sites], use)
        return None

    def _has_refused_names(self, path: str) -> bool:
        """Return whether a path has `{domain}`, but the names for it are refused.

        An error about the path would only follow from that one.
        """
        are_valid = self._values.is_valid(table.DOMAIN) and self._values.is_valid(table.PROJECT_ID)
        return PLACEHOLDER in path and not are_valid

    def _check_overlaps(
        self, paths: Mapping[str, Sequence[OutputPath]], env_file: Path | None
    ) -> None:
        """Report paths that overlap with each other, or with the file of outputs."""
        places = dict(paths)
        if env_file is not None:
            places[ENV_FILE] = [path_of_new_file(env_file)]
        for name, error in overlaps(places):
            self._mistakes.add(name, error)

    def _load_certificates(self, roots: Sequence[Path]) -> str | None:
        path = self._values.value(table.CA_BUNDLE)
        if path is None:
            return None
        with self._mistakes.reported("ca-bundle"):
            return load_certificates(path, roots)
        return None

"""The table of inputs. Each row is an input, in the order of `action.yml`."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from ..models import OutputPath
from ..text import join_names, quoted
from .paths import writable
from .validators import (
    parse_base_url,
    parse_boolean,
    parse_domains,
    parse_duration,
    parse_hexadecimal,
    parse_identifier,
    parse_key,
    parse_max_removed,
    parse_path,
    parse_projects,
    parse_start_options,
    parse_whole_number,
)

T_co = TypeVar("T_co", covariant=True)


class Mode(StrEnum):
    """What a run does."""

    EXPORT = "export"
    COLLECT = "collect"
    UNPACK = "unpack"
    AGENT = "agent"


# the modes that need the platform, and a key for it
PLATFORM_MODES: Final = (Mode.EXPORT, Mode.COLLECT, Mode.AGENT)


@dataclass(frozen=True)
class Input(Generic[T_co]):
    """An input of the action.

    `parse` raises `ValueError` with a text that completes "Invalid input `x`: …".
    """

    name: str
    parse: Callable[[str], T_co]
    modes: Sequence[Mode]
    _: KW_ONLY
    default: str = ""
    required_in: Sequence[Mode] = ()
    unless: str = ""  # another input, with which it is not required
    hint: str = ""  # what to do if it is missing
    workflow_hint: str = ""  # the same, but only in a workflow
    needs: str = ""  # another input, without which it is refused
    several_in: Sequence[Mode] = ()  # of sites: the modes in which it may have several lines
    is_about_delivery: bool = False  # no effect with `wait: false`


@dataclass(frozen=True)
class PathInput(Input[str]):
    """An input with the path of each site, in which a label or a domain replaces `{domain}`.

    `resolve` is a function of `paths.py`, which is called with the roots. It raises `ValueError`
    or `OSError`.
    """

    _: KW_ONLY
    resolve: Callable[[str, Sequence[Path]], OutputPath]
    read_in: Sequence[Mode] = ()  # the modes in which it is a file to read


def parse_mode(value: str) -> Mode:
    """Return the mode with this name."""
    if value not in [*Mode]:
        raise ValueError(f"unknown mode {quoted(value)}; use {join_names(Mode, 'or')}")
    return Mode(value)


_ALL: Final = tuple(Mode)
_EXPORT: Final = (Mode.EXPORT,)
_UNPACK: Final = (Mode.UNPACK,)
_AGENT: Final = (Mode.AGENT,)
_EXPORT_COLLECT: Final = (Mode.EXPORT, Mode.COLLECT)
_COLLECT_AGENT: Final = (Mode.COLLECT, Mode.AGENT)
_SITE: Final = (Mode.EXPORT, Mode.COLLECT, Mode.UNPACK)  # the modes that deliver a site

MAX_PARALLEL: Final = 100
MAX_PAGES: Final = 999_999_999

_EMPTY_KEY: Final = (
    "A secret is empty if it does not exist, if the job does not name its environment, "
    "and in runs without secrets: pull requests from forks, Dependabot (which has its own), "
    "workflows called without `secrets: inherit`"
)
_EMPTY_OUTPUT: Final = (
    "The output it comes from may be empty: check its name, its step, and the `outputs` of its job"
)
_BY_PROJECT: Final = "If your platform exports projects, set `project-id` instead"
_COPY_PROJECT: Final = "Copy it from the dashboard's API keys page"

MODE: Final = Input("mode", parse_mode, _ALL, default=Mode.EXPORT)
BASE_URL: Final = Input("base-url", parse_base_url, PLATFORM_MODES, required_in=PLATFORM_MODES)
ADMIN_KEY: Final = Input(
    "admin-key",
    parse_key,
    PLATFORM_MODES,
    required_in=PLATFORM_MODES,
    workflow_hint=_EMPTY_KEY,
)
DOMAIN: Final = Input(
    "domain",
    parse_domains,
    _SITE,
    required_in=_EXPORT,
    unless="project-id",
    several_in=_EXPORT,
    hint=_BY_PROJECT,
)
PROJECT_ID: Final = Input(
    "project-id",
    parse_projects,
    PLATFORM_MODES,
    required_in=_AGENT,
    several_in=_EXPORT,
    hint=_COPY_PROJECT,
)
JOB_ID: Final = Input(
    "job-id",
    parse_identifier,
    _COLLECT_AGENT,
    required_in=_COLLECT_AGENT,
    workflow_hint=_EMPTY_OUTPUT,
)
START_TIMEOUT: Final = Input("start-timeout", parse_duration, _EXPORT, default="75m")
TIMEOUT: Final = Input("timeout", parse_duration, PLATFORM_MODES, default="60m")
WAIT: Final = Input("wait", parse_boolean, _EXPORT, default="true")
COMMIT: Final = Input(
    "commit",
    partial(parse_hexadecimal, what="a full SHA, such as `${{ github.sha }}`", digits=40),
    _EXPORT,
)
GITHUB_TOKEN: Final = Input("github-token", parse_key, _EXPORT)
DEPLOYMENT_CREATOR: Final = Input("deployment-creator", parse_identifier, _EXPORT)
DEPLOYMENT_ENVIRONMENT: Final = Input("deployment-environment", parse_identifier, _EXPORT)
COMMIT_TIMEOUT: Final = Input("commit-timeout", parse_duration, _EXPORT, default="20m")
POLL_INTERVAL: Final = Input("poll-interval", parse_duration, PLATFORM_MODES, default="1s")
MAX_POLL_INTERVAL: Final = Input(
    "max-poll-interval",
    parse_duration,
    PLATFORM_MODES,
    default="30s",
)
OUTAGE_TOLERANCE: Final = Input("outage-tolerance", parse_duration, PLATFORM_MODES, default="5m")
START_OPTIONS: Final = Input("start-options", parse_start_options, _EXPORT)
PARALLEL: Final = Input(
    "max-parallel",
    partial(parse_whole_number, maximum=MAX_PARALLEL),
    _EXPORT,
    default="10",
)
BUNDLE_PATH: Final = PathInput(
    "bundle-path",
    parse_path,
    _SITE,
    resolve=writable,
    read_in=_UNPACK,
    required_in=_UNPACK,
    is_about_delivery=True,
)
BUNDLE_SHA256: Final = Input(
    "bundle-sha256",
    partial(parse_hexadecimal, what="a SHA-256, such as the output `bundleSha256`", digits=64),
    _UNPACK,
    required_in=_UNPACK,
    workflow_hint=_EMPTY_OUTPUT,
)
SITE_PATH: Final = PathInput(
    "site-path",
    parse_path,
    _SITE,
    resolve=partial(writable, is_folder=True),
    required_in=_UNPACK,
    is_about_delivery=True,
)
MIN_PAGES: Final = Input(
    "min-pages",
    partial(parse_whole_number, maximum=MAX_PAGES, if_zero="; leave it out for no minimum"),
    _SITE,
    is_about_delivery=True,
)
VALUES_FILE: Final = PathInput(
    "values-file", parse_path, _EXPORT_COLLECT, resolve=writable, is_about_delivery=True
)
MANIFEST_PATH: Final = PathInput(
    "manifest-path",
    parse_path,
    _SITE,
    resolve=writable,
    needs="site-path",
    is_about_delivery=True,
)
COMPARE_WITH: Final = Input(
    "compare-with",
    parse_path,
    _SITE,
    needs="site-path",
    is_about_delivery=True,
)
FIRST_PUBLICATION: Final = Input(
    "first-publication",
    parse_boolean,
    _SITE,
    default="false",
    needs="compare-with",
    is_about_delivery=True,
)
CHANGES_PATH: Final = PathInput(
    "changes-path",
    parse_path,
    _SITE,
    resolve=writable,
    needs="compare-with",
    is_about_delivery=True,
)
MAX_REMOVED: Final = Input(
    "max-removed",
    parse_max_removed,
    _SITE,
    needs="compare-with",
    is_about_delivery=True,
)
EXPORT_VERSION: Final = Input(
    "export-version",
    parse_identifier,
    _EXPORT_COLLECT,
    needs="values-file",
    is_about_delivery=True,
)
MASK_BUNDLE_URL: Final = Input(
    "mask-bundle-url",
    parse_boolean,
    _EXPORT_COLLECT,
    default="false",
    is_about_delivery=True,
)
REQUIRE_PR: Final = Input("require-pr", parse_boolean, _AGENT, default="false")
CA_BUNDLE: Final = Input("ca-bundle", parse_path, PLATFORM_MODES)

INPUTS: Final[Sequence[Input[object]]] = (
    MODE,
    BASE_URL,
    ADMIN_KEY,
    DOMAIN,
    PROJECT_ID,
    JOB_ID,
    START_TIMEOUT,
    TIMEOUT,
    WAIT,
    COMMIT,
    GITHUB_TOKEN,
    DEPLOYMENT_CREATOR,
    DEPLOYMENT_ENVIRONMENT,
    COMMIT_TIMEOUT,
    POLL_INTERVAL,
    MAX_POLL_INTERVAL,
    OUTAGE_TOLERANCE,
    START_OPTIONS,
    PARALLEL,
    BUNDLE_PATH,
    BUNDLE_SHA256,
    SITE_PATH,
    MIN_PAGES,
    VALUES_FILE,
    MANIFEST_PATH,
    COMPARE_WITH,
    FIRST_PUBLICATION,
    CHANGES_PATH,
    MAX_REMOVED,
    EXPORT_VERSION,
    MASK_BUNDLE_URL,
    REQUIRE_PR,
    CA_BUNDLE,
)
DEFAULTS: Final = {row.name: row.default for row in INPUTS}
PATHS: Final = tuple(row for row in INPUTS if isinstance(row, PathInput))

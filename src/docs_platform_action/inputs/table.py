"""The table of inputs. Each row is an input, in the order of `action.yml`."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Final

from . import validators
from .settings import PLATFORM_MODES, Mode
from .validators import (
    parse_boolean,
    parse_domains,
    parse_duration,
    parse_identifier,
    parse_path,
    parse_projects,
    parse_whole_number,
)


@dataclass(frozen=True)
class Input:
    """An input of the action. `parse` raises `ValueError` with a text that completes "Invalid input `x`: …"."""

    name: str
    parse: Callable[[str], object]
    modes: Sequence[Mode]
    _: KW_ONLY
    default: str = ""
    required_in: Sequence[Mode] = ()
    unless: str = ""  # another input, with which it is not required
    hint: str = ""  # what to do if it is missing
    needs: str = ""  # another input, without which it is refused
    is_about_delivery: bool = False  # no effect with `wait: false`


EXPORT, UNPACK, AGENT, ALL = (Mode.EXPORT,), (Mode.UNPACK,), (Mode.AGENT,), tuple(Mode)
EXPORT_COLLECT, COLLECT_AGENT = (Mode.EXPORT, Mode.COLLECT), (Mode.COLLECT, Mode.AGENT)
SITE: Final = (*EXPORT_COLLECT, *UNPACK)  # the modes that deliver a site
EMPTY_KEY: Final = (
    "A secret is empty if it does not exist, if the job does not name its environment, and in runs without secrets: pull "
    "requests from forks, Dependabot (which has its own), workflows called without `secrets: inherit`"
)
EMPTY_OUTPUT: Final = (
    "The output it comes from may be empty: check its name, its step, and the `outputs` of its job"
)
BY_PROJECT: Final = "If your platform exports projects, set `project-id` instead"
PROJECT_ID: Final = "Copy it from the dashboard's API keys page"
MAX_PARALLEL: Final = 100
COMMIT: Final = partial(
    validators.parse_hexadecimal, what="a full SHA, such as `${{ github.sha }}`", digits=40
)
SHA256: Final = partial(
    validators.parse_hexadecimal, what="a SHA-256, such as the output `bundleSha256`", digits=64
)
PAGES: Final = partial(
    parse_whole_number, maximum=999_999_999, if_zero="; leave it out for no minimum"
)
TARGETS: Final = (
    "bundle-path",
    "site-path",
    "values-file",
    "manifest-path",
    "changes-path",
)  # the paths to write to
COMPARE_WITH: Final = "compare-with"

INPUTS: Final = (
    Input("mode", validators.parse_mode, ALL, default=Mode.EXPORT),
    Input("base-url", validators.parse_base_url, PLATFORM_MODES, required_in=PLATFORM_MODES),
    Input(
        "admin-key",
        validators.parse_key,
        PLATFORM_MODES,
        required_in=PLATFORM_MODES,
        hint=EMPTY_KEY,
    ),
    Input("domain", parse_domains, SITE, required_in=EXPORT, unless="project-id", hint=BY_PROJECT),
    Input("project-id", parse_projects, PLATFORM_MODES, required_in=AGENT, hint=PROJECT_ID),
    Input("job-id", parse_identifier, COLLECT_AGENT, required_in=COLLECT_AGENT, hint=EMPTY_OUTPUT),
    Input("start-timeout", parse_duration, EXPORT, default="75m"),
    Input("timeout", parse_duration, PLATFORM_MODES, default="60m"),
    Input("wait", parse_boolean, EXPORT, default="true"),
    Input("commit", COMMIT, EXPORT),
    Input("github-token", validators.parse_key, EXPORT),
    Input("deployment-creator", parse_identifier, EXPORT),
    Input("deployment-environment", parse_identifier, EXPORT),
    Input("commit-timeout", parse_duration, EXPORT, default="20m"),
    Input("poll-interval", parse_duration, PLATFORM_MODES, default="1s"),
    Input("max-poll-interval", parse_duration, PLATFORM_MODES, default="30s"),
    Input("outage-tolerance", parse_duration, PLATFORM_MODES, default="5m"),
    Input("start-options", validators.parse_start_options, EXPORT),
    Input("max-parallel", partial(parse_whole_number, maximum=MAX_PARALLEL), EXPORT, default="10"),
    Input("bundle-path", parse_path, SITE, required_in=UNPACK, is_about_delivery=True),
    Input("bundle-sha256", SHA256, UNPACK, required_in=UNPACK, hint=EMPTY_OUTPUT),
    Input("site-path", parse_path, SITE, required_in=UNPACK, is_about_delivery=True),
    Input("min-pages", PAGES, SITE, is_about_delivery=True),
    Input("values-file", parse_path, EXPORT_COLLECT, is_about_delivery=True),
    Input("manifest-path", parse_path, SITE, needs="site-path", is_about_delivery=True),
    Input("compare-with", parse_path, SITE, needs="site-path", is_about_delivery=True),
    Input(
        "first-publication",
        parse_boolean,
        SITE,
        default="false",
        needs="compare-with",
        is_about_delivery=True,
    ),
    Input("changes-path", parse_path, SITE, needs="compare-with", is_about_delivery=True),
    Input(
        "max-removed",
        validators.parse_max_removed,
        SITE,
        needs="compare-with",
        is_about_delivery=True,
    ),
    Input(
        "export-version",
        parse_identifier,
        EXPORT_COLLECT,
        needs="values-file",
        is_about_delivery=True,
    ),
    Input(
        "mask-bundle-url", parse_boolean, EXPORT_COLLECT, default="false", is_about_delivery=True
    ),
    Input("require-pr", parse_boolean, AGENT, default="false"),
    Input("ca-bundle", parse_path, PLATFORM_MODES),
)
DEFAULTS: Final = {row.name: row.default for row in INPUTS}

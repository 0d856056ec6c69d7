"""Checks of what concerns two inputs, or an input and the mode."""

from collections.abc import Sequence
from typing import Final

from ..text import MAX_JOINED_ERRORS, join_names, list_first
from . import table
from .mistakes import Mistakes
from .paths import FETCH_AGAIN
from .sites import Site
from .table import INPUTS, Input, Mode
from .validators import parse_github_api_url
from .values import InputValues

# A step may have these without a use for them: its workflow sets the mode, or leaves `commit` empty
# in some runs.
_OF_EVERY_STEP: Final = ("base-url", "admin-key")
_OF_COMMIT: Final = ("github-token", "deployment-creator", "deployment-environment")


def check_intervals(values: InputValues, mistakes: Mistakes) -> None:
    """Report a longest pause that is shorter than the shortest one."""
    shortest = values.value(table.POLL_INTERVAL)
    longest = values.value(table.MAX_POLL_INTERVAL)
    if shortest is None or longest is None or longest >= shortest:
        return
    minimum = values.text(table.POLL_INTERVAL)
    maximum = values.text(table.MAX_POLL_INTERVAL)
    error = f"{maximum} is less than poll-interval, {minimum}; set it to {minimum} or more"
    mistakes.add("max-poll-interval", error)


def check_job_id(values: InputValues, mistakes: Mistakes) -> None:
    """Report a job's ID in the mode that starts a new job."""
    if values.mode != Mode.EXPORT or not values.is_set("job-id"):
        return
    error = "mode `export` starts a new job; to collect this one, set `mode: collect`"
    if values.is_set("project-id"):
        error += ", or did you mean `mode: agent`?"
    mistakes.add("job-id", error)


def check_min_pages(values: InputValues, mistakes: Mistakes) -> None:
    """Report `min-pages` if nothing can count the pages."""
    if not values.is_set("project-id") or not values.delivers:
        return
    has_site = values.is_set("site-path") or "site-path" in mistakes.names
    if values.value(table.MIN_PAGES) is not None and not has_site:
        reason = "because such an export reports no number of pages"
        advice = "set both, or remove `min-pages`"
        mistakes.add("min-pages", f"needs `site-path` with `project-id`, {reason}; {advice}")


def check_max_removed(
    values: InputValues,
    without_pages: Sequence[str],
    mistakes: Mistakes,
) -> None:
    """Report `max-removed` if there are published manifests without pages."""
    if not without_pages or values.value(table.MAX_REMOVED) is None:
        return
    names = list_first(without_pages, MAX_JOINED_ERRORS)
    fact = f"would protect nothing: no pages (`.html` files) are listed in {names}"
    mistakes.add("max-removed", f"{fact}; remove `max-removed`, or {FETCH_AGAIN}")


def check_commit(
    values: InputValues,
    sites: Sequence[Site],
    mistakes: Mistakes,
    *,
    api_url: str,
    repository: str,
) -> None:
    """Report what makes it impossible to wait for a commit.

    The address of GitHub's API and the repository are the runner's own.
    """
    if values.mode not in table.COMMIT.modes or not values.is_set("commit"):
        return
    runner = {"GITHUB_API_URL": api_url, "GITHUB_REPOSITORY": repository}
    unset = [name for name, value in runner.items() if not value]
    if unset:
        names = " and ".join(unset)
        error = f"works only in a workflow whose runner sets {names}; elsewhere, remove it"
        mistakes.add("commit", error)
        return
    required = {
        "github-token": "`${{ github.token }}`",
        "deployment-creator": "`docs-platform[bot]`",
    }
    for name, usual in required.items():
        if not values.is_set(name) and name not in mistakes.names:
            mistakes.add(name, f"missing; `commit` requires it, such as {usual}")
    try:
        parse_github_api_url(api_url)
    except ValueError as reason:
        mistakes.add("commit", f"cannot be used: GITHUB_API_URL {reason}")
    if len(sites) > 1:
        fact = f"needs exactly one site, but there are {len(sites)}"
        cause = "an account's deployments do not tell one site from another"
        advice = (
            "export each site in a job of its own, such as one of a matrix, and set "
            "`deployment-environment` in each: each site needs an environment of its own on "
            "GitHub, or a success of one counts for another"
        )
        mistakes.add("commit", f"{fact}, and {cause}; {advice}")


def check_needs(values: InputValues, mistakes: Mistakes) -> None:
    """Report inputs about delivery without the input that they are about.

    Not if that is reported already, such as by a misspelled name: then it is meant to be set.
    """
    if not values.delivers:
        return
    reported = [*mistakes.names]
    for row in INPUTS:
        if not row.needs or row.needs in reported:
            continue
        value = values.value(row)  # `False` counts as unset
        if value and not values.is_set(row.needs):
            advice = f"set both, or remove `{row.name}`"
            mistakes.add(row.name, f"has no effect without `{row.needs}`; {advice}")


def warnings_of_no_effect(values: InputValues) -> list[str]:
    """Return a warning for each input that has no effect. To be called without mistakes."""
    silent = {*_OF_EVERY_STEP}
    if not values.is_set("commit"):
        silent |= {*_OF_COMMIT}
    warnings = []
    for row in INPUTS:
        if values.is_set(row.name) and row.name not in silent:
            warnings += _warnings_of(row, values)
    return warnings


def _warnings_of(row: Input[object], values: InputValues) -> list[str]:
    effect = f"Input `{row.name}` has no effect"
    if not values.is_in(row.modes):
        modes = join_names(row.modes, "and")
        return [f"{effect} in mode `{values.mode}`, only in {modes}."]
    if row.is_about_delivery and not values.delivers:
        advice = "set it in the step that collects the job with `mode: collect`"
        return [f"{effect} with `wait: false`; {advice}."]
    return []

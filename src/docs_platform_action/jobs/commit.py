"""Waits until the platform serves a commit.

It does if the newest successful deployment is of this commit, or of one that contains it.
"""

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..context import PlatformContext
from ..errors import GitHubUnavailable, NotDeployed
from ..github.deployments import Deployments
from ..job import DEPLOYMENT, Job
from ..models import GITHUB, Deployment
from ..text import format_clock

# between two reads, of some three requests each: a repository's token has 1,000 an hour
READ_SECONDS: Final = 10.0

_PATHS: Final = "limit the workflow to the documentation's files with `paths:`"
_UNCHANGED: Final = "No file of the documentation changed, so the platform deployed nothing"


@dataclass(frozen=True, kw_only=True)
class _NotServed:
    """Why the platform does not serve the commit yet, and what to do if that remains so."""

    fact: str
    cause: str
    remedy: str


def wait_for_commit(
    job: Job,
    timeout_seconds: float,
    github: Deployments,
    context: PlatformContext,
) -> None:
    """Wait for the commit, and record in the job which one is deployed.

    Raises `NotDeployed` and `Cancelled`.
    """
    clock = context.clock
    deadline = clock.monotonic() + timeout_seconds
    unreadable_since: float | None = None
    job.start_phase(DEPLOYMENT, clock.monotonic())
    while True:
        is_last_attempt = clock.monotonic() >= deadline
        pause = READ_SECONDS
        try:
            not_served = _why_not_served(job, github, context, deadline)
        except GitHubUnavailable as error:
            if is_last_attempt:
                raise _unreadable_error(error, timeout_seconds) from error
            pause = max(pause, error.retry_after_seconds)
            if unreadable_since is None:
                unreadable_since = clock.monotonic()
                _announce_outage(job, context, error, deadline, pause)
        else:
            if unreadable_since is not None:
                after_seconds = clock.monotonic() - unreadable_since
                context.events.recovered(job, GITHUB, after_seconds=after_seconds)
                unreadable_since = None
            if not_served is None:
                job.end_phase(clock.monotonic())
                return
            if is_last_attempt:
                raise _not_served_error(github, not_served, timeout_seconds)
        clock.sleep(min(pause, deadline - clock.monotonic()))


def note_later_commit(job: Job, context: PlatformContext) -> None:
    """Record in the job which other commit was deployed during the export.

    The bundle may contain either one.
    """
    if context.github is None or job.deployed is None:
        return
    with contextlib.suppress(NotDeployed):  # no more than a remark depends on it
        github = copy.copy(context.github)  # another thread may be using it
        now = context.clock.monotonic()  # as the deadline: there is one attempt
        live = _live(github.read(job, deadline=now))
        if live is None or live.commit == job.deployed.commit:
            return
        job.deployed_later = live
        deployed = f"The platform deployed {live.name} during the export"
        text = f"{deployed}, which holds {job.deployed.name} or {live.name}."
        context.events.noted(job, text, is_live=True)


def _why_not_served(
    job: Job,
    github: Deployments,
    context: PlatformContext,
    deadline: float,
) -> _NotServed | None:
    """Return why the platform does not serve the commit yet.

    Return `None` if it does, and record its deployment in the job. Raises `NotDeployed` if the
    commit's own deployment has failed and no newer one is under way.
    """
    name = github.commit[:7]
    deployments = github.read(job, deadline=deadline)
    live = _live(deployments)
    if live is not None and github.contains_commit(job, live, deadline=deadline):
        job.deployed = live
        served = f"The platform serves {live.name}"
        if live.commit != github.commit:
            served += f", which contains {name}"
        context.events.noted(job, f"{served}.", is_live=True)
        return None
    own = _own(deployments, github.commit)
    pending = _newest_pending(deployments)
    if own is not None and own.state in Deployment.FAILED:
        is_superseded = pending is not None and _is_newer(pending, own, deployments)
        if not is_superseded:
            raise _failed_error(own, live)
    if deployments:
        fact = _describe(name, live, own, pending)
    else:
        fact = _describe_others(job, github, deadline)
    context.events.noted(job, fact, is_live=True)
    if pending is not None:
        return _pending_reason(fact, pending.link or github.page)
    if not deployments:
        return _no_deployment_reason(fact, github.page)
    if live is None and _is_any_inactive(deployments):
        return _inactive_reason(fact, github.page)
    return _older_reason(fact, github.page)


def _pending_reason(fact: str, page: str) -> _NotServed:
    return _NotServed(
        fact=fact,
        cause="The platform's build takes longer than `commit-timeout`, or is stuck.",
        remedy=f"Check it at {page}. If it is only slow, raise `commit-timeout`.",
    )


def _no_deployment_reason(fact: str, page: str) -> _NotServed:
    app = "its GitHub App is not installed"
    inputs = "`deployment-creator` and `deployment-environment`"
    return _NotServed(
        fact=fact,
        cause=f"{_UNCHANGED}; {app}; or the creator or environment is mistyped.",
        remedy=f"Compare {inputs} with {page}, and {_PATHS}.",
    )


def _inactive_reason(fact: str, page: str) -> _NotServed:
    inactive = "GitHub marks deployments as inactive"
    return _NotServed(
        fact=fact,
        cause=f"{inactive} when a job whose `environment` has the same name succeeds.",
        remedy=f"Give that job another environment. The deployments are listed at {page}.",
    )


def _older_reason(fact: str, page: str) -> _NotServed:
    return _NotServed(
        fact=fact,
        cause=f"{_UNCHANGED}, or an older commit was deployed again.",
        remedy=f"In the first case, {_PATHS}. The deployments are listed at {page}.",
    )


def _live(deployments: Sequence[Deployment]) -> Deployment | None:
    """Return the newest deployment that has succeeded."""
    for found in deployments:
        if found.state == Deployment.LIVE:
            return found
    return None


def _own(deployments: Sequence[Deployment], commit: str) -> Deployment | None:
    """Return the newest deployment of a commit."""
    for found in deployments:
        if found.commit == commit:
            return found
    return None


def _newest_pending(deployments: Sequence[Deployment]) -> Deployment | None:
    """Return the newest deployment that may still succeed, unless a newer one has succeeded."""
    for found in deployments:
        if found.state == Deployment.LIVE:
            return None
        if found.state not in Deployment.OVER:
            return found
    return None


def _is_any_inactive(deployments: Sequence[Deployment]) -> bool:
    """Return whether a deployment has succeeded once, but is not live any more."""
    return any(found.state == Deployment.INACTIVE for found in deployments)


def _is_newer(one: Deployment, other: Deployment, deployments: Sequence[Deployment]) -> bool:
    """Return whether one deployment is newer than another, by the list with the newest first."""
    return deployments.index(one) < deployments.index(other)


def _describe(
    name: str,
    live: Deployment | None,
    own: Deployment | None,
    pending: Deployment | None,
) -> str:
    """Return what the platform serves, and what it is about to serve."""
    served = "No deployment has succeeded yet"
    if live is not None:
        served = f"The platform serves {live.name}, which does not contain {name} yet"
    state = f"{name} has no deployment"
    if own is not None:
        state = f"The deployment of {name} {own.description}"
    if pending is not None and pending != own:
        state += f"; that of {pending.name} {pending.description}"
    return f"{served}. {state}."


def _describe_others(job: Job, github: Deployments, deadline: float) -> str:
    """Return which deployments there are, if the creator has none."""
    by_creator = github.environments_by_creator(job, deadline=deadline)
    others = []
    for creator, environments in sorted(by_creator.items()):
        others.append(f"{creator} ({', '.join(sorted(environments))})")
    none = f"GitHub has no deployment by {github.creator}"
    if github.environment:
        none += f" in the environment {github.environment}"
    if not others:
        return f"{none} yet. It has no others, either."
    return f"{none} yet. It has some by {'; '.join(others)}."


def _announce_outage(
    job: Job,
    context: PlatformContext,
    error: GitHubUnavailable,
    deadline: float,
    pause_seconds: float,
) -> None:
    budget = deadline - context.clock.monotonic()
    context.events.retrying(
        job,
        GITHUB,
        error.summary,
        budget_seconds=budget,
        pause_seconds=min(pause_seconds, budget),
    )


def _failed_error(own: Deployment, live: Deployment | None) -> NotDeployed:
    details = []
    if live is not None:
        details.append(f"The platform still serves {live.name}.")
    if own.link is not None:
        details.append(f"The deployment's page is {own.link}.")
    return NotDeployed(
        f"the deployment of {own.name} has failed",
        details=tuple(details),
        remedy="Fix the documentation, or its build on the platform, and run the workflow again.",
    )


def _unreadable_error(error: GitHubUnavailable, timeout_seconds: float) -> NotDeployed:
    after = format_clock(timeout_seconds)
    return NotDeployed(
        f"GitHub's deployments could not be read for {after}",
        details=(f"Last error: {error.summary}.", *error.details),
        cause=error.cause,
        remedy=error.remedy,
    )


def _not_served_error(
    github: Deployments,
    not_served: _NotServed,
    timeout_seconds: float,
) -> NotDeployed:
    after = format_clock(timeout_seconds)
    return NotDeployed(
        f"the platform does not serve {github.commit[:7]} after {after}",
        details=(not_served.fact,),
        cause=not_served.cause,
        remedy=not_served.remedy,
    )

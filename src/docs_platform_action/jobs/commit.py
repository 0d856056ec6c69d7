"""Waits until the platform serves a commit.

It does if the newest successful deployment is of this commit, or of one that contains it.
"""

import copy
from dataclasses import dataclass
from typing import Final

from ..context import PlatformContext
from ..errors import NotDeployed
from ..github.deployments import READ_SECONDS, Deployments, GitHub
from ..job import DEPLOYMENT, Job
from ..models import GITHUB, Deployment
from ..text import format_clock

_PATHS: Final = "limit the workflow to the documentation's files with `paths:`"
_UNCHANGED: Final = "No file of the documentation changed, so the platform deployed nothing"


@dataclass(frozen=True, kw_only=True)
class _NotServed:
    """Why the platform does not serve the commit yet, and what to do if that remains so."""

    fact: str
    cause: str
    remedy: str


def wait_until_deployed(job: Job, shared: GitHub, context: PlatformContext) -> None:
    """Wait until the commit is live, and record in the job which one is deployed.

    Raises `NotDeployed` and `Cancelled`.
    """
    github = copy.copy(shared)  # another thread may be using it
    clock = context.clock
    deadline = clock.monotonic() + github.timeout_seconds
    job.start_phase(DEPLOYMENT, clock.monotonic())
    while True:
        deployments = github.read(job, deadline=deadline)
        not_served = _why_not_served(job, github, context, deployments)
        if deployments.outage_seconds is not None:
            context.listener.recovered(job, GITHUB, after_seconds=deployments.outage_seconds)
        if not_served is None:
            job.end_phase(clock.monotonic())
            return
        if deployments.began_at >= deadline:
            raise _not_served_error(github, not_served)
        clock.sleep(min(READ_SECONDS, deadline - clock.monotonic()))


def note_later_deployment(job: Job, shared: GitHub, context: PlatformContext) -> None:
    """Record in the job which other commit was deployed during the export.

    The bundle may contain either one.
    """
    if job.deployed is None:
        return
    github = copy.copy(shared)  # another thread may be using it
    live = github.live_now(job)
    if live is None or live.commit == job.deployed.commit:
        return
    job.deployed_later = live
    deployed = f"The platform deployed {live.name} during the export"
    text = f"{deployed}, which holds {job.deployed.name} or {live.name}."
    context.listener.noted(job, text, is_live=True)


def _why_not_served(
    job: Job,
    github: GitHub,
    context: PlatformContext,
    deployments: Deployments,
) -> _NotServed | None:
    """Return why the platform does not serve the commit yet.

    Return `None` if it does, and record its deployment in the job. Raises `NotDeployed` if the
    commit's own deployment has failed and no newer one is under way.
    """
    name = github.commit[:7]
    live = deployments.live
    if live is not None and deployments.is_commit_live:
        job.deployed = live
        served = f"The platform serves {live.name}"
        if live.commit != github.commit:
            served += f", which contains {name}"
        context.listener.noted(job, f"{served}.", is_live=True)
        return None
    own = deployments.of(github.commit)
    pending = deployments.pending
    if own is not None and own.state in Deployment.FAILED:
        is_superseded = pending is not None and deployments.is_newer(pending, own)
        if not is_superseded:
            raise _failed_error(own, live)
    if deployments.found:
        fact = _describe(name, live, own, pending)
    else:
        fact = _describe_others(github, deployments)
    context.listener.noted(job, fact, is_live=True)
    if pending is not None:
        return _pending_reason(fact, pending.link or github.page)
    if not deployments.found:
        return _no_deployment_reason(fact, github.page)
    if live is None and deployments.is_any_inactive:
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


def _describe_others(github: GitHub, deployments: Deployments) -> str:
    """Say that the creator has no deployments, and who has."""
    others = []
    for creator, environments in sorted(deployments.others.items()):
        others.append(f"{creator} ({', '.join(sorted(environments))})")
    none = f"GitHub has no deployment by {github.creator}"
    if github.environment:
        none += f" in the environment {github.environment}"
    if not others:
        return f"{none} yet. It has no others, either."
    return f"{none} yet. It has some by {'; '.join(others)}."


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


def _not_served_error(github: GitHub, not_served: _NotServed) -> NotDeployed:
    after = format_clock(github.timeout_seconds)
    return NotDeployed(
        f"the platform does not serve {github.commit[:7]} after {after}",
        details=(not_served.fact,),
        cause=not_served.cause,
        remedy=not_served.remedy,
    )

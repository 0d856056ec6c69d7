"""Waits until the platform serves a commit.

It does if the newest successful deployment is of this commit, or of one that contains it.
"""

from dataclasses import dataclass, replace
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


def wait_until_deployed(job: Job, github: GitHub, context: PlatformContext) -> None:
    """Wait until the commit is live, and record in the job which one is deployed.

    Raises `NotDeployed` and `Cancelled`.
    """
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


def note_later_deployment(job: Job, github: GitHub, context: PlatformContext) -> None:
    """Record in the job which other commit was deployed during the export, or that it is unknown.

    The bundle may contain either one.
    """
    if job.deployed is None:
        return
    deployments = github.read_once(job)
    if deployments is None or deployments.is_any_unread:
        _note_unknown(job, context)
        return
    live = deployments.live
    if live is None or live.commit == job.deployed.commit:
        return
    job.deployed_later = live
    deployed = f"The platform deployed {live.name} during the export"
    text = f"{deployed}, which holds {job.deployed.name} or {live.name}."
    context.listener.noted(job, text, is_live=True)


def _note_unknown(job: Job, context: PlatformContext) -> None:
    job.is_deployed_later_unknown = True
    unknown = "It is unknown whether the platform deployed another commit during the export"
    reason = "GitHub's deployments could not be read"
    context.listener.noted(job, f"{unknown}: {reason}.", is_live=True)


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
        fact = _describe(name, deployments, own, pending)
    else:
        fact = _describe_others(github, deployments)
    if deployments.uncounted is not None:
        fact += f" {deployments.uncounted.fact}"
    context.listener.noted(job, fact, is_live=True)
    return _reason(fact, github.page, deployments)


def _reason(fact: str, page: str, deployments: Deployments) -> _NotServed:
    """Return the likely cause if the platform never serves the commit, and what to do then."""
    uncounted = deployments.uncounted
    reason = _reason_by_counted(fact, page, deployments)
    if uncounted is None:
        return reason
    if uncounted.is_of_platform:
        remedy = f"{uncounted.remedy} The deployments are listed at {page}."
        return _NotServed(fact=fact, cause="", remedy=remedy)
    return replace(reason, remedy=f"{uncounted.remedy} {reason.remedy}")


def _reason_by_counted(fact: str, page: str, deployments: Deployments) -> _NotServed:
    pending = deployments.pending
    if pending is not None:
        return _pending_reason(fact, pending.link or page)
    if not deployments.found:
        return _no_deployment_reason(fact, page)
    if deployments.live is None and deployments.is_any_inactive:
        return _inactive_reason(fact, page)
    if not deployments.is_comparable:
        return _unrelated_reason(fact, page)
    return _older_reason(fact, page)


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


def _unrelated_reason(fact: str, page: str) -> _NotServed:
    return _NotServed(
        fact=fact,
        cause="The branch was rewritten, or `commit` is not in this repository.",
        remedy=f"Deploy the branch again. The deployments are listed at {page}.",
    )


def _older_reason(fact: str, page: str) -> _NotServed:
    return _NotServed(
        fact=fact,
        cause=f"{_UNCHANGED}, or an older commit was deployed again.",
        remedy=f"In the first case, {_PATHS}. The deployments are listed at {page}.",
    )


def _describe(
    name: str,
    deployments: Deployments,
    own: Deployment | None,
    pending: Deployment | None,
) -> str:
    """Return what the platform serves, and what it is about to serve."""
    live = deployments.live
    served = "No deployment has succeeded yet"
    if live is not None and not deployments.is_comparable:
        served = f"The platform serves {live.name}, which has no common ancestor with {name}"
    elif live is not None:
        served = f"The platform serves {live.name}, which does not contain {name} yet"
    elif deployments.is_any_unread:
        served = f"It is unknown what the platform serves: {len(deployments.found)} deployments"
        served += " are being read, 10 at a time"
    elif deployments.is_any_inactive:
        served = "No deployment is live any more"
    state = f"{name} has no deployment"
    if deployments.uncounted is not None:
        state += " that counts"
    if own is not None and own.state == Deployment.LIVE and live is None:
        state = f"The deployment of {name} has succeeded"
    elif own is not None:
        state = f"The deployment of {name} {own.description}"
    if pending is not None and pending != own:
        state += f"; that of {pending.name} {pending.description}"
    return f"{served}. {state}."


def _describe_others(github: GitHub, deployments: Deployments) -> str:
    """Say that the creator has no deployments that count, and who has some."""
    own: list[str] = []
    others = []
    for creator, environments in sorted(deployments.others.items()):
        names = ", ".join(sorted(environments))
        if creator.lower() == github.creator.lower():
            own.append(names)
        else:
            others.append(f"{creator} ({names})")
    none = f"GitHub has no deployment by {github.creator}"
    if github.environment:
        none += f" in the environment {github.environment}"
    if own:
        none += f" that counts yet. It has some in {', '.join(own)}"
    else:
        none += " yet"
    if others:
        return f"{none}. Other accounts have deployments: {'; '.join(others)}."
    if own:
        return f"{none}."
    return f"{none}. It has no others, either."


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

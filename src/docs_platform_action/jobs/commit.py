"""Waits until the platform serves a commit: the newest successful deployment is of this commit, or of one that contains it."""

import contextlib
import copy
import math
from itertools import takewhile
from typing import Final

from ..context import Context
from ..errors import GitHubUnavailable, NotDeployed
from ..github.deployments import Deployments
from ..job import DEPLOYMENT, Job
from ..models import GITHUB, Deployment
from ..text import format_clock

READ_SECONDS: Final = (
    10.0  # between two reads, of some three requests each: a repository's token has 1,000 an hour
)

_PATHS: Final = "limit the workflow to the documentation's files with `paths:`"
_UNCHANGED: Final = "No file of the documentation changed, so the platform deployed nothing"


def wait_for_commit(
    job: Job, timeout_seconds: float, github: Deployments, context: Context
) -> None:
    """Wait for the commit, and record in the job which one is deployed. Raises `NotDeployed` and `Cancelled`."""
    clock, events, after = context.clock, context.events, format_clock(timeout_seconds)
    deadline, failing_since = clock.monotonic() + timeout_seconds, math.inf
    job.start_phase(DEPLOYMENT, clock.monotonic())
    while True:
        is_last, pause = clock.monotonic() >= deadline, READ_SECONDS
        try:
            failure = _check(job, github, context, deadline, after)
        except GitHubUnavailable as error:
            now, pause = clock.monotonic(), max(pause, error.retry_after_seconds)
            summary, last = (
                f"GitHub's deployments could not be read for {after}",
                f"Last error: {error.summary}.",
            )
            failure = NotDeployed(
                summary, details=(last, *error.details), cause=error.cause, remedy=error.remedy
            )
            if failing_since > now and not is_last:
                failing_since, budget = now, deadline - now
                events.retrying(
                    job,
                    GITHUB,
                    error.summary,
                    budget_seconds=budget,
                    pause_seconds=min(pause, budget),
                )
        else:
            if failing_since < math.inf:
                events.recovered(job, GITHUB, after_seconds=clock.monotonic() - failing_since)
                failing_since = math.inf
        if failure is None:
            job.end_phase(clock.monotonic())
            return
        if is_last:
            raise failure
        clock.sleep(min(pause, deadline - clock.monotonic()))


def note_later_commit(job: Job, context: Context) -> None:
    """Record in the job which commit was deployed during the export, if it is another one: the export may hold that."""
    if context.github is None or job.deployed is None:
        return
    with contextlib.suppress(NotDeployed):  # no more than a remark depends on it
        live = _live(copy.copy(context.github).read(job, deadline=context.clock.monotonic()))
        if live is not None and live.commit != job.deployed.commit:
            job.deployed_later = live
            text = f"The platform deployed {live.name} during the export, which holds {job.deployed.name} or {live.name}."
            context.events.noted(job, text, is_live=True)


def _check(
    job: Job, github: Deployments, context: Context, deadline: float, after: str
) -> NotDeployed | None:
    """Record in the job what is deployed if it contains the commit. Otherwise, return the failure that it is in the end.

    Raises `NotDeployed` if the commit's own deployment has failed and no newer one is under way.
    """
    deployments, name = github.read(job, deadline=deadline), github.commit[:7]
    live, own = (
        _live(deployments),
        next((found for found in deployments if found.commit == github.commit), None),
    )
    if live is not None and github.contains_commit(job, live, deadline=deadline):
        job.deployed = live
        contains = f", which contains {name}" if live.commit != github.commit else ""
        context.events.noted(job, f"The platform serves {live.name}{contains}.", is_live=True)
        return None
    newer = takewhile(lambda found: found != live, deployments)
    pending = next((found for found in newer if found.state not in Deployment.OVER), None)
    is_own_last = own is not None and (
        pending is None or deployments.index(pending) > deployments.index(own)
    )
    if own is not None and is_own_last and own.state in Deployment.FAILED:
        details = [f"The platform still serves {live.name}."] if live else []
        details += [f"The deployment's page is {own.link}."] if own.link else []
        remedy = "Fix the documentation, or its build on the platform, and run the workflow again."
        raise NotDeployed(
            f"the deployment of {name} has failed", details=tuple(details), remedy=remedy
        )
    facts = (
        _describe(name, live, own, pending)
        if deployments
        else _describe_others(job, github, deadline)
    )
    context.events.noted(job, facts, is_live=True)
    if pending is not None:
        cause = "The platform's build takes longer than `commit-timeout`, or is stuck."
        remedy = f"Check it at {pending.link or github.page}. If it is only slow, raise `commit-timeout`."
    elif deployments and live is None:
        cause = "GitHub marks deployments as inactive when a job whose `environment` has the same name succeeds."
        remedy = f"Give that job another environment. The deployments are listed at {github.page}."
    elif deployments:
        cause = f"{_UNCHANGED}, or an older commit was deployed again."
        remedy = f"In the first case, {_PATHS}. The deployments are listed at {github.page}."
    else:
        cause = f"{_UNCHANGED}; its GitHub App is not installed; or the creator or environment is mistyped."
        remedy = f"Compare `deployment-creator` and `deployment-environment` with {github.page}, and {_PATHS}."
    return NotDeployed(
        f"the platform does not serve {name} after {after}",
        details=(facts,),
        cause=cause,
        remedy=remedy,
    )


def _live(deployments: list[Deployment]) -> Deployment | None:
    return next((found for found in deployments if found.state == Deployment.LIVE), None)


def _describe(
    name: str, live: Deployment | None, own: Deployment | None, pending: Deployment | None
) -> str:
    """Return what the platform serves, and what it is about to serve."""
    served = (
        f"The platform serves {live.name}, which does not contain {name} yet"
        if live
        else "No deployment has succeeded yet"
    )
    state = (
        f"{name} has no deployment"
        if own is None
        else f"The deployment of {name} {own.description}"
    )
    also = f"; that of {pending.name} {pending.description}" if pending and pending != own else ""
    return f"{served}. {state}{also}."


def _describe_others(job: Job, github: Deployments, deadline: float) -> str:
    place = f" in the environment {github.environment}" if github.environment else ""
    others = github.environments_by_creator(job, deadline=deadline)
    known = "; ".join(
        f"{creator} ({', '.join(sorted(environments))})"
        for creator, environments in sorted(others.items())
    )
    has = f"It has some by {known}" if known else "It has no others, either"
    return f"GitHub has no deployment by {github.creator}{place} yet. {has}."

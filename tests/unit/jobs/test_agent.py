"""An agent's job: it is known before it is read, and how it may end."""

from typing import Any, Final

import pytest

from docs_platform_action.errors import ActionError, JobFailed, NoPullRequest
from docs_platform_action.inputs.settings import AgentSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs import agent
from docs_platform_action.models import AgentJob
from tests.unit.fakes import RecordedEvents, context
from tests.unit.jobs.steps import PLATFORM, WAITING, run_steps
from tests.virtual_time import VirtualClock

LINK: Final = "https://git.example.com/docs/pull/7"


class Run:
    """The steps of a job with this reading. All that happens is in one list."""

    def __init__(self, reading: AgentJob, *, require_pr: bool = False) -> None:
        self.reading = reading
        self.events = RecordedEvents()
        settings = AgentSettings(
            platform=PLATFORM,
            project_id="prj_1",
            job_id="aj_1",
            waiting=WAITING,
            require_pr=require_pr,
        )
        (self.task,) = agent.batch(settings).tasks
        outputs: Any = self
        self.parts = context(VirtualClock(), self.events, platform=self, outputs=outputs)

    def run(self) -> Job:
        return run_steps(self.task, self.parts)

    def write_job_id(self, job: Job) -> None:
        self.events.seen.append(("write_job_id", job))

    def read_agent_job(self, job: Job, deadline: float) -> AgentJob:
        self.events.seen.append(("read", job, deadline))
        return self.reading


def test_a_job_is_known_before_it_is_read() -> None:
    run = Run(AgentJob(status="completed", pr_link=LINK), require_pr=True)

    job = run.run()

    assert run.events.names == ["write_job_id", "job_known", "read", "status_read"]
    assert (job.project_id, job.job_id, job.pr_link) == ("prj_1", "aj_1", LINK)


@pytest.mark.parametrize(
    ("reading", "require_pr", "kind"),
    [
        (AgentJob(status="failed"), False, JobFailed),
        (AgentJob(status="completed"), True, NoPullRequest),
        (AgentJob(status="archived"), True, NoPullRequest),
        (AgentJob(status="completed", unusable_pr_link="x"), True, NoPullRequest),
    ],
)
def test_it_fails_without_what_is_required(
    reading: AgentJob, require_pr: bool, kind: type[ActionError]
) -> None:
    run = Run(reading, require_pr=require_pr)

    with pytest.raises(kind):
        run.run()


@pytest.mark.parametrize(
    ("reason", "detail"),
    [(None, "The API gave no reason."), ("no credits", 'The API said: "no credits".')],
)
def test_its_failure_says_why_if_the_api_does(reason: str | None, detail: str) -> None:
    with pytest.raises(JobFailed) as caught:
        Run(AgentJob(status="failed", error=reason)).run()

    assert caught.value.details == (detail,)


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (AgentJob(status="completed"), []),
        (AgentJob(status="archived", pr_link=LINK), ["was archived"]),
        (AgentJob(status="completed", unusable_pr_link="x"), ["cannot be used"]),
    ],
)
def test_what_is_odd_about_its_end_is_warned_of(reading: AgentJob, words: list[str]) -> None:
    run = Run(reading)

    run.run()

    first_lines = [lines[0] for (lines,) in run.events.of("warning")]
    assert len(first_lines) == len(words)
    assert all(word in line for word, line in zip(words, first_lines, strict=True))

"""Jobs.

What somebody reads whose job fails, does not end in time or runs beside others. A likely cause or advice that every failure of a
kind has is not repeated here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from docs_platform_action.errors import ActionError, Forbidden, Unavailable
from docs_platform_action.inputs.settings import DeliverySettings, Mode, OutputPath
from docs_platform_action.job import Job
from docs_platform_action.jobs.runner import MAX_FAILED_RENEWALS
from docs_platform_action.models import AgentJob, ExportJob
from tests.unit.jobs.scripted import AGENT, Scripted
from tests.unit.jobs.test_runner import FakeApi, Jobs, fails_with, links_for, succeed
from tests.wording.page import Sections

OUTAGE: Final = Unavailable("an example of an error", details=("An example of a detail.",), cause="A cause.", remedy="A remedy.")
SITE: Final = OutputPath(path=Path("/w/site"), root=Path("/w"), name="site")
COMPLETED: Final = ExportJob(status="completed")


def sections() -> Sections:
    """Return what is said about exports, agent jobs, waits and several jobs."""
    return {
        "An export": {title: _text(scripted.failure()) for title, scripted in _failing_exports().items()},
        "An agent job": {
            "It failed": _text(_agent(AgentJob(status="failed")).failure()),
            "It ended without a pull request, and `require-pr` is set": _text(
                _agent(AgentJob(status="completed"), require_pr=True).failure()
            ),
            "Its link cannot be used, and `require-pr` is set": _text(
                _agent(AgentJob(status="completed", unusable_pr_link="an example"), require_pr=True).failure()
            ),
            "Its link cannot be used": _warning_about(AgentJob(status="completed", unusable_pr_link="an example")),
            "It was archived": _warning_about(AgentJob(status="archived")),
        },
        "A job that has not ended in time": {title: _text(scripted.failure()) for title, scripted in _late_jobs().items()},
        "Several jobs": {
            "The first one was refused, so this one was not started": _reason_of_a_job_that_was_not_started(),
            "Its link is about to expire, after the links of others could not be replaced": _reason_for_an_old_link(),
        },
    }


def _failing_exports() -> Mapping[str, Scripted]:
    min_pages = DeliverySettings(min_pages=1413)
    return {
        "It failed": Scripted(ExportJob(status="failed")),
        "It failed, and the API gave a reason": Scripted(ExportJob(status="failed", error="an example of a reason")),
        "It has too few pages": Scripted(ExportJob(status="completed", page_count=1412), delivery=min_pages),
        "It has one page, but needs two": Scripted(
            ExportJob(status="completed", page_count=1), delivery=DeliverySettings(site_path=SITE, min_pages=2)
        ),
        "It has an unknown number of pages": Scripted(COMPLETED, delivery=min_pages),
    }


def _late_jobs() -> Mapping[str, Scripted]:
    def running(**known: Any) -> Scripted:
        return Scripted(ExportJob(status="running", **known))

    return {
        "It is running": running(),
        "It has just begun to run": running(progress=0.0),
        "It is nearly done": running(progress=99.9, page_count=1412),
        "It has rendered one page": running(page_count=1),
        "It is queued": Scripted(ExportJob(status="queued", progress=0.0)),
        "It has an unknown status": Scripted(ExportJob(status="polishing", progress=100.0, page_count=7)),
        "It was running before an outage": _Lasting(ExportJob(status="running"), OUTAGE),
        "It could not be read because of an outage": _Lasting(OUTAGE, mode=Mode.COLLECT, job_id="se_1"),
    }


class _Lasting(Scripted):
    """An outage lasts until the deadline."""

    def read_export(self, job: Job, *, deadline: float) -> Any:
        try:
            return super().read_export(job, deadline=deadline)
        except Unavailable:
            self.clock.advance(deadline - self.clock.monotonic())
            raise


def _agent(*readings: AgentJob, **changes: Any) -> Scripted:
    return Scripted(*readings, settings=AGENT, **changes)


def _warning_about(reading: AgentJob) -> str:
    agent = _agent(reading)
    agent.run()
    ((lines,),) = agent.events.of("warning")
    return "\n".join(lines)


def _reason_of_a_job_that_was_not_started() -> str:
    jobs = Jobs(fails_with(Forbidden("refused")), succeed)
    jobs.run()
    failure = jobs.jobs[1].failure
    assert failure is not None
    return "\n".join(failure.details)


def _reason_for_an_old_link() -> str:
    def fail(_job: Job) -> None:
        raise OUTAGE

    jobs = Jobs(*[links_for(1)] * (MAX_FAILED_RENEWALS + 1), at_once=1, api=FakeApi(fail))
    jobs.run()
    return jobs.events.warnings[-1][1].partition(": ")[2]


def _text(error: ActionError) -> str:
    """Return what an error says, without the advice of its kind."""
    advice = [text for text in (error.cause, error.remedy) if text not in (error.default_cause, error.default_remedy)]
    return "\n".join([error.summary, *error.details, *advice])

"""Workflows as users write them. Each runs once, and several tests check its output."""

from collections.abc import Iterator

import pytest

from admin_api_simulator import Simulator
from tests.workflow.act import Act, WorkflowRun

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image


class TestExport:
    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, act: Act, platform: Simulator) -> WorkflowRun:
        return push(act, "export.yml", platform)

    def test_the_workflow_succeeds(self, run: WorkflowRun) -> None:
        assert run.succeeded, run.log

    def test_the_next_step_reads_the_bundle_link(self, run: WorkflowRun) -> None:
        assert run.printed("fetched:") == ["12 pages"], run.log

    def test_the_next_job_reads_the_bundle_link(self, run: WorkflowRun) -> None:
        assert run.printed("deployed:") == ["12 pages, 12 of them here"], run.log

    def test_the_key_is_in_no_line_of_the_log(self, run: WorkflowRun, platform: Simulator) -> None:
        assert [line for line in run.log.splitlines() if platform.key in line] == []


class TestFailingExport:
    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, act: Act, platform: Simulator) -> WorkflowRun:
        return push(act, "failing-export.yml", platform)

    def test_the_workflow_fails(self, run: WorkflowRun) -> None:
        assert not run.succeeded, run.log

    def test_a_step_for_failures_reads_the_reason_and_the_job(self, run: WorkflowRun) -> None:
        assert run.printed("reason:") == ["job-failed"], run.log
        assert len(run.printed("job:")) == 1, run.log

    def test_neither_the_next_step_nor_the_next_job_runs(self, run: WorkflowRun) -> None:
        assert "announced" not in run.log
        assert "deployed" not in run.log


class TestAgent:
    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, act: Act, platform: Simulator) -> WorkflowRun:
        return push(act, "agent.yml", platform)

    def test_the_next_step_reads_the_pull_request(self, run: WorkflowRun) -> None:
        assert run.succeeded, run.log
        assert [link.rpartition("/")[0] for link in run.printed("review:")] == ["https://git.example.com/acme/docs/pull"]

    def test_without_a_pull_request_the_output_is_empty(self, run: WorkflowRun) -> None:
        assert run.succeeded, run.log
        assert "asked without a pull request" not in run.log


class TestAttach:
    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, act: Act, platform: Simulator) -> WorkflowRun:
        return push(act, "attach.yml", platform)

    def test_a_step_without_waiting_has_no_link(self, run: WorkflowRun) -> None:
        assert run.printed("link so far:") == ["''"], run.log

    def test_a_later_job_collects_the_export(self, run: WorkflowRun) -> None:
        assert run.succeeded, run.log
        assert run.printed("fetched:") == ["12 pages"], run.log

    def test_only_one_export_is_started(self, run: WorkflowRun, platform: Simulator) -> None:
        assert run.succeeded, run.log
        started = [request for request in platform.requests if request.operation == "start_export"]
        assert len(started) == 1


class TestKeyFromAVault:
    @pytest.fixture(scope="class")
    @classmethod
    def platform(cls) -> Iterator[Simulator]:
        # a different key, because it is in the log, as the vault's output, until the action masks it
        with Simulator(key="adm_k3y-from-a-vault", export_seconds=0.3, host="127.0.0.1") as platform:
            yield platform

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, act: Act, platform: Simulator) -> WorkflowRun:
        return push(act, "key-from-a-vault.yml", platform)

    def test_the_key_is_masked_in_every_later_step(self, run: WorkflowRun) -> None:
        assert run.printed("the key is") == ["***"], run.log


def push(act: Act, workflow: str, platform: Simulator) -> WorkflowRun:
    return act.push(
        workflow,
        variables={"DOCS_API": platform.base_url, "VAULT": platform.key},
        secrets={} if "vault" in workflow else {"DOCS_ADMIN_KEY": platform.key},
    )

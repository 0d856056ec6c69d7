"""Workflows as users write them."""

import pytest

from admin_api_simulator import Simulator
from tests.workflow.act import Act, WorkflowRun

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image


def test_the_next_step_and_the_next_job_read_the_bundle_link(act: Act, platform: Simulator) -> None:
    run = push(act, "export.yml", platform)

    assert run.succeeded, run.log
    assert run.printed("fetched:") == ["12 pages"], run.log
    assert run.printed("deployed:") == ["12 pages, 12 of them here"], run.log
    assert [line for line in run.log.splitlines() if platform.key in line] == []


def test_after_a_failed_export_only_a_step_for_failures_runs_and_reads_the_reason(act: Act, platform: Simulator) -> None:
    run = push(act, "failing-export.yml", platform)

    assert not run.succeeded, run.log
    assert run.printed("reason:") == ["job-failed"], run.log
    assert len(run.printed("job:")) == 1, run.log
    assert "announced" not in run.log
    assert "deployed" not in run.log


def test_the_next_step_reads_the_pull_request_of_an_agent(act: Act, platform: Simulator) -> None:
    run = push(act, "agent.yml", platform)

    assert run.succeeded, run.log
    assert [link.rpartition("/")[0] for link in run.printed("review:")] == ["https://git.example.com/acme/docs/pull"]
    assert "asked without a pull request" not in run.log


def test_a_later_job_collects_the_export_of_a_step_that_did_not_wait(act: Act, platform: Simulator) -> None:
    run = push(act, "start-and-collect.yml", platform)

    assert run.succeeded, run.log
    assert run.printed("link so far:") == ["''"], run.log
    assert run.printed("fetched:") == ["12 pages"], run.log
    assert platform.count("start_export") == 1


def test_an_empty_job_id_or_a_misspelled_guard_fails_before_any_request(act: Act, platform: Simulator) -> None:
    run = push(act, "mistakes.yml", platform)

    assert not run.succeeded, run.log
    assert run.printed("reason with a misspelled guard:") == ["invalid-input"], run.log
    assert "did you mean `min-pages`?" in run.log
    assert run.printed("reason without a job:") == ["invalid-input"], run.log
    assert "deployed" not in run.log
    assert platform.requests == []


def test_a_key_from_a_vault_is_masked_in_every_later_step(act: Act) -> None:
    # a different key, because it is in the log, as the vault's output, until the action masks it
    with Simulator(key="adm_k3y-from-a-vault", export_seconds=0.3, host="127.0.0.1") as platform:
        run = push(act, "key-from-a-vault.yml", platform)

    assert run.printed("the key is") == ["***"], run.log


def push(act: Act, workflow: str, platform: Simulator) -> WorkflowRun:
    return act.push(
        workflow,
        variables={"DOCS_API": platform.base_url, "VAULT": platform.key},
        secrets={} if "vault" in workflow else {"DOCS_ADMIN_KEY": platform.key},
    )

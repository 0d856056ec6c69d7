"""Workflows in the repository of the action, as `uses: ./`."""

import pytest

from admin_api_simulator import Simulator
from tests.workflow.act import DOMAIN, Act

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images


def test_later_steps_and_jobs_read_the_outputs_and_never_see_the_key_of_a_vault(act: Act) -> None:
    # a different key, because it is in the log, as the vault's output, until the action masks it
    key = "adm_k3y-from-a-vault"
    secrets = {"DOCS_ADMIN_KEY": "not-used"}

    with Simulator(key=key, export_seconds=0.3, pages=12, host="127.0.0.1") as platform:
        run = act.run("publish.yml", platform, variables={"VAULT": key}, secrets=secrets)

    assert run.succeeded, run.log
    assert run.printed("the key is") == ["***"], run.log
    assert run.printed("link so far:") == ["''"], run.log
    assert run.printed("fetched:") == ["12 pages"], run.log
    assert run.printed("deployed:") == ["12 pages, 12 of them here"], run.log
    assert platform.count("start_export") == 1


def test_after_mistakes_and_a_failed_export_only_a_step_for_failures_runs_and_reads_the_reasons(
    act: Act, platform: Simulator
) -> None:
    run = act.run("mistakes.yml", platform)

    assert not run.succeeded, run.log
    assert run.printed("reasons:") == ["invalid-input, invalid-input, job-failed"], run.log
    assert "did you mean `min-pages`?" in run.log
    assert len(run.printed("job:")) == 1, run.log
    assert "announced" not in run.log
    assert "| deployed" not in run.log
    assert platform.count("start_export") == 1
    assert platform.count("start_export", domain=DOMAIN) == 0


def test_ci_exports_fails_and_waits_for_an_agent_and_another_job_reads_the_outputs(
    act: Act, platform: Simulator
) -> None:
    run = act.run("ci.yml", platform, job="outputs")

    assert run.succeeded, run.log
    (printed,) = run.printed("outputs of the action:")
    assert printed.startswith("12 pages; failed: job-failed; pull request: https://"), run.log

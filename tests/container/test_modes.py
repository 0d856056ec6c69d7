"""The built image works when it is started like the runner starts it."""

import json

import pytest

from admin_api_simulator import Simulator
from tests.container.runner import Runner

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image


def test_export_outputs_the_bundle_link(runner: Runner, platform: Simulator) -> None:
    ended = runner.run(export_of("docs.example.com", platform))

    assert ended.exit_code == 0, ended.log
    assert ended.outputs["status"] == "completed"
    assert ended.outputs["jobId"] in ended.log
    assert ended.outputs["bundleUrl"].startswith("http://127.0.0.1:")
    assert ended.outputs["pageCount"] == "12"
    assert "docs.example.com" in ended.summary


def test_agent_mode_outputs_the_pull_request(runner: Runner, platform: Simulator) -> None:
    inputs = {
        "mode": "agent",
        "base-url": platform.base_url,
        "admin-key": platform.key,
        "project-id": "demo-project",
        "job-id": "agent-pull-request",
        "poll-interval": "100ms",
    }

    ended = runner.run(inputs)

    assert ended.exit_code == 0, ended.log
    assert ended.outputs["status"] == "completed"
    assert ended.outputs["prLink"].startswith("https://git.example.com/acme/docs/pull/")


def test_several_domains_are_exported_by_one_container(runner: Runner, platform: Simulator) -> None:
    domains = ["docs.example.com", "failing.example.com", "api.example.com"]

    ended = runner.run(export_of("\n".join(domains), platform) | {"site-path": "sites/{domain}"})

    results = {row["domain"]: row for row in json.loads(ended.outputs["results"])}
    assert ended.exit_code == 1, ended.log
    assert [*results] == domains
    assert [row["failureReason"] for row in results.values()] == [None, "job-failed", None]
    assert ended.outputs["failureReason"] == "job-failed"
    for domain in ("docs.example.com", "api.example.com"):
        assert (runner.workspace / results[domain]["sitePath"] / "index.html").is_file()
        assert f"::group::{domain}: done in" in ended.log
        assert domain in ended.summary


def test_a_failed_job_fails_the_step_with_one_annotation(runner: Runner, platform: Simulator) -> None:
    ended = runner.run(export_of("failing.example.com", platform))

    assert ended.exit_code == 1, ended.log
    assert ended.outputs["failureReason"] == "job-failed"
    assert ended.outputs["status"] == "failed"
    assert "bundleUrl" not in ended.outputs
    assert len(ended.errors) == 1
    assert "failing.example.com" in ended.errors[0]
    lines = ended.log.splitlines()
    assert [number for number, line in enumerate(lines) if platform.key in line] == [0], "the key is in the first line alone"
    assert lines[0] == f"::add-mask::{platform.key}"


def test_a_missing_input_is_reported_before_any_request(runner: Runner, platform: Simulator) -> None:
    ended = runner.run({"base-url": platform.base_url, "admin-key": platform.key})

    assert ended.exit_code == 1, ended.log
    assert ended.outputs["failureReason"] == "invalid-input"
    assert platform.requests == []


def export_of(domain: str, platform: Simulator) -> dict[str, str]:
    return {
        "base-url": platform.base_url,
        "admin-key": platform.key,
        "domain": domain,
        "poll-interval": "100ms",
    }

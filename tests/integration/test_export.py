"""Export mode from the start request to the bundle link, on a platform without faults."""

from collections.abc import Callable

import requests

from admin_api_simulator import Simulator
from tests.action import Action

RESULT_KEYS = {
    *("mode", "domain", "projectId", "jobId", "status", "bundleUrl", "expiresAt", "pageCount", "bundlePath", "bundleSize"),
    *("bundleSha256", "sitePath", "valuesFile", "prLink", "repository", "ref", "model", "createdAt", "archivedAt"),
    *("durationSeconds", "failureReason", "message"),
}
AWKWARD_JOB_IDS = ["a/b", "50%", "..", ".", "%2F", "v1?x#y", "ünï çödé", "a&b=c;d", "job:7", "../../v2/agent/p/job/j", "%2e%2E"]


def test_an_export_ends_with_a_working_link(action: Action, platform: Simulator) -> None:
    ended = action.export(platform)

    assert (ended.exit_code, ended.stderr, ended.commands) == (0, "", [])
    assert ended.outputs.keys() == {
        *("jobId", "status", "bundleUrl", "expiresAt", "pageCount", "durationSeconds", "results"),
    }
    assert ended.stdout.splitlines()[0] == f"::add-mask::{platform.key}"
    assert ended.result.keys() == RESULT_KEYS
    known = {"mode": "export", "domain": "docs.example.com", "status": "completed", "pageCount": 12, "failureReason": None}
    written = {name: ended.outputs[name] for name in ("jobId", "bundleUrl", "expiresAt")}
    assert {**known, **written}.items() <= ended.result.items()
    assert (ended.outputs["status"], ended.outputs["pageCount"]) == ("completed", "12")
    assert ended.outputs["durationSeconds"].isdigit()
    assert requests.get(ended.outputs["bundleUrl"], timeout=10).content[:2] == b"\x1f\x8b"


def test_a_job_started_without_waiting_is_collected_by_a_later_run(action: Action, platform: Simulator) -> None:
    started = action.export(platform, wait="false")
    assert (started.exit_code, platform.count("read_export")) == (0, 0)
    assert started.outputs.keys() == {"jobId", "status", "durationSeconds", "results"}

    collected = action.run(platform, mode="collect", job_id=started.outputs["jobId"])

    assert collected.exit_code == 0
    assert (collected.outputs["jobId"], collected.result["mode"]) == (started.outputs["jobId"], "collect")
    assert collected.outputs["bundleUrl"]
    assert platform.count("start_export") == 1


def test_any_job_id_from_the_platform_is_used_unchanged(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(job_ids=AWKWARD_JOB_IDS, export_seconds=0)

    ids = [action.export(platform).outputs["jobId"] for _ in AWKWARD_JOB_IDS]

    assert ids == AWKWARD_JOB_IDS
    assert {request.operation for request in platform.requests} == {"start_export", "read_export", "make_bundle"}


def test_only_necessary_headers_are_sent(action: Action, platform: Simulator) -> None:
    action.export(platform)

    common = {"Host", "Authorization", "Accept", "Accept-Encoding", "Connection", "User-Agent"}
    expected = {
        "start_export": {*common, "Content-Length", "Content-Type"},
        "read_export": common,
        "make_bundle": {*common, "Content-Length"},
    }
    for request in platform.requests:
        assert set(request.headers) == expected[request.operation]
        assert request.headers["Authorization"] == f"Bearer {platform.key}"
        assert request.headers["User-Agent"].startswith("docs-platform-action/")

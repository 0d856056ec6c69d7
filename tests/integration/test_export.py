"""Export mode from the start request to the bundle link, on a platform without faults."""

import json
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import requests

from admin_api_simulator import Fault, Simulator
from tests.action import Action

RESULT_KEYS = {
    *("mode", "domain", "projectId", "jobId", "status", "bundleUrl", "expiresAt", "pageCount", "bundlePath", "bundleSize"),
    *("bundleSha256", "sitePath", "valuesFile", "prLink", "repository", "ref", "model", "createdAt", "archivedAt"),
    *("durationSeconds", "failureReason", "message"),
}
AWKWARD_JOB_IDS = ["a/b", "50%", "..", ".", "%2F", "v1?x#y", "ünï çödé", "a&b=c;d", "job:7", "../../v2/agent/p/job/j"]


def queries_of(url: str) -> list[str]:
    """Return the parameters of a link's query."""
    return [value for value in url.partition("?")[2].split("&") if len(value) > 20]


def test_an_export_ends_with_a_working_link(action: Action, platform: Simulator) -> None:
    ended = action.export(platform)

    assert (ended.exit_code, ended.stderr, ended.commands) == (0, "", [])
    assert ended.outputs.keys() == {
        *("jobId", "status", "bundleUrl", "expiresAt", "pageCount", "durationSeconds", "results"),
    }
    assert ended.outputs["status"] == "completed"
    assert ended.outputs["pageCount"] == "12"
    assert ended.outputs["durationSeconds"].isdigit()
    assert requests.get(ended.outputs["bundleUrl"], timeout=10).content[:2] == b"\x1f\x8b"


def test_results_contains_the_job_with_every_key(action: Action, platform: Simulator) -> None:
    ended = action.export(platform)

    result = ended.result
    assert result.keys() == RESULT_KEYS
    same = ("jobId", "status", "bundleUrl", "expiresAt")
    assert {name: result[name] for name in same} == {name: ended.outputs[name] for name in same}
    assert {name: result[name] for name in ("mode", "domain", "pageCount", "failureReason")} == {
        "mode": "export",
        "domain": "docs.example.com",
        "pageCount": 12,
        "failureReason": None,
    }


def test_log_and_summary_describe_the_run_without_the_links_query(action: Action, platform: Simulator) -> None:
    ended = action.export(platform)

    url, job_id = ended.outputs["bundleUrl"], ended.outputs["jobId"]
    lines = ended.log.splitlines()
    assert lines[0] == "Static export of docs.example.com"
    assert lines[1] == f"  Job {job_id} started (attach to it later with job-id: {job_id})"
    assert [line.split()[0] for line in lines[2:-1]][-1] == "completed"
    assert lines[-1].startswith(f"  Bundle link ready: {url.partition('?')[0].removeprefix('http://')}, valid until ")
    assert "| Pages | 12 |" in ended.summary
    assert len(queries_of(url)) > 3
    for secret in queries_of(url):
        assert secret not in ended.stdout + ended.summary


def test_the_key_is_masked_before_anything_else(action: Action, platform: Simulator) -> None:
    ended = action.export(platform)

    assert ended.stdout.splitlines()[0] == f"::add-mask::{platform.key}"


def test_a_job_started_without_waiting_is_collected_by_a_later_run(action: Action, platform: Simulator) -> None:
    started = action.export(platform, wait="false")
    assert (started.exit_code, platform.count("read_export")) == (0, 0)
    assert started.outputs.keys() == {"jobId", "status", "durationSeconds", "results"}

    collected = action.run(platform, job_id=started.outputs["jobId"])

    assert collected.exit_code == 0
    assert collected.outputs["jobId"] == started.outputs["jobId"]
    assert collected.outputs["bundleUrl"]
    assert platform.count("start_export") == 1


def test_a_finished_job_gives_a_new_link_at_once(action: Action, platform: Simulator) -> None:
    links = {action.run(platform, job_id="export-finished", timeout="1ms").outputs["bundleUrl"] for _ in range(2)}

    assert len(links) == 2
    assert (platform.count("start_export"), platform.count("read_export")) == (0, 2)


def test_a_domain_with_a_job_id_is_only_a_label(action: Action, platform: Simulator) -> None:
    ended = action.export(platform, job_id="export-finished")

    assert ended.result["domain"] == "docs.example.com"
    assert ended.log.startswith("Static export of docs.example.com\n")
    assert platform.count("start_export") == 0


def test_any_job_id_from_the_platform_is_used_unchanged(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(job_ids=AWKWARD_JOB_IDS, export_seconds=0)

    ids = [action.export(platform).outputs["jobId"] for _ in AWKWARD_JOB_IDS]

    assert ids == AWKWARD_JOB_IDS
    assert {request.operation for request in platform.requests} == {"start_export", "read_export", "make_bundle"}


@pytest.mark.parametrize("job_id", ["a/b", "..", "%2e%2E", "50% ünï"])
def test_any_job_id_from_the_inputs_is_used_unchanged(action: Action, platform: Simulator, job_id: str) -> None:
    platform.add_export_job(job_id)

    ended = action.run(platform, job_id=job_id)

    assert (ended.exit_code, ended.outputs["jobId"]) == (0, job_id)


def test_start_options_are_sent_with_the_domain(action: Action, platform: Simulator) -> None:
    options = {"version": "2024-06-01", "paths": ["/a", "/ü"], "deep": {"flag": True, "none": None}}

    action.export(platform, start_options=json.dumps(options), wait="false")

    (request,) = platform.requests
    assert json.loads(request.body) == {**options, "domain": "docs.example.com"}


def test_only_necessary_headers_are_sent(action: Action, platform: Simulator) -> None:
    action.export(platform)

    common = {"Host", "Authorization", "Accept", "Accept-Encoding", "User-Agent"}
    expected = {
        "start_export": {*common, "Content-Length", "Content-Type"},
        "read_export": common,
        "make_bundle": {*common, "Content-Length"},
    }
    for request in platform.requests:
        assert set(request.headers) == expected[request.operation]
        assert request.headers["Authorization"] == f"Bearer {platform.key}"
        assert request.headers["User-Agent"].startswith("docs-platform-action/")


def test_progress_of_any_type_is_accepted(action: Action, platform: Simulator) -> None:
    types = ["57", "57 %", True, {"done": 3, "of": 5}, [1], -1, 101, 1e400, None]
    turns = (Fault(json={"status": "running", "progress": progress, "pageCount": progress}) for progress in types)
    platform.script("read_export", *turns)

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, ended.outputs["pageCount"], ended.commands) == (0, "12", [])
    assert platform.count("read_export") == len(types) + 1


@pytest.mark.parametrize(
    ("reported", "shown"),
    [(1.0, "1"), (123456, "123456"), (0, "0"), ("412", None), (True, None), (1.5, None), (-1, None), (None, None)],
)
def test_the_page_count_is_an_output_only_if_the_completed_job_has_an_integer(
    action: Action, platform: Simulator, reported: object, shown: str | None
) -> None:
    platform.script("read_export", Fault(json={"status": "running", "pageCount": 231}))
    platform.override("read_export", {"status": "completed", "pageCount": reported})

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, ended.outputs.get("pageCount")) == (0, shown)
    assert ended.result["pageCount"] == (None if shown is None else int(shown))
    assert ("| Pages |" in ended.summary) is (shown is not None)
    assert "231 pages" in ended.log
    assert not any("231" in line for line in ended.log.splitlines() if "completed" in line)


@pytest.mark.parametrize("end", ["failed", "running"])
def test_the_page_count_of_a_job_that_did_not_complete_is_not_an_output(action: Action, platform: Simulator, end: str) -> None:
    platform.script("read_export", Fault(json={"status": "running", "pageCount": 231}))
    platform.override("read_export", {"status": end, "pageCount": 300})

    ended = action.run(platform, job_id="export-finished", timeout="1s")

    assert (ended.exit_code, "pageCount" in ended.outputs, ended.result["pageCount"]) == (1, False, None)
    assert "| Pages |" not in ended.summary
    assert "300 pages" in ended.log


def test_of_several_domains_only_completed_ones_have_a_page_count(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(json={"status": "running", "pageCount": 231}), domain="b.example.com")
    platform.override("read_export", {"status": "completed"}, domain="b.example.com")

    ended = action.export(platform, domain="a.example.com\nb.example.com")

    assert ended.exit_code == 0
    assert [row["pageCount"] for row in json.loads(ended.outputs["results"])] == [12, None]
    assert "231" not in ended.summary
    assert re.search(r"b\.example\.com +done: link", ended.log)
    assert "Total: 12 pages" in ended.summary


@pytest.mark.parametrize(
    ("reported", "written"),
    [
        ({}, None),
        ({"expiresAt": {"seconds": 5}}, None),
        ({"expiresAt": 1900000000000}, "1900000000000"),
        ({"expiresAt": "2030-01-01T00:00:00+02:00"}, "2030-01-01T00:00:00+02:00"),
        ({"expiresAt": "next week"}, "next week"),
    ],
)
def test_an_expiry_in_any_format_is_output_unchanged(
    action: Action, platform: Simulator, reported: dict[str, Any], written: str | None
) -> None:
    platform.override("make_bundle", {"bundleUrl": "https://storage.example.com/b.tar.gz?signature=x", **reported})

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, ended.outputs.get("expiresAt")) == (0, written)
    assert ended.result["expiresAt"] == written


def test_an_unknown_status_is_reported_once_and_counts_as_running(action: Action, platform: Simulator) -> None:
    turns = ["preparing", "preparing", "queued", "preparing", "finalising"]
    platform.script("read_export", *(Fault(json={"status": status}) for status in turns))

    ended = action.run(platform, job_id="export-finished")

    assert ended.exit_code == 0
    assert ended.log.count("the unknown status 'preparing'; waiting continues") == 1
    assert ended.log.count("the unknown status 'finalising'; waiting continues") == 1
    assert platform.count("read_export") == len(turns) + 1


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_base_url_may_have_a_path(action: Action, make_platform: Callable[..., Simulator], slash: str) -> None:
    platform = make_platform(base_path="/gateway/docs%20api")

    ended = action.export(platform.base_url + slash)

    assert ended.exit_code == 0
    assert {request.path.startswith("/gateway/docs%20api/v1/") for request in platform.requests} == {True}


def test_a_private_authority_is_trusted_through_ca_bundle(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(tls=True)
    shutil.copy(str(platform.ca_path), action.workspace / "ca.pem")

    ended = action.export(platform, ca_bundle="ca.pem")

    assert ended.exit_code == 0, ended.stdout
    assert platform.base_url.startswith("https://")


def test_an_untrusted_certificate_fails_at_once_and_names_ca_bundle(
    action: Action, make_platform: Callable[..., Simulator]
) -> None:
    platform = make_platform(tls=True)

    ended = action.export(platform, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert "`ca-bundle`" in ended.error
    assert platform.requests == []


def test_an_untrusted_certificate_is_reported_even_after_the_timeout(
    action: Action, make_platform: Callable[..., Simulator]
) -> None:
    platform = make_platform(tls=True)

    ended = action.run(platform, job_id="export-finished", timeout="1ms")

    assert (ended.exit_code, ended.reason) == (1, "unavailable")
    assert "is not trusted" in ended.error
    assert "`ca-bundle`" in ended.error


def test_a_link_expired_by_the_runners_clock_is_reported(action: Action, platform: Simulator) -> None:
    platform.override("make_bundle", {"bundleUrl": "https://storage.example.com/b.tar.gz", "expiresAt": "2020-01-01T12:00:00Z"})

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, ended.outputs["expiresAt"]) == (0, "2020-01-01T12:00:00Z")
    assert "storage.example.com/b.tar.gz, expired at 2020-01-01 12:00 UTC by this runner's clock" in ended.log
    (row,) = [line for line in ended.summary.splitlines() if line.startswith("| Bundle link ")]
    assert "expired at 2020-01-01 12:00 UTC by this runner's clock" in row.replace("\\", "")
    assert "valid until" not in ended.log + ended.summary


def test_a_number_with_too_many_digits_for_python_is_ignored(action: Action, platform: Simulator) -> None:
    body = '{"status": "completed", "pageCount": ' + "9" * 5000 + "}"
    platform.script("read_export", Fault(body=body, headers={"Content-Type": "application/json"}))

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, platform.count("read_export"), "pageCount" in ended.outputs) == (0, 1, False)


@pytest.mark.parametrize("around", ["\ufeff{}", "\ufeff{}\r\n", " \ufeff{} "])
def test_a_byte_order_mark_around_an_input_is_removed(action: Action, platform: Simulator, around: str) -> None:
    ended = action.run(
        platform, **{name: around.format(value) for name, value in (("admin_key", platform.key), ("job_id", "export-finished"))}
    )

    assert (ended.exit_code, ended.outputs["jobId"]) == (0, "export-finished")

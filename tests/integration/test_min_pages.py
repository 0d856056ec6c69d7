"""`min-pages`: an export with too few pages delivers nothing, and its job can still be collected."""

import json
from collections.abc import Callable

import pytest

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.archives import SEVEN_ZIP

FILES = {"bundle_path": "bundle.tar.gz", "site_path": "site", "values_file": "values.yaml"}


@pytest.fixture
def uncounted(make_platform: Callable[..., Simulator]) -> Simulator:
    """Start a platform that reports a page count for running jobs, but not for completed ones."""
    platform = make_platform()
    platform.script("read_export", Fault(json={"status": "running", "pageCount": 500}))
    platform.override("read_export", lambda job: {name: value for name, value in job.items() if name != "pageCount"})
    return platform


def test_too_few_pages_by_the_api_deliver_nothing(action: Action, platform: Simulator) -> None:
    ended = action.export(platform, min_pages="13", **FILES)

    job_id = ended.outputs["jobId"]
    assert (ended.exit_code, ended.reason) == (1, "too-few-pages")
    assert [*action.workspace.iterdir()] == []
    assert not {"bundleUrl", "expiresAt", "bundlePath", "sitePath", "valuesFile"} & ended.outputs.keys()
    assert (ended.outputs["status"], ended.outputs["pageCount"]) == ("completed", "12")
    assert (platform.count("make_bundle"), platform.count("download")) == (0, 0)
    assert f"`mode: collect, job-id: {job_id}`" in ended.error


def test_the_job_is_collected_by_a_run_with_a_lower_number(action: Action, platform: Simulator) -> None:
    refused = action.export(platform, min_pages="13", **FILES)

    ended = action.run(platform, mode="collect", job_id=refused.outputs["jobId"], min_pages="12", **FILES)

    assert (ended.exit_code, platform.count("start_export")) == (0, 1)
    assert {found.name for found in action.workspace.iterdir()} == {"bundle.tar.gz", "site", "values.yaml"}


def test_without_a_count_from_the_api_the_pages_of_the_site_are_counted(action: Action, uncounted: Simulator) -> None:
    ended = action.export(uncounted, min_pages="12", **FILES)

    assert ended.exit_code == 0, ended.stdout
    assert {found.name for found in action.workspace.iterdir()} == {"bundle.tar.gz", "site", "values.yaml"}
    assert ended.outputs["bundlePath"] == "bundle.tar.gz"


def test_too_few_pages_in_the_site_leave_nothing_behind(action: Action, uncounted: Simulator) -> None:
    ended = action.export(uncounted, min_pages="13", **FILES)

    assert (ended.exit_code, ended.reason) == (1, "too-few-pages")
    assert [*action.workspace.iterdir()] == []
    assert not {"bundleUrl", "expiresAt", "bundlePath", "sitePath", "valuesFile"} & ended.outputs.keys()
    assert ended.result["bundleUrl"] is None
    assert f"`mode: collect, job-id: {ended.outputs['jobId']}`" in ended.error


def test_a_refused_archive_whose_pages_cannot_be_counted_is_not_saved(action: Action, uncounted: Simulator) -> None:
    uncounted.put_bundle("export-finished", SEVEN_ZIP)
    (action.workspace / "bundle.tar.gz").write_bytes(b"of an earlier run")

    ended = action.export(uncounted, mode="collect", job_id="export-finished", min_pages="1", **FILES)

    assert (ended.exit_code, ended.reason) == (1, "invalid-bundle"), ended.stdout
    assert [*action.workspace.iterdir()] == [action.workspace / "bundle.tar.gz"]
    assert (action.workspace / "bundle.tar.gz").read_bytes() == b"of an earlier run"
    assert "bundlePath" not in ended.outputs


def test_without_any_count_the_step_fails_and_names_the_input_to_set(action: Action, uncounted: Simulator) -> None:
    ended = action.export(uncounted, min_pages="1", bundle_path="bundle.tar.gz")

    assert (ended.exit_code, ended.reason) == (1, "too-few-pages")
    assert [*action.workspace.iterdir()] == []
    assert "`site-path`" in ended.error
    assert uncounted.count("make_bundle") == 0


def test_one_number_applies_to_every_domain(action: Action, platform: Simulator) -> None:
    platform.override("read_export", lambda job: {**job, "pageCount": 3}, domain="small.example.com")

    ended = action.export(platform, domain="docs.example.com\nsmall.example.com", min_pages="12", site_path="sites/{domain}")

    rows = json.loads(ended.outputs["results"])
    assert [(row["failureReason"], row["bundleUrl"] is None) for row in rows] == [(None, False), ("too-few-pages", True)]
    assert [found.name for found in (action.workspace / "sites").iterdir()] == ["docs.example.com"]

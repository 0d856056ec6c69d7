"""Exports by project.

That is what only the newer form of the export API has, and what a workflow writes for it.
"""

import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault, Simulator
from admin_api_simulator.contract import check_requests
from tests.action import Action
from tests.ended import ended_of
from tests.forms import BOTH_FORMS, BY_DOMAIN
from tests.keys import ADMIN_KEY
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

DOCS: Final = {"project_id": "docs"}
LABELED: Final = {"project_id": "docs.example.com: docs"}
COLLECT: Final = {"mode": "collect", "project_id": "docs", "job_id": "export-finished"}
THREE: Final = {"project_id": "A: a\nB: b\nC: c"}
PAGE: Final = Fault(
    body="<!doctype html><title>Log in</title>", headers={"Content-Type": "text/html"}
)


@pytest.fixture
def platform() -> Iterator[VirtualPlatform]:
    """Return a platform whose requests are checked against the API description."""
    platform = VirtualPlatform(VirtualClock(), pages=12, asset_bytes=200_000)
    yield platform
    check_requests(platform.simulator.requests)


class TestRequests:
    @pytest.mark.parametrize(
        ("options", "body"), [("", None), ('{"basePath": "/docs"}', {"basePath": "/docs"})]
    )
    def test_a_start_names_the_project_in_its_path_and_has_a_body_only_with_options(
        self, action: Action, platform: VirtualPlatform, options: str, body: object
    ) -> None:
        action.run(platform, **DOCS, wait="false", start_options=options)

        (start,) = platform.simulator.requests
        assert start.method == "POST"
        assert start.path == "/v1/static-export/docs/jobs"
        if body is None:
            assert not start.body
            assert "Content-Type" not in start.headers
        else:
            assert json.loads(start.body) == body
            assert "Content-Type" in start.headers

    @pytest.mark.parametrize(
        ("project_id", "segment"),
        [
            ("a/b", "a%2Fb"),
            ("50%", "50%25"),
            ("a?b&c", "a%3Fb%26c"),
            ("6520 f3", "6520%20f3"),
            ("..", "%2E%2E"),
        ],
    )
    def test_an_identifier_is_one_segment_of_the_path(
        self, action: Action, platform: VirtualPlatform, project_id: str, segment: str
    ) -> None:
        ended = action.run(platform, project_id=project_id)

        start, *reads = (request.path for request in platform.simulator.requests)
        assert ended.end == (0, None), ended.stdout
        assert start == f"/v1/static-export/{segment}/jobs"
        assert {*reads} == {f"/v1/static-export/{segment}/jobs/{ended.outputs['jobId']}"}

    def test_the_first_reading_of_a_completed_job_is_enough(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        ended = action.run(platform, **COLLECT)

        assert [request.operation for request in platform.simulator.requests] == ["read_export"]
        assert ended.outputs["bundleUrl"].startswith(platform.simulator.storage_url)

    def test_the_base_path_is_in_the_links_of_the_site(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        action.run(platform, **DOCS, start_options='{"basePath": "/docs"}', site_path="site")

        page = (action.workspace / "site" / "index.html").read_text()
        assert 'href="/docs/index.html"' in page
        assert 'href="/index.html"' not in page

    def test_what_was_started_without_waiting_is_collected_with_the_project(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        started = action.run(platform, **LABELED, wait="false")
        job_id = started.outputs["jobId"]
        inputs = {**LABELED, "mode": "collect", "job_id": job_id, "site_path": "{domain}"}

        collected = action.run(platform, **inputs)

        assert f"mode: collect, project-id: docs, job-id: {job_id}" in started.log
        assert collected.end == (0, None)
        assert collected.outputs["sitePath"] == "docs.example.com"
        assert platform.simulator.count("start_export") == 1


class TestNames:
    @pytest.mark.parametrize(
        ("inputs", "domain", "shown"),
        [
            (LABELED, "docs.example.com", "docs.example.com"),
            ({"project_id": "Guides: API: docs"}, "Guides: API", "Guides: API"),
            ({**DOCS, "domain": "docs.example.com"}, "docs.example.com", "docs.example.com"),
            (DOCS, None, "project docs"),
        ],
    )
    def test_a_site_is_called_by_its_label_its_domain_or_its_identifier(
        self,
        action: Action,
        platform: VirtualPlatform,
        inputs: dict[str, str],
        domain: str | None,
        shown: str,
    ) -> None:
        ended = action.run(platform, **inputs)

        assert ended.result["domain"] == domain
        assert ended.result["projectId"] == "docs"
        assert ended.log.startswith(f"Static export of {shown}\n")
        assert shown in ended.summary.replace("\\", "").splitlines()[0]

    def test_labels_stand_in_paths_and_in_results(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        paths = {"site_path": "sites/{domain}", "values_file": "{domain}.yaml"}

        ended = action.run(platform, **THREE, **paths)

        assert ended.end == (0, None), ended.stdout
        assert {path.name for path in (action.workspace / "sites").iterdir()} == {"A", "B", "C"}
        assert [row["domain"] for row in ended.results] == ["A", "B", "C"]
        assert [row["projectId"] for row in ended.results] == ["a", "b", "c"]
        for label in ("A", "B", "C"):
            assert f"\n| {label} | done | " in ended.summary

    def test_what_is_unknown_is_not_mentioned(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        platform.simulator.plan_export("docs.example.com", ExportPlan(seconds=600.0))

        one = action.run(platform, **DOCS)
        several = action.run(platform, **THREE)

        for ended in (one, several):
            shown = ended.log + ended.summary
            assert "0 %" not in shown
            assert "page" not in shown
            assert "Page" not in shown


class TestLink:
    def test_one_that_comes_later_is_waited_for(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        platform.simulator.plan_export(
            "docs.example.com", ExportPlan(seconds=0.0, link_delay_seconds=20.0)
        )

        ended = action.run(platform, **DOCS, site_path="site")

        assert ended.end == (0, None), ended.stdout
        assert ended.outputs["status"] == "completed"
        assert 20 <= platform.clock.elapsed < 50

    def test_one_that_never_comes_ends_the_run_after_half_a_minute(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        platform.simulator.plan_export(
            "docs.example.com", ExportPlan(seconds=0.0, link_delay_seconds=9999.0)
        )

        ended = action.run(platform, **DOCS)

        assert ended.end == (1, "bad-response")
        assert "mode: collect, project-id: docs" in ended.error
        assert 30 <= platform.clock.elapsed < 40

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(json={"status": "completed"}),
            Fault(status=204),
            Fault(status=502),
            Fault(body="<html>"),
        ],
    )
    def test_one_that_never_comes_is_not_asked_for_without_pauses(
        self, action: Action, platform: VirtualPlatform, fault: Fault
    ) -> None:
        platform.simulator.script_forever(
            "read_export", fault, after=[Fault(json={"status": "completed"})]
        )

        action.run(platform, **COLLECT)

        assert platform.clock.elapsed < 10 * 60
        assert platform.simulator.count("read_export") < 60

    def test_a_reading_without_one_is_no_outage(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        platform.simulator.plan_export(
            "docs.example.com", ExportPlan(seconds=0.0, link_delay_seconds=28.0)
        )

        ended = action.run(platform, **DOCS, outage_tolerance="1s")

        assert ended.end == (0, None), ended.stdout
        line = "The completed export has no bundle link yet. Reading it again for up to 0:30."
        assert line in ended.log
        assert "responding again" not in ended.log

    def test_a_job_that_fails_while_it_is_awaited_says_why(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        completed = Fault(json={"status": "completed"})
        failed = Fault(json={"status": "failed", "error": "disk full"})
        platform.simulator.script("read_export", completed, completed, failed)

        ended = action.run(platform, **COLLECT)

        assert ended.end == (1, "job-failed")
        assert ended.outputs["status"] == "failed"
        assert "disk full" in ended.error

    def test_one_that_cannot_be_used_is_like_none(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        platform.simulator.override(
            "read_export", lambda job: {**job, "bundleUrl": "http://storage.example.com/b"}
        )

        ended = action.run(platform, **COLLECT)

        assert ended.end == (1, "bad-response")
        assert "`bundleUrl`" in ended.error

    def test_one_of_a_running_job_is_ignored(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        early = Fault(json={"status": "running", "bundleUrl": "https://storage.example.com/early"})
        platform.simulator.script("read_export", early, Fault(json={"status": "completed"}), early)

        ended = action.run(platform, **DOCS)

        assert ended.end == (0, None)
        assert "early" not in ended.outputs["bundleUrl"]

    def test_the_signature_of_any_is_hidden(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        link = "https://storage.example.com/b?X-Amz-Signature=0123456789abcdef"
        failed = {"status": "failed", "bundleUrl": link, "error": "0123456789abcdef has expired"}
        platform.simulator.script("read_export", Fault(json=failed))

        ended = action.run(platform, **COLLECT)

        assert ended.reason == "job-failed"
        assert "0123456789abcdef" not in ended.stdout + ended.summary

    @BOTH_FORMS
    def test_one_that_expires_twice_during_the_download_is_renewed_twice(
        self, action: Action, form: str
    ) -> None:
        platform = VirtualPlatform(VirtualClock(), asset_bytes=400_000, link_seconds=3600)
        pause = Fault(status=503, headers={"Retry-After": "3600"})
        cut = Fault(cut="in_body", cut_after_bytes=100_000)
        platform.simulator.script("download", cut, pause, None, cut, pause, None)

        ended = action.export(
            platform, bundle_path="bundle", outage_tolerance="2h", values_file="values.yaml"
        )

        statuses = [request.status for request in platform.simulator.requests_of("download")]
        assert ended.end == (0, None), ended.stdout
        assert statuses == [200, 503, 403, 206, 503, 403, 206]
        assert ended.outputs["bundleUrl"] in (action.workspace / "values.yaml").read_text()
        assert platform.simulator.count("make_bundle") == (3 if form == BY_DOMAIN else 0)

    @BOTH_FORMS
    def test_one_that_expires_while_other_sites_are_exported_is_renewed_at_the_end(
        self, action: Action
    ) -> None:
        platform = VirtualPlatform(VirtualClock(), link_seconds=300)
        platform.simulator.plan_export("slow.example.com", ExportPlan(seconds=1000.0))
        domains = "docs.example.com\nslow.example.com"

        ended = action.export(platform, domain=domains, values_file="{domain}.yaml")

        assert ended.end == (0, None), ended.stdout
        assert ended.log.count("Making a new link") == 1
        assert [row["domain"] for row in ended.results] == domains.split()
        for row in ended.results:
            values = (action.workspace / f"{row['domain']}.yaml").read_text()
            assert row["bundleUrl"] in values

    @BOTH_FORMS
    def test_one_that_has_expired_by_this_clock_is_renewed_once_and_used_with_a_warning(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        past = "2020-01-01T00:00:00Z"

        def expired(body: dict[str, Any]) -> dict[str, Any]:
            if "bundleUrl" not in body:
                return body
            return {**body, "expiresAt": past}

        platform.simulator.override("make_bundle", expired)
        platform.simulator.override("read_export", expired)

        ended = action.export(platform, site_path="site")

        assert ended.end == (0, None)
        assert len(ended.warnings) == 1
        assert ended.outputs["expiresAt"] == past


class TestRefused:
    @pytest.mark.parametrize(
        ("reason", "said"), [("no theme", '"no theme"'), ("", "gave no reason")]
    )
    def test_a_failed_job_says_why_if_the_platform_does(
        self, action: Action, platform: VirtualPlatform, reason: str, said: str
    ) -> None:
        platform.simulator.plan_export("docs.example.com", ExportPlan(error=reason))

        ended = action.run(platform, **DOCS)

        assert ended.end == (1, "job-failed")
        assert said in ended.error

    @BOTH_FORMS
    @pytest.mark.parametrize(
        "fault", [PAGE, Fault(status=404, json={"error": "no such endpoint"}), Fault(status=404)]
    )
    def test_a_platform_without_this_form_is_told_from_one_that_does_not_know_the_site(
        self, action: Action, platform: VirtualPlatform, form: str, fault: Fault
    ) -> None:
        platform.simulator.script_forever("start_export", fault)

        ended = action.export(platform)

        other = "If your platform exports projects, set `project-id`"
        if form != BY_DOMAIN:
            other = "If your platform exports domains, set `domain` and remove `project-id`"
        assert ended.reason == ("bad-response" if fault is PAGE else "not-found")
        assert other in ended.error

    @BOTH_FORMS
    def test_once_a_start_was_accepted_an_unknown_site_is_not_blamed_on_the_form(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        ended = action.run(platform, domain="docs.example.com\nunknown.example.com")

        assert ended.end == (1, "not-found")
        assert "If your platform" not in ended.error

    def test_a_deployment_behind_a_sign_in_stops_no_other(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        ended = action.run(platform, project_id="Private: private\nA: a\nB: b")

        assert [row["failureReason"] for row in ended.results] == ["forbidden", None, None]
        assert "not available for deployments that require authentication" in ended.error

    @BOTH_FORMS
    def test_a_401_stops_the_other_sites_only_by_domain(
        self, action: Action, platform: VirtualPlatform, form: str
    ) -> None:
        platform.simulator.script("start_export", Fault(status=401), domain="a.example.com")

        ended = action.run(platform, domain="a.example.com\nb.example.com")

        other = "unauthorized" if form == BY_DOMAIN else None
        assert [row["failureReason"] for row in ended.results] == ["unauthorized", other]

    @pytest.mark.parametrize(("inputs", "end"), [(DOCS, (1, "forbidden")), (COLLECT, (0, None))])
    def test_a_key_with_the_scope_read_collects_but_does_not_start(
        self, action: Action, inputs: dict[str, str], end: tuple[int, str | None]
    ) -> None:
        platform = VirtualPlatform(VirtualClock(), key="another-key", read_key=ADMIN_KEY)

        ended = action.run(platform, **inputs, site_path="site")

        exit_code, _ = end
        assert ended.end == end
        assert ("scope `write`" in ended.stdout) == (exit_code == 1)

    def test_the_job_of_another_site_of_the_run_is_not_taken(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        platform.simulator.plan_export("a.example.com", ExportPlan(job_id="same"))
        same = Fault(json={"jobId": "same", "status": "queued"})
        platform.simulator.script("start_export", same, domain="b.example.com")

        ended = action.run(platform, project_id="A: a\nB: b")

        assert [row["failureReason"] for row in ended.results] == [None, "bad-response"]
        assert "the same job for A and this site" in ended.error

    def test_a_job_of_another_project_is_not_found(
        self, action: Action, platform: VirtualPlatform
    ) -> None:
        ended = action.run(platform, **{**COLLECT, "project_id": "other"})

        assert ended.end == (1, "not-found")
        assert "`project-id`" in ended.error


class TestCancelled:
    """Over real sockets, in a separate process."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_between_the_start_and_the_first_reading(
        self, action: Action, make_platform: Callable[..., Simulator], number: signal.Signals
    ) -> None:
        platform = make_platform(export_seconds=3600.0)

        with action.start(platform, **DOCS, poll_interval="1h", max_poll_interval="1h") as running:
            inputs = "mode: collect, project-id: docs, job-id: "
            running.wait_for_line(f"started (collect it later with {inputs}")
            running.send_signal(number)
            ended = ended_of(running.collect())

        assert ended.end == (128 + number, "cancelled")
        assert f"project-id: docs, job-id: {ended.outputs['jobId']}" in ended.error
        assert platform.count("read_export") == 0

    def test_while_the_link_is_renewed(
        self, action: Action, make_platform: Callable[..., Simulator]
    ) -> None:
        platform = make_platform(link_seconds=30.0)
        platform.script_forever("read_export", Fault(delay_seconds=3600.0), after=[None])

        with action.start(platform, **COLLECT, site_path="site") as running:
            while platform.count("read_export") < 2:
                time.sleep(0.005)
            running.send_signal(signal.SIGTERM)
            ended = ended_of(running.collect())

        assert ended.end == (143, "cancelled")
        assert ended.result["status"] == "completed"
        assert ended.result["sitePath"] == "site"
        assert "bundleUrl" not in ended.outputs

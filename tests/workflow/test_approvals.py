"""Only what was approved is published, and an earlier export can be published again.

Each run has a plan and a publication.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange, site_files
from tests.workflow.act import DOMAIN, PROJECT, REPOSITORY, Act, WorkflowRun
from tests.workflow.conftest import (
    AWS,
    BUCKET,
    DEVELOPERS_BUCKET,
    DEVELOPERS_DOMAIN,
    PAGES,
    UNFINISHED,
    UPLOAD,
    Client,
    access,
    contents,
    during_upload,
    refuse_upload,
)
from tests.workflow.steps import run_step

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

PLAN: Final = "plan-and-publish.yml"
BACK: Final = "publish-an-earlier-export.yml"
CALL: Final = "call-plan-and-publish.yml"
CALL_DEVELOPERS: Final = "call-developers.yml"
VARIABLES: Final = {**UPLOAD, **PROJECT, "AWS_PLAN_ROLE": "arn:aws:iam::123456789012:role/plan"}
RUNS: Final = f"repos/{REPOSITORY}/actions/runs"
WAITING: Final = f"{RUNS}?status=waiting&per_page=100"


def review(state: str, *environments: str) -> dict[str, Any]:
    return {
        "state": state,
        "environments": [{"name": environment} for environment in environments],
        "user": {"login": "reviewer"},
        "comment": "",
    }


NOBODY: Final[list[dict[str, Any]]] = []
APPROVED: Final = [review("approved", "production")]
NOT_THIS: Final = [review("approved", "staging"), review("rejected", "production")]
FIRST: Final = {"event": "workflow_dispatch", "inputs": {"first-publication": "true"}}
MANIFEST: Final = "publication/site.manifest"
KEPT_ARTIFACTS: Final = "$RUNNER_TOOL_CACHE/$ARTIFACTS"
CHANGES: Final = f"docs-changes-{BUCKET}.json"
CHANGES_LINK: Final = f"[All added, changed and removed files](https://artifacts.invalid/{CHANGES})"


class Bucket:
    """A bucket that is published to by workflows."""

    def __init__(self, act: Act, platform: Simulator, storage: Client) -> None:
        self.act = act
        self.platform = platform
        self.storage = storage

    def run(
        self,
        workflow: str = PLAN,
        *,
        approvals: object = APPROVED,
        between: str = "",
        distribution: str = "",
        **given: Any,
    ) -> WorkflowRun:
        answers = {f"{RUNS}/1/approvals": approvals, WAITING: {"workflow_runs": []}}
        environment = {
            **access(self.storage),
            "GH_ANSWERS": json.dumps(answers),
            "BETWEEN": between,
        }
        variables = {**VARIABLES, "DOCS_DISTRIBUTION": distribution}
        return self.act.run(
            workflow, self.platform, variables=variables, environment=environment, **given
        )

    def go_back(self, sha256: str, **given: Any) -> WorkflowRun:
        inputs = {"bundle-sha256": sha256}
        return self.run(BACK, event="workflow_dispatch", inputs=inputs, **given)

    def change(self, **kinds: int) -> None:
        self.platform.plan_export(DOMAIN, ExportPlan(change=SiteChange(**kinds)))

    def site(self, bucket: str = BUCKET) -> Mapping[str, bytes]:
        """Return the published files, without those of the next publication."""
        files = contents(self.storage, bucket)
        return {name: body for name, body in files.items() if not name.startswith("publication/")}

    def listed(self, bucket: str = BUCKET) -> dict[str, str]:
        """Return the SHA-256 of each file that the manifest lists, by its path."""
        listed = {}
        for line in contents(self.storage, bucket)[MANIFEST].decode().splitlines():
            if not line.startswith("#"):
                digest, _, path = line.partition("  ")
                listed[path] = digest
        return listed

    def assert_manifest_is_live(self, bucket: str = BUCKET) -> None:
        """Assert that the next plan will compare with what is published now."""
        live = {}
        for path, body in self.site(bucket).items():
            live[path] = hashlib.sha256(body).hexdigest()
        assert self.listed(bucket) == live
        assert UNFINISHED not in contents(self.storage, bucket)

    def unfinished(self) -> str:
        """Return the archive whose publication did not finish. Empty if there is none."""
        return contents(self.storage).get(UNFINISHED, b"").decode()

    def kept(self, bucket: str = BUCKET) -> dict[str, str]:
        """Return the SHA-256 of each kept archive, by its name."""
        kept = {}
        for path, body in contents(self.storage, bucket).items():
            if path.startswith("publication/bundles/"):
                name = path.rpartition("/")[2]
                kept[name] = hashlib.sha256(body).hexdigest()
        return kept


@pytest.fixture
def bucket(act: Act, platform: Simulator, storage: Client) -> Bucket:
    return Bucket(act, platform, storage)


def test_exactly_the_approved_archive_is_published_and_an_earlier_one_again(bucket: Bucket) -> None:
    first = bucket.run(**FIRST)

    assert first.succeeded, first.log
    assert f"mode: collect, project-id: {PROJECT['DOCS_PROJECT_ID']}" in first.log
    assert "Approved by reviewer" in first.log
    published = bucket.site()
    kept = bucket.kept()
    (sha256,) = kept
    assert kept == {sha256: sha256}
    bucket.assert_manifest_is_live()

    bucket.change(added=1, changed=2, removed=1)
    second = bucket.run(between=f"cat {KEPT_ARTIFACTS}/{CHANGES}/{CHANGES}")

    assert second.succeeded, second.log
    assert '"guides/new-1.html"' in second.log, "the list of changes goes along"
    assert CHANGES_LINK in second.log
    assert bucket.site() != published
    assert "guides/new-1.html" in bucket.site()
    assert len(bucket.kept()) == 2
    bucket.assert_manifest_is_live()

    started = bucket.platform.count("start_export")
    back = bucket.go_back(sha256.upper())

    assert back.succeeded, back.log
    assert "1 added, 2 text changed" in back.log
    assert bucket.site() == published
    assert bucket.platform.count("start_export") == started
    bucket.assert_manifest_is_live()


def test_after_a_failed_cache_step_the_next_plan_compares_with_what_is_live(
    bucket: Bucket,
) -> None:
    bucket.change(added=40)
    failed = bucket.run(distribution="E-NOT-THERE", **FIRST)

    assert not failed.succeeded, failed.log
    assert "NoSuchDistribution" in failed.log
    assert "guides/new-40.html" in bucket.site()
    bucket.assert_manifest_is_live()

    bucket.change()
    stopped = bucket.run()

    assert not stopped.succeeded, stopped.log
    assert "40 of 53 published pages would be removed" in stopped.log
    assert CHANGES_LINK in stopped.log
    assert "guides/new-40.html" in bucket.site()


def test_after_a_half_done_upload_the_next_plan_names_it_and_going_back_resolves_it(
    bucket: Bucket,
) -> None:
    first = bucket.run(**FIRST)

    assert first.succeeded, first.log
    published = bucket.site()
    (earlier,) = bucket.kept()

    bucket.change(added=40)
    with refuse_upload("index.html"):
        failed = bucket.run()

    assert not failed.succeeded, failed.log
    new = bucket.unfinished()
    assert {earlier, new} == set(bucket.kept())
    assert "guides/new-40.html" in bucket.site(), "some of the new pages are published"
    assert set(bucket.listed()) == set(published), "but the manifest is the earlier one"

    started = bucket.platform.count("start_export")
    online = contents(bucket.storage)
    bucket.change()
    stopped = bucket.run()

    assert not stopped.succeeded, stopped.log
    assert f"::error::The publication of the archive {new} has not finished" in stopped.log
    assert bucket.platform.count("start_export") == started
    assert contents(bucket.storage) == online

    back = bucket.go_back(earlier)

    assert back.succeeded, back.log
    assert f"::warning::The publication of the archive {new} has not finished" in back.log
    assert bucket.site() == published
    bucket.assert_manifest_is_live()


LEFT_HALF_DONE: Final = """
sha256sum docs.bundle | head --bytes=64 | aws s3 cp - s3://{bucket}/publication/unfinished
printf half | aws s3 cp - s3://{bucket}/guides/new-1.html
"""
ANOTHER: Final = "d" * 64


STEPS_OF_ANOTHER: Final = {
    "Fetch the manifest of the published site": {"FIRST_PUBLICATION": "true"},
    "Stop if the published site is not the one of the plan": {
        "SHA256": ANOTHER,
        "PUBLISHED": "none@",
        "UNFINISHED": "none",
        "PLANNED": "",
    },
}


def test_an_unfinished_publication_runs_again_and_stops_what_begins_meanwhile(
    bucket: Bucket, examples_image: str
) -> None:
    during: list[tuple[int, str]] = []

    def begin() -> None:
        for step, given in STEPS_OF_ANOTHER.items():
            variables = {"BUCKET": f"s3://{BUCKET}", **access(bucket.storage), **given}
            during.append(run_step(examples_image, PLAN, step, variables))

    with during_upload("index.html", begin):
        run = bucket.run(between=LEFT_HALF_DONE.format(bucket=BUCKET), **FIRST)

    assert run.succeeded, run.log
    (sha256,) = bucket.kept()
    assert len(during) == len(STEPS_OF_ANOTHER)
    for code, log in during:
        assert code == 1, log
        assert f"::error::The publication of the archive {sha256} has not finished" in log
    assert bucket.site() == site_files(domain=DOMAIN, pages=PAGES)
    bucket.assert_manifest_is_live()


def test_of_two_publications_that_begin_at_once_the_second_uploads_nothing(
    bucket: Bucket,
) -> None:
    def begin() -> None:
        bucket.storage.put_object(Bucket=BUCKET, Key=UNFINISHED, Body=ANOTHER.encode())

    # after the check, and before the marker
    with during_upload("publication/bundles/", begin):
        run = bucket.run(**FIRST)

    assert not run.succeeded, run.log
    assert "::error::Nothing was uploaded, because publication/unfinished could not be " in run.log
    assert "(PreconditionFailed)" in run.log
    assert bucket.site() == {}
    assert bucket.unfinished() == ANOTHER


def test_a_changed_archive_is_not_published(bucket: Bucket) -> None:
    run = bucket.run(between="echo >> docs.bundle", **FIRST)

    assert not run.succeeded, run.log
    assert "the archive does not match `bundle-sha256`" in run.log
    assert bucket.site() == {}
    assert bucket.kept() == {}


NOBODY_APPROVED: Final = "::error::Nobody has approved this run for the environment production. "


@pytest.mark.parametrize(
    ("approvals", "status", "printed"),
    [
        (NOBODY, 1, NOBODY_APPROVED),
        (NOT_THIS, 1, NOBODY_APPROVED),
        ([*NOT_THIS, *APPROVED], 0, "Approved by reviewer\n"),
        ([review("approved", "staging", "production")], 0, "Approved by reviewer\n"),
        ([review("approved", "Production")], 0, "Approved by reviewer\n"),
    ],
)
def test_only_an_approval_of_the_environment_counts(
    examples_image: str, approvals: list[dict[str, Any]], status: int, printed: str
) -> None:
    github = of_run(1, {f"{RUNS}/1/approvals": approvals})

    code, log = run_step(examples_image, PLAN, "Stop unless somebody has approved this run", github)

    assert code == status, log
    assert printed in log, log


def of_run(number: int, answers: Mapping[str, object]) -> dict[str, str]:
    """Return the variables of a step of a run, with what GitHub answers."""
    return {
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": str(number),
        "ENVIRONMENT": "production",
        "GH_ANSWERS": json.dumps(answers),
    }


@pytest.mark.parametrize(
    ("approvals", "status"),
    [
        (NOBODY, 0),
        (NOT_THIS, 0),
        ([*NOT_THIS, *APPROVED], 1),
        ([review("approved", "Production")], 1),
    ],
)
@pytest.mark.parametrize("workflow", [PLAN, BACK])
def test_a_plan_that_was_approved_is_not_replaced_by_another_attempt(
    examples_image: str, workflow: str, approvals: list[dict[str, Any]], status: int
) -> None:
    step = "Stop if an earlier attempt of this run was approved"
    github = of_run(1, {f"{RUNS}/1/approvals": approvals})

    code, log = run_step(examples_image, workflow, step, github)

    assert code == status, log


OWN_PATH: Final = ".github/workflows/plan-and-publish.yml"
CALLED: Final = {"path": "example/central/.github/workflows/plan-and-publish.yml@main"}
PAGES_OF_RUNS: Final = [
    {
        "workflow_runs": [
            {"id": 25, "path": OWN_PATH},
            {"id": 20, "path": OWN_PATH},
            {"id": 19, "path": ".github/workflows/app.yml", "referenced_workflows": None},
            {"id": 18, "path": OWN_PATH},
        ]
    },
    {
        "workflow_runs": [
            {"id": 17, "path": ".github/workflows/site.yml", "referenced_workflows": [CALLED]},
            {"id": 16, "path": ".github/workflows/site.yml", "referenced_workflows": [CALLED]},
            {"id": 15, "path": ".github/workflows/publish-an-earlier-export.yml"},
            {"id": 14, "path": OWN_PATH},
            {"id": 13, "path": OWN_PATH},
        ]
    },
]
AWAITED: Final = {
    25: ["production"],
    20: ["production"],
    19: ["production"],
    18: ["Production"],
    17: ["production"],
    16: ["developers"],
    15: ["production"],
    14: ["production", "developers"],
}
"""Which environments runs wait for. GitHub knows no run 13 any more, and 19 is of an app."""


@pytest.mark.parametrize(
    ("workflow", "step", "cancelled"),
    [
        (PLAN, "Cancel older plans that wait for an approval", [18, 17, 15]),
        (BACK, "Cancel other plans that wait for an approval", [25, 18, 17, 15]),
    ],
)
def test_only_plans_of_the_same_site_are_cancelled(
    examples_image: str, workflow: str, step: str, cancelled: list[int]
) -> None:
    answers: dict[str, object] = {WAITING: {"pages": PAGES_OF_RUNS}}
    for run, environments in AWAITED.items():
        pending = [{"environment": {"name": name}} for name in environments]
        answers[f"{RUNS}/{run}/pending_deployments"] = pending

    code, log = run_step(examples_image, workflow, step, of_run(20, answers))

    assert code == 0, log
    asked = re.findall(r"asked of gh: run cancel (\d+) ", log)
    assert asked == [str(run) for run in cancelled], log


def test_an_approval_of_one_site_does_not_publish_another_one(bucket: Bucket) -> None:
    region = {"LocationConstraint": AWS["region_name"]}
    bucket.storage.create_bucket(Bucket=DEVELOPERS_BUCKET, CreateBucketConfiguration=region)
    approvals = [review("approved", "docs-developers")]

    def publish(workflow: str) -> WorkflowRun:
        return bucket.run(workflow, approvals=approvals, **FIRST)

    with ThreadPoolExecutor() as pool:
        guides, developers = pool.map(publish, [CALL, CALL_DEVELOPERS])

    assert not guides.succeeded, guides.log
    assert "Nobody has approved this run for the environment docs-guides." in guides.log
    assert contents(bucket.storage) == {}
    assert developers.succeeded, developers.log
    published = site_files(domain=DEVELOPERS_DOMAIN, pages=PAGES)
    assert bucket.site(DEVELOPERS_BUCKET) == published
    bucket.assert_manifest_is_live(DEVELOPERS_BUCKET)
    # not by project: the variable names that of another site
    starts = bucket.platform.requests_of("start_export")
    assert {start.path for start in starts} == {"/v1/static-export/jobs"}

    (sha256,) = bucket.kept(DEVELOPERS_BUCKET)
    bucket.storage.put_object(Bucket=DEVELOPERS_BUCKET, Key="bad.html", Body=b"bad")
    inputs = {"bundle-sha256": sha256}
    back = bucket.run(
        CALL_DEVELOPERS, approvals=approvals, event="workflow_dispatch", inputs=inputs
    )

    assert back.succeeded, back.log
    assert bucket.site(DEVELOPERS_BUCKET) == published
    bucket.assert_manifest_is_live(DEVELOPERS_BUCKET)
    assert contents(bucket.storage) == {}


def test_the_publications_of_both_workflows_have_the_same_steps(act: Act) -> None:
    plan = publish_job(act, PLAN)
    back = publish_job(act, BACK)

    assert plan == back
    assert plan != ""


def publish_job(act: Act, workflow: str) -> str:
    """Return the text of a workflow's job `publish`."""
    text = (act.repository / ".github" / "workflows" / workflow).read_text()
    _, _, job = text.partition("\n  publish:\n")
    return job

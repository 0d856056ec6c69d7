"""Only what was approved is published, and an earlier export can be published again.

Each run has a plan and a publication.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange
from tests.workflow.act import DOMAIN, PROJECT, REPOSITORY, Act, WorkflowRun
from tests.workflow.conftest import AWS, BUCKET, UPLOAD, Client, access, contents
from tests.workflow.steps import run_step

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

PLAN: Final = "plan-and-publish.yml"
BACK: Final = "publish-an-earlier-export.yml"
CALL: Final = "call-plan-and-publish.yml"
VARIABLES: Final = {**UPLOAD, **PROJECT, "AWS_PLAN_ROLE": "arn:aws:iam::123456789012:role/plan"}
RUN: Final = f"repos/{REPOSITORY}/actions/runs/1"
OWN: Final = ".github/workflows/plan-and-publish.yml"
WAITING: Final = [
    {"id": 2, "path": OWN},
    {"id": 0, "path": OWN},
    {"id": -1, "path": ".github/workflows/other.yml"},
]
ANSWERS: Final = {
    RUN: {"path": OWN},
    f"repos/{REPOSITORY}/actions/runs?status=waiting": {"workflow_runs": WAITING},
}


def review(state: str, environment: str) -> dict[str, Any]:
    return {
        "state": state,
        "environments": [{"name": environment}],
        "user": {"login": "reviewer"},
        "comment": "",
    }


NOBODY: Final[list[dict[str, Any]]] = []
APPROVED: Final = [review("approved", "production")]
NOT_THIS: Final = [review("approved", "staging"), review("rejected", "production")]
FIRST: Final = {"event": "workflow_dispatch", "inputs": {"first-publication": "true"}}


class Bucket:
    """A bucket that is published to by workflows."""

    def __init__(self, act: Act, platform: Simulator, storage: Client) -> None:
        self.act = act
        self.platform = platform
        self.storage = storage

    def run(
        self, workflow: str = PLAN, *, approvals: object = APPROVED, between: str = "", **given: Any
    ) -> WorkflowRun:
        environment = {
            **access(self.storage),
            "GH_ANSWERS": json.dumps({**ANSWERS, f"{RUN}/approvals": approvals}),
            "BETWEEN": between,
        }
        return self.act.run(
            workflow, self.platform, variables=VARIABLES, environment=environment, **given
        )

    def change(self, **kinds: int) -> None:
        self.platform.plan_export(DOMAIN, ExportPlan(change=SiteChange(**kinds)))

    def site(self) -> Mapping[str, bytes]:
        """Return the published files, without those of the next publication."""
        files = contents(self.storage)
        return {name: body for name, body in files.items() if not name.startswith("publication/")}

    def kept(self) -> dict[str, str]:
        """Return the SHA-256 of each kept archive, by its name."""
        kept = {}
        for path, body in contents(self.storage).items():
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
    assert first.printed("asked of gh:") == [f"run cancel 0 --repo {REPOSITORY}"], first.log
    published = bucket.site()
    kept = bucket.kept()
    (sha256,) = kept
    assert kept == {sha256: sha256}

    bucket.change(added=1, changed=2, removed=1)
    second = bucket.run()

    assert second.succeeded, second.log
    assert bucket.site() != published
    assert "guides/new-1.html" in bucket.site()
    assert len(bucket.kept()) == 2

    started = bucket.platform.count("start_export")
    online = contents(bucket.storage)
    inputs = {"bundle-sha256": sha256.upper()}
    earlier: dict[str, Any] = {"event": "workflow_dispatch", "inputs": inputs}
    cancels = [f"run cancel {run} --repo {REPOSITORY}" for run in (2, 0)]
    refused = bucket.run(BACK, approvals=NOT_THIS, **earlier)

    assert not refused.succeeded, refused.log
    assert "1 added, 2 text changed" in refused.log
    assert refused.printed("asked of gh:") == cancels
    assert contents(bucket.storage) == online
    assert bucket.site() != published

    back = bucket.run(BACK, approvals=APPROVED, **earlier)

    assert back.succeeded, back.log
    assert "1 added, 2 text changed" in back.log
    assert back.printed("asked of gh:") == cancels
    assert contents(bucket.storage) != online
    assert bucket.site() == published
    assert bucket.platform.count("start_export") == started


MANIFEST: Final = "publication/site.manifest"
OTHER_SITE: Final = f"printf other | aws s3 cp - s3://{BUCKET}/{MANIFEST}"


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        ("echo >> docs.bundle", "the archive does not match `bundle-sha256`"),
        (OTHER_SITE, "Something else was published after the plan that was approved"),
    ],
)
def test_a_changed_archive_and_a_stale_approval_are_not_published(
    bucket: Bucket, between: str, reason: str
) -> None:
    run = bucket.run(between=between, **FIRST)

    assert not run.succeeded, run.log
    assert reason in run.log
    assert bucket.site() == {}
    assert bucket.kept() == {}


@pytest.mark.parametrize(
    ("approvals", "status", "printed"),
    [
        (NOBODY, 1, "::error::Nobody has approved this run. "),
        (NOT_THIS, 1, "::error::Nobody has approved this run. "),
        ([*NOT_THIS, *APPROVED], 0, "Approved by reviewer\n"),
        ([review("approved", "Production")], 0, "Approved by reviewer\n"),
    ],
)
def test_only_an_approval_of_the_environment_counts(
    examples_image: str, approvals: list[dict[str, Any]], status: int, printed: str
) -> None:
    github = {
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "1",
        "GH_ANSWERS": json.dumps({f"{RUN}/approvals": approvals}),
    }

    code, log = run_step(examples_image, PLAN, "Stop unless somebody has approved this run", github)

    assert code == status, log
    assert printed in log, log


PUBLISHED: Final = b"what is published"
PLANNED: Final = hashlib.sha256(PUBLISHED).hexdigest()
STALE: Final = "::error::Something else was published after the plan that was approved. "
UNKNOWN: Final = "::error::The manifest of the published site could not be fetched: "


@pytest.mark.parametrize(
    ("planned", "published", "is_first", "error"),
    [
        (PLANNED, PUBLISHED, False, ""),
        (PLANNED, b"another site", False, STALE),
        (PLANNED, None, False, UNKNOWN),
        (PLANNED, None, True, STALE),
        ("none", None, True, ""),
        ("none", PUBLISHED, True, STALE),
        ("", PUBLISHED, False, STALE),
    ],
)
def test_the_published_site_is_compared_with_the_one_of_the_plan(
    examples_image: str,
    storage: Client,
    planned: str,
    published: bytes | None,
    is_first: bool,
    error: str,
) -> None:
    if published is not None:
        storage.put_object(Bucket=BUCKET, Key=MANIFEST, Body=published)
    variables = {
        "BUCKET": f"s3://{BUCKET}",
        "PLANNED": planned,
        "FIRST_PUBLICATION": str(is_first).lower(),
        **access(storage),
    }
    step = "Stop if the published site is not the one of the plan"

    code, log = run_step(examples_image, PLAN, step, variables)

    expected_code = 1 if error else 0
    assert code == expected_code, log
    assert error in log, log


SITES: Final = {
    "guides": (BUCKET, DOMAIN),
    "developers": ("developers-example-com", "developers.example.com"),
}


@pytest.mark.parametrize("site", SITES)
def test_several_sites_call_one_workflow(bucket: Bucket, site: str) -> None:
    region = {"LocationConstraint": AWS["region_name"]}
    other, _ = SITES["developers"]
    bucket.storage.create_bucket(Bucket=other, CreateBucketConfiguration=region)
    inputs = {"site": site, "first-publication": "true"}

    run = bucket.run(CALL, event="workflow_dispatch", inputs=inputs)

    assert run.succeeded, run.log
    name, domain = SITES[site]
    published = {made: contents(bucket.storage, made) for made, _ in SITES.values()}
    assert [made for made, files in published.items() if files] == [name]
    assert domain.encode() in published[name]["index.html"]
    # not by project: the variable names that of another site
    (start,) = bucket.platform.requests_of("start_export")
    assert start.path == "/v1/static-export/jobs"
    assert MANIFEST in published[name]


def test_the_publications_of_both_workflows_have_the_same_steps(act: Act) -> None:
    plan = publish_job(act, PLAN)
    back = publish_job(act, BACK)

    assert plan == back
    assert plan != ""


def publish_job(act: Act, workflow: str) -> str:
    """Return the text of a workflow's job `publish`, without the group of its concurrency."""
    text = (act.repository / ".github" / "workflows" / workflow).read_text()
    _, _, job = text.partition("\n  publish:\n")
    return re.sub(r"group: .*", "", job)

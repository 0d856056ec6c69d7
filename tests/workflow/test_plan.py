"""The steps of the page about the plan.

They publish, compare with what is published, and stop a site that lost its pages.
"""

import hashlib
import re

import pytest

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange
from tests.workflow.act import DOMAIN, Act, WorkflowRun
from tests.workflow.conftest import BUCKET, UNFINISHED, Client, access, contents, refuse_upload

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

FIRST = {"event": "workflow_dispatch", "inputs": {"first-publication": "true"}}
LISTED = re.compile("^([0-9a-f]{64})  (.+)$", re.MULTILINE)
MANIFESTS = {"plan-host": "site.manifest", "plan-s3": "publication/site.manifest"}


class Host:
    """A bucket that is published to by a workflow again and again."""

    def __init__(self, act: Act, platform: Simulator, storage: Client, name: str) -> None:
        self.act = act
        self.platform = platform
        self.storage = storage
        self.name = name

    def publish(self, change: SiteChange | None = None, **given: object) -> WorkflowRun:
        if change is not None:
            self.platform.plan_export(DOMAIN, ExportPlan(change=change))
        return self.act.run(
            f"{self.name}.yml",
            self.platform,
            variables={"DOCS_LIVE_URL": f"{self.storage.meta.endpoint_url}/{BUCKET}"},
            environment=access(self.storage),
            **given,
        )

    def files(self) -> dict[str, str]:
        """Return the digests of what is published, by path."""
        found = self.storage.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {entry["Key"]: entry["ETag"] for entry in found}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_site_is_published_compared_and_stopped(
    act: Act, platform: Simulator, storage: Client, name: str
) -> None:
    host = Host(act, platform, storage, name)

    unfetched = host.publish()

    assert not unfetched.succeeded, unfetched.log
    assert platform.count("start_export") == 0
    assert host.files() == {}

    first = host.publish(**FIRST)

    assert first.succeeded, first.log
    fact = "Nothing is published yet (`first-publication`), so every file counts as added."
    assert fact in first.log
    assert MANIFESTS[name] in host.files()

    changed = host.publish(SiteChange(added=1, changed=2, removed=1))

    assert changed.succeeded, changed.log
    pages = "1 added, 2 text changed, 1 otherwise changed, 1 removed, 9 unchanged"
    assert f"Changes: pages: {pages}; other files: " in changed.log
    assert "guides/new-1.html" in host.files()

    published = host.files()
    stopped = host.publish(SiteChange(removed=6))

    assert not stopped.succeeded, stopped.log
    reason = "6 of 13 published pages would be removed, but `max-removed` (10%) allows 1"
    assert reason in stopped.log
    assert host.files() == published

    left_on = host.publish(**FIRST)

    assert not left_on.succeeded, left_on.log
    assert "Invalid input `first-publication`" in left_on.log

    (job_id,) = set(re.findall(r"Job (se_\w+) started", stopped.log))
    inputs = {"job-id": job_id, "max-removed": "50%"}
    by_hand = host.publish(event="workflow_dispatch", inputs=inputs)

    assert by_hand.succeeded, by_hand.log
    assert host.files()[MANIFESTS[name]] != published[MANIFESTS[name]]


def test_an_upload_that_fails_halfway_is_finished_before_anything_else_is_compared(
    act: Act, platform: Simulator, storage: Client
) -> None:
    host = Host(act, platform, storage, "plan-s3")
    first = host.publish(**FIRST)
    published = contents(storage)[MANIFESTS["plan-s3"]]
    with refuse_upload("guides/new-2.html"):
        failed = host.publish(SiteChange(added=3))

    assert first.succeeded, first.log
    assert not failed.succeeded, failed.log
    # more is online than the manifest says
    assert {"guides/new-1.html", "guides/new-3.html"} & {*host.files()}
    assert contents(storage)[MANIFESTS["plan-s3"]] == published
    archive = contents(storage)[UNFINISHED].decode()
    assert re.fullmatch("[0-9a-f]{64}", archive)

    started = platform.count("start_export")
    online = host.files()
    stopped = host.publish()

    assert not stopped.succeeded, stopped.log
    assert f"::error::The publication of the archive {archive} has not finished." in stopped.log
    assert platform.count("start_export") == started
    assert host.files() == online

    (job_id,) = set(re.findall(r"Job (se_\w+) started", failed.log))
    finished = host.publish(event="workflow_dispatch", inputs={"job-id": job_id})

    assert finished.succeeded, finished.log
    assert "Changes: pages: 3 added, " in finished.log
    files = contents(storage)
    manifest = files.pop(MANIFESTS["plan-s3"]).decode()
    digests = {name: hashlib.sha256(body).hexdigest() for name, body in files.items()}
    assert {name: sha256 for sha256, name in LISTED.findall(manifest)} == digests

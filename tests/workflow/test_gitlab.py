"""examples/outside/gitlab-ci.yml, job by job as GitLab Runner runs them.

The jobs use S3 and a simulated platform.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import yaml

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange, site_files
from tests.engine import ROOT, action_image, remove_labelled_containers
from tests.gitlab import Pipeline
from tests.keys import ADMIN_KEY
from tests.workflow.act import DOMAIN
from tests.workflow.conftest import BUCKET, UNFINISHED, Client, access, contents, refuse_upload

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

PAGES = 12
TEXT = yaml.safe_load((ROOT / "examples" / "outside" / "gitlab-ci.yml").read_text("utf-8"))
FIRST = {"FIRST_PUBLICATION": "true"}
JOBS = ("fetch", "plan", "approve", "upload")


@pytest.fixture
def images(examples_image: str) -> dict[str, str]:
    return {
        TEXT[".action"]["image"]["name"]: action_image(),
        TEXT[".aws"]["image"]["name"]: examples_image,
    }


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(
        key=ADMIN_KEY, export_seconds=0.0, pages=PAGES, build_ids=False, host="127.0.0.1"
    ) as platform:
        yield platform


@pytest.fixture
def start(
    tmp_path: Path, images: dict[str, str], platform: Simulator, storage: Client
) -> Iterator[Callable[..., Pipeline]]:
    started: list[Pipeline] = []

    def pipeline(*, change: SiteChange | None = None, **variables: str) -> Pipeline:
        if change:
            platform.plan_export(DOMAIN, ExportPlan(change=change))
        all_variables = {
            "DOCS_ADMIN_KEY": ADMIN_KEY,
            "INPUT_BASE_URL": platform.base_url,
            "INPUT_POLL_INTERVAL": "100ms",
            **access(storage),
            **variables,
        }
        folder = tmp_path / str(len(started))
        made = Pipeline(TEXT, folder=folder, images=images, variables=all_variables)
        started.append(made)
        return made

    yield pipeline
    for made in started:
        remove_labelled_containers(made.label)


def site_of(storage: Client) -> dict[str, bytes]:
    files = contents(storage)
    return {name: body for name, body in files.items() if not name.startswith("publication/")}


def run_jobs(pipeline: Pipeline, jobs: Iterable[str] = JOBS) -> dict[str, str]:
    """Run jobs that must succeed, and return their logs."""
    logs = {}
    for job in jobs:
        code, logs[job] = pipeline.run(job)
        assert code == 0, logs[job]
    return logs


def test_what_was_approved_is_uploaded(start: Callable[..., Pipeline], storage: Client) -> None:
    first = start(**FIRST)
    run_jobs(first)

    assert site_of(storage) == site_files(domain=DOMAIN, pages=PAGES)
    assert not (first.project("plan") / "outputs.env").exists()

    change = SiteChange(added=1, removed=1)
    second = start(change=change)
    logs = run_jobs(second)

    assert "Changes: pages: 1 added, 1 otherwise changed, 1 removed, 11 unchanged; " in logs["plan"]
    assert site_of(storage) == site_files(domain=DOMAIN, pages=PAGES, change=change)


def test_nothing_else_is_uploaded(start: Callable[..., Pipeline], storage: Client) -> None:
    code, _ = start().run("fetch")

    assert code != 0, "no manifest, and no first publication"

    changed = start(**FIRST)
    run_jobs(changed, ("fetch", "plan"))
    with (changed.project("approve") / "docs.bundle").open("ab") as bundle:
        bundle.write(b"\0")
    code, log = changed.run("approve")

    assert code == 1, log
    assert "the archive does not match `bundle-sha256`" in log, log

    overtaken = start(**FIRST)
    run_jobs(overtaken, ("fetch", "plan", "approve"))
    manifest = "publication/site.manifest"
    storage.put_object(Bucket=BUCKET, Key=manifest, Body=b"of another publication")
    code, log = overtaken.run("upload")

    assert code != 0, log
    assert site_of(storage) == {}


def test_an_upload_that_fails_halfway_is_retried_before_anything_else_is_published(
    start: Callable[..., Pipeline], storage: Client
) -> None:
    failed = start(**FIRST)
    run_jobs(failed, ("fetch", "plan", "approve"))
    with refuse_upload("guides/page-2.html"):
        code, log = failed.run("upload")

    assert code != 0, log
    archive = contents(storage)[UNFINISHED].decode()
    assert archive == (failed.project("plan") / "docs.bundle.sha256").read_text()

    online = contents(storage)
    code, log = start(**FIRST).run("fetch")

    assert code != 0, log
    assert f"The publication of the archive {archive} has not finished" in log
    assert contents(storage) == online

    other = "d" * 64
    storage.put_object(Bucket=BUCKET, Key=UNFINISHED, Body=other.encode())
    code, log = failed.run("upload")

    assert code != 0, log
    assert f"The publication of the archive {other} has not finished" in log

    # once as after the failure, and once as if only the removal of the marker had failed
    for _ in range(2):
        storage.put_object(Bucket=BUCKET, Key=UNFINISHED, Body=archive.encode())
        run_jobs(failed, ("upload",))

        assert site_of(storage) == site_files(domain=DOMAIN, pages=PAGES)
        assert UNFINISHED not in contents(storage)
        manifest = (failed.project("plan") / "new.manifest").read_bytes()
        assert contents(storage)["publication/site.manifest"] == manifest
    run_jobs(start(), ("fetch",))


def test_what_cannot_be_read_is_not_missing(start: Callable[..., Pipeline]) -> None:
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}

    code, log = start(**FIRST, **nowhere).run("fetch")

    assert code != 0, log
    assert "Could not connect" in log, log


def test_a_stopped_plan_keeps_its_list_of_changes(start: Callable[..., Pipeline]) -> None:
    run_jobs(start(**FIRST))
    pipeline = start(change=SiteChange(removed=2))
    run_jobs(pipeline, ("fetch",))

    code, log = pipeline.run("plan")

    assert code == 1, log
    assert "2 of 13 published pages would be removed" in log, log
    assert (pipeline.project("plan") / "changes.json").exists()
    assert pipeline.job("plan")["artifacts"]["when"] == "always"

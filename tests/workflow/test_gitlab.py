"""examples/outside/gitlab-ci.yml, job by job as GitLab Runner runs them, with S3 and a simulated platform."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange, site_files
from tests.engine import ROOT, action_image, remove_labelled_containers
from tests.gitlab import Pipeline
from tests.keys import ADMIN_KEY
from tests.workflow.act import DOMAIN
from tests.workflow.conftest import BUCKET, Client, access, contents

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
        given = {
            "DOCS_ADMIN_KEY": ADMIN_KEY,
            "INPUT_BASE_URL": platform.base_url,
            "INPUT_POLL_INTERVAL": "100ms",
            **access(storage),
            **variables,
        }
        started.append(
            Pipeline(TEXT, folder=tmp_path / str(len(started)), images=images, variables=given)
        )
        return started[-1]

    yield pipeline
    for made in started:
        remove_labelled_containers(made.label)


def site_of(storage: Client) -> dict[str, bytes]:
    return {
        name: body
        for name, body in contents(storage).items()
        if not name.startswith("publication/")
    }


def test_what_was_approved_is_uploaded(start: Callable[..., Pipeline], storage: Client) -> None:
    first = start(**FIRST)
    for job in JOBS:
        code, log = first.run(job)
        assert code == 0, log
    assert site_of(storage) == site_files(domain=DOMAIN, pages=PAGES)
    assert not (first.project("plan") / "outputs.env").exists()

    change = SiteChange(added=1, removed=1)
    second = start(change=change)
    logs = {}
    for job in JOBS:
        code, logs[job] = second.run(job)
        assert code == 0, logs[job]
    assert "Changes: pages: 1 added, 1 otherwise changed, 1 removed, 11 unchanged; " in logs["plan"]
    assert site_of(storage) == site_files(domain=DOMAIN, pages=PAGES, change=change)


def test_nothing_else_is_uploaded(start: Callable[..., Pipeline], storage: Client) -> None:
    code, _ = start().run("fetch")
    assert code != 0, "no manifest, and no first publication"

    pipeline = start(**FIRST)
    assert [pipeline.run(job)[0] for job in ("fetch", "plan")] == [0, 0]
    with (pipeline.project("approve") / "docs.bundle").open("ab") as bundle:
        bundle.write(b"\0")
    code, log = pipeline.run("approve")
    assert (code, "the archive does not match `bundle-sha256`" in log) == (1, True), log

    overtaken = start(**FIRST)
    assert [overtaken.run(job)[0] for job in ("fetch", "plan", "approve")] == [0, 0, 0]
    storage.put_object(
        Bucket=BUCKET, Key="publication/site.manifest", Body=b"of another publication"
    )
    code, log = overtaken.run("upload")
    assert code != 0, log
    assert site_of(storage) == {}


def test_a_stopped_plan_keeps_its_list_of_changes(start: Callable[..., Pipeline]) -> None:
    first = start(**FIRST)
    assert [first.run(job)[0] for job in JOBS] == [0] * len(JOBS)

    pipeline = start(change=SiteChange(removed=2))
    assert pipeline.run("fetch")[0] == 0
    code, log = pipeline.run("plan")

    assert (code, "2 of 13 published pages would be removed" in log) == (1, True), log
    assert (pipeline.project("plan") / "changes.json").exists()
    assert pipeline.job("plan")["artifacts"]["when"] == "always"

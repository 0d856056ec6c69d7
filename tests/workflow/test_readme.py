"""The complete workflows in the README, each run in a user's repository."""

from collections.abc import Iterator

import pytest

from admin_api_simulator import Simulator
from admin_api_simulator.site import site_files
from tests.keys import ADMIN_KEY
from tests.readme import readme_workflows
from tests.workflow.act import Act
from tests.workflow.conftest import EXAMPLES
from tests.workflow.storage import BUCKET, S3, contents, endpoint

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

DOMAIN = "docs.example.com"
PAGES = 120  # more than the workflow's `min-pages`


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0.3, agent_seconds=0.3, pages=PAGES, host="127.0.0.1") as platform:
        yield platform


@pytest.mark.parametrize(
    ("event", "inputs", "started"),
    [("push", {}, 1), ("workflow_dispatch", {"job-id": "se_earlier"}, 0)],
    ids=["a new export", "an earlier job"],
)
def test_the_bucket_holds_the_site_and_nothing_else(
    examples: Act, platform: Simulator, storage: S3, event: str, inputs: dict[str, str], started: int
) -> None:
    platform.add_export_job("se_earlier", domain=DOMAIN)
    storage.put_object(Bucket=BUCKET, Key="old/index.html", Body=b"A page that is no longer there")

    run = examples.run(
        event,
        "readme-publish.yml",
        inputs=inputs,
        variables={"DOCS_API_URL": platform.base_url},
        secrets={"DOCS_ADMIN_KEY": platform.key},
        environment=endpoint(storage),
    )

    assert run.succeeded, run.log
    assert contents(storage) == site_files(domain=DOMAIN, pages=PAGES)
    assert platform.count("start_export") == started


def test_the_pull_request_of_the_agent_gets_a_comment(examples: Act, platform: Simulator) -> None:
    job = {"projectId": "demo-project", "jobId": "agent-pull-request"}

    run = examples.run(
        "repository_dispatch",
        "readme-comment.yml",
        variables={"DOCS_API_URL": platform.base_url},
        secrets={"DOCS_ADMIN_KEY": platform.key, "GITHUB_TOKEN": "token-of-the-run"},
        payload={"action": "docs-agent", "client_payload": job},
    )

    assert run.succeeded, run.log
    (asked,) = run.printed("asked of gh:")
    assert asked.startswith("pr comment https://git.example.com/acme/docs/pull/"), run.log


def test_the_quick_start_uploads_with_the_commands_of_the_example() -> None:
    workflow = readme_workflows()["readme-publish.yml"]
    example = (EXAMPLES / "upload-to-s3.yml").read_text("utf-8")
    uploads = [line.strip() for line in workflow.splitlines() if line.strip().startswith("aws ")]

    assert len(uploads) == 3
    assert uploads == [line.strip() for line in example.splitlines() if line.strip().startswith("aws ")]


def test_every_complete_workflow_has_a_test() -> None:
    assert {*readme_workflows()} == {"readme-publish.yml", "readme-comment.yml"}

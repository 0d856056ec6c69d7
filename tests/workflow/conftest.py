"""act with a user's repository, a simulated platform, and an object storage.

The storage, which workflows upload to, is moto's S3.
"""

import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from moto.s3.exceptions import S3AccessDeniedError
from moto.s3.models import S3Backend
from moto.server import ThreadedMotoServer

from admin_api_simulator import Simulator
from docs.pages import readme_workflows
from tests.engine import (
    BUILT_IMAGE,
    ROOT,
    build_image,
    copy_action,
    docker,
    examples_job_image,
    has_image,
    need_act,
    need_engine,
)
from tests.keys import ADMIN_KEY
from tests.workflow.act import PUBLISHED_AS, REPOSITORY, Act
from tests.workflow.plan import BUCKET, plan_workflows

HERE = Path(__file__).parent
EXAMPLES = ROOT / "examples"
PAGES = 12
# commits before that of the events
OLDER = "a" * 40
MERGED = "b" * 40

AWS = {
    "aws_access_key_id": "AKIA-OF-THE-TESTS",
    "aws_secret_access_key": "aws-s3cret-of-the-tests",
    "region_name": "eu-central-1",
}
UPLOAD = {
    "AWS_REGION": AWS["region_name"],
    "AWS_ROLE": "arn:aws:iam::123456789012:role/docs",
    "DOCS_BUCKET": BUCKET,
}
DEVELOPERS_DOMAIN = "developers.example.com:8443"
DEVELOPERS_BUCKET = "developers-example-com"
COPIED_FOR_DEVELOPERS = {
    "the guides": "the developers",
    "Guides": "Developers",
    "docs.example.com": DEVELOPERS_DOMAIN,
    BUCKET: DEVELOPERS_BUCKET,
    "docs-guides": "docs-developers",
}
"""What differs between the workflows of two sites. The domain of the second one has a port."""
UNFINISHED = "publication/unfinished"
Client = Any  # boto3 defines its clients at run time


def pytest_runtest_setup() -> None:
    # not in a fixture, so that pytest's summary shows the reason once, not for each test
    need_engine("Workflow tests")
    need_act()


@pytest.fixture(scope="session")
def examples_image() -> str:
    return examples_job_image()


@pytest.fixture(scope="session")
def act(tmp_path_factory: pytest.TempPathFactory, examples_image: str) -> Act:
    """Return a repository with workflows and the action.

    The workflows are the unchanged examples, the README's, those of the tests, and CI.
    """
    folder = tmp_path_factory.mktemp("act")
    examples = [*EXAMPLES.glob("*.yml")]
    own = [*HERE.glob("workflows/*.yml"), ROOT / ".github" / "workflows" / "ci.yml"]
    workflows = {file.name: file.read_text("utf-8") for file in examples + own}
    workflows |= readme_workflows()
    workflows |= plan_workflows()
    developers = workflows["call-plan-and-publish.yml"]
    for old, new in COPIED_FOR_DEVELOPERS.items():
        developers = developers.replace(old, new)
    workflows["call-developers.yml"] = developers

    published = copy_action(folder / "published")
    poll_often(published / "action.yml")
    actions = {PUBLISHED_AS: published}
    # the actions that need GitHub or AWS have stand-ins
    text = "".join(file.read_text("utf-8") for file in examples)
    for name, commit in re.findall(r"uses: ([\w.-]+/[\w.-]+)@([0-9a-f]{40})", text):
        actions[f"{name}@{commit}"] = HERE / "actions" / name

    copy_action(folder / "docs")
    act = Act(folder=folder, workflows=workflows, image=examples_image, actions=actions)
    build_published_as_act(f"{BUILT_IMAGE}-published", published)
    build_repository_as_act(f"{BUILT_IMAGE}-repository", act.repository, examples_image)
    return act


def poll_often(manifest: Path) -> None:
    """Shorten the default of `poll-interval`.

    Most workflows do not set it, and what is waited for has already ended.
    """
    text = manifest.read_text("utf-8")
    shortened = re.sub(r"(\n  poll-interval:\n.*\n    default: )1s\n", r"\g<1>100ms\n", text)
    assert shortened != text
    manifest.write_text(shortened, "utf-8")


def build_published_as_act(tag: str, published: Path) -> None:
    """Build the published action, so that act's builds find everything in the cache.

    act builds for each step. It cannot choose a build's network, and some engines have only the
    host's. The cache requires the same files with the same attributes, and act sends no folders. It
    uses the classic builder: where BuildKit is the default, act's first build finds nothing in the
    cache.
    """
    with tempfile.TemporaryFile() as context:
        # in the default format, more precedes the first file than the docker command looks at
        with tarfile.open(fileobj=context, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for file in published.rglob("*"):
                if file.is_file():
                    archive.add(file, file.relative_to(published))
        context.seek(0)
        build_image(tag, context)


def build_repository_as_act(tag: str, repository: Path, image: str) -> None:
    """Build the action of a repository, for `uses: ./`.

    act copies the repository through a container, so this does too.
    """
    if has_image(tag):
        return
    container = docker("create", "--network=host", image, "true").strip()
    try:
        docker("cp", f"{repository}/.", f"{container}:/action")
        copy = ["docker", "cp", f"{container}:/action/.", "-"]
        with tempfile.TemporaryFile() as context:
            subprocess.run(copy, stdout=context, check=True, timeout=60)
            context.seek(0)
            build_image(tag, context)
    finally:
        docker("rm", container)


@pytest.fixture
def platform(act: Act) -> Iterator[Simulator]:
    """Serve a platform that has deployed the commit of the events."""
    with Simulator(
        key=ADMIN_KEY,
        token="token-of-the-run",
        commits=[OLDER, MERGED, act.commit],
        pages=PAGES,
        build_ids=False,
        export_seconds=0.0,
        agent_seconds=0.0,
    ) as platform:
        platform.github.add(act.commit, repository=REPOSITORY)
        yield platform


@pytest.fixture(scope="session")
def aws() -> Iterator[str]:
    """Serve AWS, and return its address."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def storage(aws: str) -> Client:
    """Return a client of an S3 that has one empty bucket."""
    requests.post(f"{aws}/moto-api/reset", timeout=10).raise_for_status()
    client = boto3.client("s3", endpoint_url=aws, **AWS)
    client.create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": AWS["region_name"]}
    )
    return client


def access(storage: Client) -> dict[str, str]:
    """Return the variables with which the AWS command line reaches the storage."""
    return {
        "AWS_ENDPOINT_URL": storage.meta.endpoint_url,
        "AWS_ACCESS_KEY_ID": AWS["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": AWS["aws_secret_access_key"],
        "AWS_DEFAULT_REGION": AWS["region_name"],
    }


def contents(storage: Client, bucket: str = BUCKET) -> dict[str, bytes]:
    """Return the files in a bucket."""
    files = {}
    for entry in storage.list_objects_v2(Bucket=bucket).get("Contents", []):
        name = entry["Key"]
        files[name] = storage.get_object(Bucket=bucket, Key=name)["Body"].read()
    return files


@contextmanager
def during_upload(key: str, action: Callable[[], object]) -> Iterator[None]:
    """Do something each time before the storage takes a file whose key begins with `key`."""
    put_object = S3Backend.put_object

    def act_then_put(
        self: S3Backend, bucket_name: str, key_name: str, *args: Any, **kwargs: Any
    ) -> object:
        if key_name.startswith(key):
            action()
        return put_object(self, bucket_name, key_name, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Backend, "put_object", act_then_put)
        yield


@contextmanager
def refuse_upload(key: str) -> Iterator[None]:
    """Make the storage refuse one file, which ends an upload halfway."""

    def refuse() -> None:
        raise S3AccessDeniedError

    with during_upload(key, refuse):
        yield

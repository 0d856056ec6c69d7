"""upload-and-check.yml, with a host that serves the bucket."""

import hashlib
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange, build_archive, site_files
from tests.workflow.act import DOMAIN, Act, WorkflowRun
from tests.workflow.conftest import (
    BUCKET,
    PAGES,
    UNFINISHED,
    UPLOAD,
    Client,
    contents,
    refuse_upload,
)
from tests.workflow.steps import run_step

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

LAST = f"guides/page-{PAGES}"


class Host(ThreadingHTTPServer):
    """Serves a bucket like CloudFront, with the function of docs/hosting.md or without it."""

    has_function = True

    def __init__(self, storage: Client) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.storage = storage
        self.cached: dict[str, bytes] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def body_of(self, key: str) -> bytes:
        """Return what is cached for a key, or else what the bucket has."""
        if key in self.cached:
            return self.cached[key]
        return bytes(self.storage.get_object(Bucket=BUCKET, Key=key)["Body"].read())


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Host)
        key = self.path[1:] or "index.html"
        if self.server.has_function and "." not in key:
            key += ".html"
        try:
            body = self.server.body_of(key)
        except self.server.storage.exceptions.NoSuchKey:
            self.send_error(404)
            return
        content_type = "text/html" if key.endswith(".html") else "application/xml"
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def host(storage: Client) -> Iterator[Host]:
    with Host(storage) as host:
        Thread(target=host.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield host
        host.shutdown()


def site_of(host: Host, *, removed: int = 0) -> dict[str, bytes]:
    """Return the files of a site whose sitemap has the host's addresses."""
    files = site_files(domain=DOMAIN, pages=PAGES, change=SiteChange(removed=removed))
    sitemap = files["sitemap.xml"].replace(f"https://{DOMAIN}".encode(), host.url.encode())
    return {**files, "sitemap.xml": sitemap}


FIRST = {"event": "workflow_dispatch", "inputs": {"first-publication": "true"}}
Publish = Callable[..., WorkflowRun]


@pytest.fixture
def publish(act: Act, platform: Simulator, host: Host) -> Publish:
    def run(files: dict[str, bytes], *, distribution: str = "", **given: Any) -> WorkflowRun:
        platform.plan_export(DOMAIN, ExportPlan(bundle=build_archive(files, "tar.gz")))
        variables = {
            **UPLOAD,
            "DOCS_SITE_URL": f"{host.url}/",
            "DOCS_DISTRIBUTION": distribution,
        }
        environment = {"AWS_ENDPOINT_URL": host.storage.meta.endpoint_url}
        return act.run(
            "upload-and-check.yml", platform, variables=variables, environment=environment, **given
        )

    return run


def test_the_log_shows_what_answered_with_what_and_a_site_with_a_broken_link_is_not_uploaded(
    publish: Publish, host: Host
) -> None:
    first = publish(site_of(host), **FIRST)
    removed = publish(site_of(host, removed=1))

    assert first.succeeded, first.log
    assert f"[200] {host.url}/{LAST}\n" in first.log
    assert removed.succeeded, removed.log
    assert f"[200] {host.url}/guides/page-2\n" in removed.log
    assert f"[404] {host.url}/{LAST}\n" in removed.log

    online = contents(host.storage)
    without_style = site_of(host)
    del without_style["assets/site.css"]
    broken = publish(without_style)

    assert not broken.succeeded, broken.log
    assert "[404] assets/site.css\n" in broken.log
    assert "Nothing was uploaded. The site has broken links" in broken.log
    assert contents(host.storage) == online


def test_the_manifest_is_stored_even_if_the_cache_could_not_be_cleared(
    publish: Publish, host: Host
) -> None:
    run = publish(site_of(host), distribution="E-OF-NOBODY", **FIRST)

    assert not run.succeeded, run.log
    assert "NoSuchDistribution" in run.log
    files = contents(host.storage)
    manifest = files.pop("publication/site.manifest").decode()
    assert files == site_of(host)
    for name, body in files.items():
        assert f"{hashlib.sha256(body).hexdigest()}  {name}\n" in manifest


def test_a_site_whose_upload_failed_is_collected_and_published(
    publish: Publish, platform: Simulator, host: Host
) -> None:
    with refuse_upload("index.html"):
        failed = publish(site_of(host), **FIRST)

    assert not failed.succeeded, failed.log
    assert contents(host.storage)[UNFINISHED]

    (job_id,) = set(re.findall(r"Job (se_\w+) started", failed.log))
    started = platform.count("start_export")
    inputs = {"first-publication": "true", "job-id": job_id}
    finished = publish(site_of(host), event="workflow_dispatch", inputs=inputs)

    assert finished.succeeded, finished.log
    assert platform.count("start_export") == started
    files = contents(host.storage)
    assert files.pop("publication/site.manifest")
    assert files == site_of(host)
    # only names with a hash are cached for long
    for name in files:
        caching = host.storage.head_object(Bucket=BUCKET, Key=name)["CacheControl"]
        assert caching.endswith("immutable") == name.startswith("_next/static/"), name
        assert (caching == "no-cache") != name.startswith("_next/static/"), name


def without_function(host: Host) -> None:
    host.has_function = False


def elsewhere(host: Host) -> None:
    sitemap = site_of(host)["sitemap.xml"].replace(host.url.encode(), b"http://other.invalid")
    host.storage.put_object(Bucket=BUCKET, Key="sitemap.xml", Body=sitemap)


ADDRESSES = "Request every address of the sitemap"


@pytest.mark.parametrize(
    ("step", "change", "line", "error"),
    [
        (
            ADDRESSES,
            without_function,
            "[404] {}/guides/page-2\n",
            "The site is published, but not all of its addresses work",
        ),
        (ADDRESSES, elsewhere, "", "The sitemap has no address on {}"),
        (
            "Request the removed pages",
            lambda host: host.cached.update({f"{LAST}.html": b"an old page"}),
            f"[200] {{}}/{LAST}\n",
            "1 removed pages are neither missing (404, 410) nor redirected",
        ),
    ],
)
def test_an_address_that_does_not_answer_as_it_should_is_an_error(
    examples_image: str,
    host: Host,
    step: str,
    change: Callable[[Host], object],
    line: str,
    error: str,
) -> None:
    for name, body in site_of(host, removed=1).items():
        host.storage.put_object(Bucket=BUCKET, Key=name, Body=body)
    change(host)
    prepare = f"""echo '{{"removed": ["{LAST}.html", "guides/old.css"]}}' > changes.json"""
    variables = {"SITE_URL": f"{host.url}/"}

    code, log = run_step(examples_image, "upload-and-check.yml", step, variables, prepare=prepare)

    assert code == 1, log
    assert line.format(host.url) in log, log
    assert error.format(host.url) in log, log

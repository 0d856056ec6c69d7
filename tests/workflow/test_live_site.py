"""upload-and-check.yml, with a host that serves the bucket."""

import functools
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import SiteChange, build_archive, site_files
from tests.workflow.act import DOMAIN, Act, WorkflowRun
from tests.workflow.conftest import BUCKET, PAGES, UPLOAD, Client

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

LAST = f"guides/page-{PAGES}"


class Host(ThreadingHTTPServer):
    """Serves a bucket like CloudFront with the function of docs/hosting.md, or like one without it."""

    has_function = True

    def __init__(self, storage: Client) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.storage = storage
        self.cached: dict[str, bytes] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Host)
        key = self.path[1:] or "index.html"
        if self.server.has_function and "." not in key:
            key += ".html"
        try:
            body = self.server.cached.get(key) or self.server.storage.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except self.server.storage.exceptions.NoSuchKey:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if key.endswith(".html") else "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Site:
    """A site that is published again and again."""

    def __init__(self, act: Act, platform: Simulator, host: Host) -> None:
        self._act, self._platform, self.host = act, platform, host

    def publish(self, *, removed: int = 0, broken: bool = False, first: bool = False, host: str | None = None) -> WorkflowRun:
        files = site_files(domain=DOMAIN, pages=PAGES, change=SiteChange(removed=removed))
        files["sitemap.xml"] = files["sitemap.xml"].replace(f"https://{DOMAIN}".encode(), (host or self.host.url).encode())
        if broken:
            del files["assets/site.css"]
        self._platform.plan_export(DOMAIN, ExportPlan(bundle=build_archive(files, "tar.gz")))
        variables = {**UPLOAD, "DOCS_SITE_URL": f"{self.host.url}/"}
        started = {"event": "workflow_dispatch", "inputs": {"first-publication": "true"}} if first else {}
        environment = {"AWS_ENDPOINT_URL": self.host.storage.meta.endpoint_url}
        run = functools.partial(self._act.run, "upload-and-check.yml", self._platform)
        return run(variables=variables, environment=environment, **started)


@pytest.fixture
def site(act: Act, platform: Simulator, storage: Client) -> Iterator[Site]:
    with Host(storage) as host:
        Thread(target=host.serve_forever, daemon=True).start()
        yield Site(act, platform, host)
        host.shutdown()


def test_the_log_shows_what_answered_with_what(site: Site) -> None:
    first = site.publish(first=True)
    removed = site.publish(removed=1)

    for run, address, status in ((first, LAST, 200), (removed, "guides/page-2", 200), (removed, LAST, 404)):
        assert run.succeeded, run.log
        assert f"[{status}] {site.host.url}/{address}\n" in run.log


def test_broken_links_and_addresses_that_do_not_answer_are_errors(site: Site) -> None:
    site.host.has_function = False
    without_function = site.publish(first=True)
    site.host.has_function = True
    broken = site.publish(broken=True, removed=1)
    site.host.cached = {f"{LAST}.html": b"an old page"}
    cached = site.publish(removed=1)
    elsewhere = site.publish(host="http://other.invalid")

    for run, line, error in (
        (without_function, f"[404] {site.host.url}/guides/page-2\n", "The site is published, but not all of its addresses work"),
        (broken, "[404] assets/site.css\n", "Nothing was uploaded. The site has broken links"),
        (elsewhere, "", f"The sitemap has no address on {site.host.url}"),
        (cached, f"[200] {site.host.url}/{LAST}\n", "1 removed pages are neither missing (404, 410) nor redirected"),
    ):
        assert not run.succeeded, run.log
        assert line in run.log, run.log
        assert error in run.log, run.log

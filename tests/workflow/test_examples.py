"""The examples, each run unchanged in a user's repository, with the real programs that it calls."""

import hashlib
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import pytest
import requests
import yaml

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.site import build_archive, site_files
from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from tests.engine import docker
from tests.workflow.act import Act, WorkflowRun
from tests.workflow.cluster import Cluster, running_cluster
from tests.workflow.conftest import EXAMPLES
from tests.workflow.storage import AWS_KEY, BUCKET, REGION, S3, contents, endpoint

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

DOMAIN = "docs.example.com"
PAGES = 12
SITE = site_files(domain=DOMAIN, pages=PAGES)
AWS_ROLE = "arn:aws:iam::123456789012:role/docs"
CONTEXT = "production"
CHART = "/chart"
UNUSED_LINK = "::error::The chart does not use staticExport.bundleUrl"
CloudFront = Any  # boto3 defines its clients at run time


def test_upload_to_s3(examples: Act, platform: Simulator, storage: S3, cdn: CloudFront) -> None:
    storage.put_object(Bucket=BUCKET, Key="guides/page-99/index.html", Body=b"A page that is no longer there")
    # as long as the new one, so that their sizes are equal
    storage.put_object(Bucket=BUCKET, Key="index.html", Body=b"x" * len(SITE["index.html"]))
    (distribution,) = (made["Id"] for made in cdn.list_distributions()["DistributionList"]["Items"])
    variables = upload_to() | {"DOCS_DISTRIBUTION": distribution}

    run = run_example(examples, "upload-to-s3.yml", platform, variables=variables, environment=endpoint(storage))

    assert run.succeeded, run.log
    assert contents(storage) == SITE
    assert {header(storage, page, "ContentType") for page in SITE if page.endswith(".html")} == {"text/html"}
    assert {header(storage, page, "CacheControl") for page in SITE if page.endswith(".html")} == {"no-cache"}
    assert header(storage, "assets/site.css", "ContentType") == "text/css"
    assert header(storage, "assets/site.css", "CacheControl") == "public, max-age=3600"
    (made,) = cdn.list_invalidations(DistributionId=distribution)["InvalidationList"]["Items"]
    invalidated = cdn.get_invalidation(DistributionId=distribution, Id=made["Id"])["Invalidation"]
    assert invalidated["InvalidationBatch"]["Paths"]["Items"] == ["/*"]


@pytest.mark.parametrize("variable", ["DOCS_DOMAIN=failing.example.com", "DOCS_MIN_PAGES=1000"])
def test_after_a_failed_export_nothing_is_uploaded_and_nothing_removed(
    examples: Act, platform: Simulator, storage: S3, variable: str
) -> None:
    storage.put_object(Bucket=BUCKET, Key="index.html", Body=b"The page that is online")
    variables = upload_to() | dict([variable.split("=")])

    run = run_example(examples, "upload-to-s3.yml", platform, variables=variables, environment=endpoint(storage))

    assert not run.succeeded, run.log
    assert "Main Upload the site" not in run.log
    assert contents(storage) == {"index.html": b"The page that is online"}


class TestExportManyDeployEach:
    EXAMPLE = "export-many-deploy-each.yml"

    def test_exported_sites_are_deployed_and_the_failed_one_stays_unchanged(
        self, examples: Act, platform: Simulator, storage: S3
    ) -> None:
        good, bad = (DOMAIN, "developers.example.com"), "failing.example.com"
        storage.put_object(Bucket=BUCKET, Key=f"{bad}/index.html", Body=b"The page that is online")
        variables = {**upload_to(), "DOCS_DOMAINS": "\n".join([DOMAIN, bad, "developers.example.com"])}

        run = run_example(examples, self.EXAMPLE, platform, variables=variables, environment=endpoint(storage))

        assert not run.succeeded, run.log
        found = contents(storage)
        for domain in good:
            site = {name.removeprefix(f"{domain}/"): body for name, body in found.items() if name.startswith(f"{domain}/")}
            assert site == site_files(domain=domain, pages=PAGES), run.log
        assert found[f"{bad}/index.html"] == b"The page that is online"
        assert sorted(run.printed("Deployed")) == [f"s3://{BUCKET}/{domain}" for domain in sorted(good)]
        # act marks every job of a matrix as failed if one fails, so the steps are checked
        failed = re.findall(r"^\[.*?/Deploy (\S+)-\d+ *\] .*Failure - Main ", run.log, re.MULTILINE)
        assert failed == [bad], run.log
        messages = re.findall(r"::error::Not deployed\. Export of (\S+): .+\. The API at .* said: ", run.log)
        assert messages == [bad], run.log
        assert [platform.count("start_export", domain=domain) for domain in (*good, bad)] == [1, 1, 1], run.log
        assert platform.count("make_bundle", domain=DOMAIN) == 2, run.log  # of the export and of the deployment

    def test_the_platforms_message_is_not_a_workflow_command(self, examples_image: str) -> None:
        variables = {"MESSAGE": 'The API said: "one\n::add-mask::two\r\n::warning::\tthree \\n %s $(id)"'}
        printed, status = run_step(examples_image, self.EXAMPLE, "Stop if the export failed", prepare="true", variables=variables)
        assert status == 1, printed
        assert printed == '::error::Not deployed. The API said: "one ::add-mask::two  ::warning:: three \\n %s $(id)"\n'


class TestServeWithNginx:
    EXAMPLE = "serve-with-nginx.yml"
    REQUESTS = "Request every page at each of its addresses"
    ADDRESSES: Mapping[str, Sequence[str]] = {
        "index.html": ["/index.html", "/"],
        "guide.html": ["/guide.html", "/guide"],  # beside the folder guide, which has no index.html
        "guide/setup.html": ["/guide/setup.html", "/guide/setup"],
        "api/index.html": ["/api/index.html", "/api/", "/api"],
        "faq.html": ["/faq.html", "/faq"],
        "faq/index.html": ["/faq/index.html", "/faq/"],
        "license.html": ["/license.html"],  # beside a file of the name license
        "v1.html/index.html": ["/v1.html/index.html", "/v1.html/", "/v1.html"],
        "größe/a b+c.html": ["/gr%C3%B6%C3%9Fe/a%20b%2Bc.html", "/gr%C3%B6%C3%9Fe/a%20b%2Bc"],
    }

    def test_nginx_serves_every_page_at_each_of_its_addresses(self, examples: Act, platform: Simulator) -> None:
        site = {name: f"<h1>{name}</h1>".encode() for name in [*self.ADDRESSES, "license"]}
        platform.plan_export(DOMAIN, ExportPlan(bundle=build_archive(site, "tar.gz")))

        run = run_example(examples, self.EXAMPLE, platform)

        assert run.succeeded, run.log
        number = sum(map(len, self.ADDRESSES.values()))
        assert run.printed("nginx serves") == [f"{len(self.ADDRESSES)} pages at {number} addresses"], run.log

    @pytest.mark.parametrize(
        ("site", "error"),
        [
            ("robots.txt", "::error::The site has no page: "),
            ("index.html", "::error::/index.html is not the page site/index.html\n"),  # no nginx runs; the page is empty
        ],
    )
    def test_a_site_without_pages_fails_as_does_a_page_that_is_not_served(
        self, examples_image: str, site: str, error: str
    ) -> None:
        printed, status = run_step(examples_image, self.EXAMPLE, self.REQUESTS, prepare=f"mkdir site; touch site/{site}")
        assert status == 1, printed
        assert error in printed, printed


class TestDeployWithHelm:
    EXAMPLE = "deploy-with-helm.yml"
    LINK = f"https://exports.example.com/se_1/bundle.tar.gz?x-id=GetObject,bundle&X-Amz-Signature={'0f' * 200}"

    def test_the_deployment_gets_link_and_version_and_keeps_its_other_values(
        self, examples: Act, platform: Simulator, release: Cluster
    ) -> None:
        run = run_example(
            examples,
            self.EXAMPLE,
            platform,
            event="workflow_dispatch",
            inputs={"version": "2024-06-01"},
            variables=deploy_to(CONTEXT) | {"DOCS_EXPORT_JOB": "se_earlier"},
            secrets={"KUBECONFIG": release.kubeconfig(CONTEXT), "VARIABLES_TOKEN": "token-of-the-tests"},
        )

        assert run.succeeded, run.log
        assert "," in check_deployment(release, version="2024-06-01")
        (job,) = {match[1] for request in platform.requests if (match := re.search(r"/jobs/([^/]+)/bundle$", request.path))}
        assert run.printed("asked of gh:") == [f"variable set DOCS_EXPORT_JOB --repo example/docs --body {job}"], run.log
        assert "X-Amz-Signature" not in run.log

    def test_without_a_cluster_the_chart_is_rendered_and_a_notice_says_so(self, examples: Act, platform: Simulator) -> None:
        run = run_example(examples, self.EXAMPLE, platform, variables=deploy_to(""))

        assert run.succeeded, run.log
        assert "Success - Main Check that the chart uses the link" in run.log
        assert "Upgrade the deployment" not in run.log
        assert run.printed("asked of gh:") == []
        assert "Rendered, but not deployed, because the variable DOCS_KUBE_CONTEXT is not set" in run.log

    @pytest.mark.parametrize(
        ("value", "found"),
        [
            pytest.param("{{ .Values.staticExport.bundleUrl | quote }}", ("", 0), id="as it is"),
            pytest.param("{{ .Values.staticExport.bundleUrl | b64enc }}", ("", 0), id="as a Secret keeps it"),
            pytest.param("{{ .Values.bundleUrl | quote }}", (UNUSED_LINK, 1), id="by another name"),
            pytest.param("{{ .Values.staticExport.enabled | quote }}", (UNUSED_LINK, 1), id="not at all"),
        ],
    )
    def test_a_chart_must_use_the_link(self, examples_image: str, value: str, found: tuple[str, int]) -> None:
        printed, status = run_step(
            examples_image,
            self.EXAMPLE,
            "Check that the chart uses the link",
            prepare=(
                f'cp -r {CHART} /other; printf %s "$TEMPLATE" > /other/templates/values.yaml; '
                'printf %s "$VALUES" > export-values.yaml'
            ),
            variables={
                "TEMPLATE": f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: docs\ndata:\n  link: {value}\n",
                "VALUES": values_text(Job(mode=Mode.EXPORT, link=Bundle(url=self.LINK)), None, datetime.now(UTC)),
                "RELEASE": "docs",
                "NAMESPACE": "docs",
                "CHART": "/other",
                "CHART_VERSION": "",
                "BUNDLE_URL": self.LINK,
            },
        )

        assert (printed[: len(UNUSED_LINK)], status) == found, printed


class TestUpgradeWithHelm:
    EXAMPLE = "upgrade-with-helm.yml"

    def test_the_deployment_gets_the_link_and_the_commit(self, examples: Act, platform: Simulator, release: Cluster) -> None:
        secrets = {"KUBECONFIG": release.kubeconfig(CONTEXT)}

        run = run_example(examples, self.EXAMPLE, platform, variables=deploy_to(CONTEXT), secrets=secrets)

        assert run.succeeded, run.log
        check_deployment(release, version=examples.commit())
        assert "X-Amz-Signature" not in run.log

    def test_a_missing_context_fails_before_the_upgrade(self, examples_image: str) -> None:
        printed, status = run_step(
            examples_image, self.EXAMPLE, "Upgrade the deployment", prepare="true", variables={"KUBE_CONTEXT": ""}
        )
        assert status == 1, printed
        assert printed.endswith("KUBE_CONTEXT: Set the variable DOCS_KUBE_CONTEXT\n"), printed


def test_a_scheduled_refresh_deploys_a_new_link_without_a_new_export(
    examples: Act, platform: Simulator, release: Cluster
) -> None:
    platform.add_export_job("se_remembered", domain=DOMAIN)

    run = run_example(
        examples,
        "refresh-link-on-schedule.yml",
        platform,
        event="schedule",
        variables=deploy_to(CONTEXT) | {"DOCS_EXPORT_JOB": "se_remembered"},
        secrets={"KUBECONFIG": release.kubeconfig(CONTEXT)},
    )

    assert run.succeeded, run.log
    assert (platform.count("start_export"), platform.count("make_bundle")) == (0, 1)
    check_deployment(release, version="2024-05-01")


def test_deploy_to_github_pages(examples: Act, platform: Simulator) -> None:
    run = run_example(examples, "deploy-to-github-pages.yml", platform)

    assert run.succeeded, run.log
    deployed = {name: sha256 for sha256, name in (line.split(maxsplit=1) for line in run.printed("deployed:"))}
    assert deployed == {name: hashlib.sha256(body).hexdigest() for name, body in SITE.items()}, run.log


class TestCommentOnPullRequest:
    EXAMPLE = "comment-on-pull-request.yml"

    def test_the_pull_request_of_the_agent_gets_a_comment_with_the_token_of_the_run(
        self, examples: Act, platform: Simulator
    ) -> None:
        inputs = {"project-id": "demo-project", "job-id": "agent-pull-request"}
        secrets = {"GITHUB_TOKEN": "token-of-the-run"}

        run = run_example(examples, self.EXAMPLE, platform, event="workflow_dispatch", inputs=inputs, secrets=secrets)

        assert run.succeeded, run.log
        (asked,) = run.printed("asked of gh:")
        link = r"https://git\.example\.com/acme/docs/pull/\d+"
        assert re.fullmatch(rf"pr comment {link} --body The documentation agent is done\. .*", asked)
        assert run.printed("token of gh:") == [hashed("token-of-the-run")], run.log

    @pytest.mark.parametrize(("job", "comments"), [("agent-pull-request", 1), ("agent-no-change", 0)])
    def test_after_a_dispatched_event_it_has_the_other_repositorys_token(
        self, examples: Act, platform: Simulator, job: str, comments: int
    ) -> None:
        run = run_example(
            examples,
            self.EXAMPLE,
            platform,
            event="repository_dispatch",
            payload={"action": "docs-agent", "client_payload": {"projectId": "demo-project", "jobId": job}},
            secrets={"GITHUB_TOKEN": "token-of-the-run", "DOCS_PR_TOKEN": "token-of-the-other-repository"},
        )

        assert run.succeeded, run.log
        assert run.printed("token of gh:") == [hashed("token-of-the-other-repository")] * comments, run.log


@pytest.mark.parametrize("repository", ["handbook", ""], ids=["another repository", "this repository"])
def test_the_pull_request_of_the_agent_is_merged_after_its_checks(examples: Act, platform: Simulator, repository: str) -> None:
    run = run_example(
        examples,
        "merge-agent-pull-request.yml",
        platform,
        event="workflow_dispatch",
        inputs={"project-id": "demo-project", "job-id": "agent-pull-request"},
        variables={"DOCS_APP_CLIENT_ID": "Iv23-of-the-tests", "DOCS_REPOSITORY": repository},
        secrets={"DOCS_APP_PRIVATE_KEY": "key-of-the-app"},
    )

    assert run.succeeded, run.log
    (asked,) = run.printed("asked of gh:")
    assert re.fullmatch(r"pr merge --auto --squash https://git\.example\.com/acme/docs/pull/\d+", asked)
    token = f"app token for example/{repository or 'docs'} with contents=write pull-requests=write"
    assert run.printed("token of gh:") == [hashed(token)], run.log


@pytest.mark.parametrize(
    ("merged", "repository", "exported"),
    [(True, "example/docs", [f"{PAGES} pages after pull request 7"]), (False, "closed/docs", []), (True, "fork/docs", [])],
)
def test_a_merged_pull_request_of_the_repository_is_exported(
    examples: Act, platform: Simulator, merged: bool, repository: str, exported: list[str]
) -> None:
    payload = closed_pull_request(merged=merged, repository=repository)

    run = run_example(examples, "export-after-merge.yml", platform, event="pull_request", payload=payload)

    assert run.succeeded, run.log
    assert run.printed("Exported") == exported, run.log
    assert bool(platform.requests) is bool(exported)


def test_the_callers_job_gets_what_the_called_workflow_exported(examples: Act, platform: Simulator) -> None:
    run = run_example(examples, "call-reusable-export.yml", platform, variables={"DOCS_MIN_PAGES": "10"})

    assert run.succeeded, run.log
    assert run.printed(f"{PAGES} of {PAGES} pages") == ["downloaded"], run.log
    assert platform.count("start_export", domain=DOMAIN) == 1


class TestExportTheMergedCommit:
    EXAMPLE = "export-the-merged-commit.yml"
    WAIT = "Wait until the site contains the commit"
    COMMIT = "c0ffee" * 6 + "c0de"
    WITHOUT_PAUSES = "printf '#!/bin/sh\n' > /usr/local/bin/sleep; chmod 755 /usr/local/bin/sleep"

    def test_the_site_is_exported_when_it_contains_the_commit(self, examples: Act, platform: Simulator) -> None:
        with served([f'<meta name="docs-commit" content="{examples.commit()}">']) as (url, _):
            run = run_example(examples, self.EXAMPLE, platform, variables={"DOCS_MARKER_URL": url})

        assert run.succeeded, run.log
        assert run.printed("Exported") == [f"{PAGES} pages"], run.log

    def test_the_platforms_event_starts_an_export_without_a_check(self, examples: Act, platform: Simulator) -> None:
        payload = {"action": "docs-deployed", "client_payload": {}}

        run = run_example(examples, self.EXAMPLE, platform, event="repository_dispatch", payload=payload)

        assert run.succeeded, run.log
        assert run.printed("Exported") == [f"{PAGES} pages"], run.log

    def test_a_commit_that_is_deployed_late_is_waited_for(self, examples_image: str) -> None:
        with served([None, "", "an older commit", self.COMMIT]) as (url, requested):
            printed, status = self.wait(url, examples_image)
        assert status == 0, printed
        assert printed == f"{url} contains {self.COMMIT}\n"
        assert len(requested) == 4

    def test_a_commit_that_is_never_deployed_fails(self, examples_image: str) -> None:
        with served(["another commit"]) as (url, requested):
            printed, status = self.wait(url, examples_image)
        assert status == 1, printed
        assert printed.startswith(f"::error::{url} did not contain {self.COMMIT} in time. "), printed
        assert len(requested) == 90

    def test_a_missing_address_fails_at_once(self, examples_image: str) -> None:
        printed, status = self.wait("", examples_image)
        assert status == 1, printed
        assert "MARKER_URL: Set the variable DOCS_MARKER_URL" in printed

    def wait(self, url: str, image: str) -> tuple[str, int]:
        variables = {"MARKER_URL": url, "COMMIT": self.COMMIT}
        return run_step(image, self.EXAMPLE, self.WAIT, prepare=self.WITHOUT_PAUSES, variables=variables)


def test_a_second_job_fetches_the_exported_site_with_a_link_of_its_own(examples: Act, platform: Simulator) -> None:
    run = run_example(examples, "fetch-in-another-job.yml", platform)

    assert run.succeeded, run.log
    sha256 = hashlib.sha256(build_archive(SITE, "tar.gz")).hexdigest()
    assert run.printed("docs.tar.gz:") == ["OK"], run.log
    assert run.printed(f"{PAGES} pages in site, SHA-256") == [sha256], run.log
    assert (platform.count("start_export"), platform.count("make_bundle")) == (1, 2)
    assert "X-Amz-Signature" not in run.log


class TestValuesFile:
    VALUES = (
        "https://exports.example.com/se_1/bundle.tar.gz?x-id=GetObject,bundle&a=%20#b",
        "2024-06-01",
        "20240601",
        "007",
        "1e3",
        "0x1F",
        "yes",
        "null",
        "~",
        "",
        " a: b # c ",
        "'\"\\",
        "{{ .Release.Name }}",
        "a\n---\nb\r\t\x00\x1b\x7f",
        "\x85\u00a0\u2028\u2029\ufeff\uffff",
        "ß 漢 \U0001f600 \U0010ffff",
        "a " * 4000,
    )

    def test_helm_reads_every_string_back_unchanged(self, examples_image: str) -> None:
        with tempfile.TemporaryFile() as files:
            with tarfile.open(fileobj=files, mode="w") as archive:
                for number, value in enumerate(self.VALUES):
                    job = Job(mode=Mode.EXPORT, domain=value, job_id=value, link=Bundle(url=value, expires_at=value))
                    content = values_text(job, value, datetime.now(UTC)).encode()
                    entry = tarfile.TarInfo(f"{number:02}.yaml")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
            files.seek(0)
            render = f"mkdir /values && cd /values && tar -x && for file in *; do helm template docs {CHART} --values $file; done"
            rendered = docker("run", "--rm", "--interactive", examples_image, "bash", "-ec", render, stdin=files)

        read = [json.loads(document["data"]["staticExport"]) for document in yaml.safe_load_all(rendered)]
        assert read == [{"enabled": True, "bundleUrl": value, "version": value} for value in self.VALUES]


def test_every_example_has_a_test() -> None:
    run = {*re.findall(r'"([\w-]+\.yml)"', Path(__file__).read_text("utf-8"))}
    called = {Path(used).name for name in run for used in re.findall(r"uses: (\./\S+)", (EXAMPLES / name).read_text("utf-8"))}
    assert {path.name for path in EXAMPLES.glob("*.yml")} == run | called


@pytest.fixture
def cdn(storage: S3) -> Iterator[CloudFront]:
    """Return a client of CloudFront with one distribution of the bucket."""
    client = boto3.client("cloudfront", endpoint_url=storage.meta.endpoint_url, region_name=REGION, **AWS_KEY)
    origin = {"Id": "docs", "DomainName": f"{BUCKET}.s3.amazonaws.com", "S3OriginConfig": {"OriginAccessIdentity": ""}}
    client.create_distribution(
        DistributionConfig={
            "CallerReference": "docs",
            "Comment": "",
            "Enabled": True,
            "Origins": {"Quantity": 1, "Items": [origin]},
            "DefaultCacheBehavior": {"TargetOriginId": "docs", "ViewerProtocolPolicy": "redirect-to-https"},
        }
    )
    yield client
    client.close()


@pytest.fixture
def release(examples_image: str) -> Iterator[Cluster]:
    """Serve a cluster with a release of the chart that has its own values."""
    with running_cluster() as cluster:
        install = (
            'printf %s "$TEXT" > /kubeconfig; KUBECONFIG=/kubeconfig '
            f"helm install docs {CHART} --kube-context {CONTEXT} --namespace docs "
            "--set replicas=3 --set-string staticExport.version=2024-05-01"
        )
        settings = f"TEXT={cluster.kubeconfig(CONTEXT)}"
        docker("run", "--rm", "--network=host", "--env", settings, examples_image, "bash", "-ec", install)
        yield cluster


def run_example(
    act: Act,
    example: str,
    platform: Simulator,
    *,
    event: str = "push",
    inputs: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    payload: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> WorkflowRun:
    return act.run(
        event,
        example,
        inputs=inputs,
        payload=payload,
        environment=environment,
        variables={"DOCS_API_URL": platform.base_url, "DOCS_DOMAIN": DOMAIN, **(variables or {})},
        secrets={"DOCS_ADMIN_KEY": platform.key, **(secrets or {})},
    )


def run_step(image: str, example: str, name: str, *, prepare: str, variables: Mapping[str, str] | None = None) -> tuple[str, int]:
    """Run the script of a single step of an example in a runner's shell, and return its output and exit status."""
    jobs = yaml.safe_load((EXAMPLES / example).read_text("utf-8"))["jobs"].values()
    (script,) = [step["run"] for job in jobs for step in job["steps"] if step["name"] == name]
    environment = {**(variables or {}), "STEP": script}
    settings = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
    run = f'mkdir /work; cd /work; {prepare}; status=0; bash -ec "$STEP" 2>&1 || status=$?; echo "exit status $status"'
    printed, _, status = docker("run", "--rm", "--network=host", *settings, image, "bash", "-ec", run).rpartition("exit status ")
    return printed, int(status)


def upload_to() -> dict[str, str]:
    return {"AWS_REGION": REGION, "AWS_ROLE": AWS_ROLE, "DOCS_BUCKET": BUCKET}


def header(storage: S3, name: str, what: str) -> object:
    return storage.head_object(Bucket=BUCKET, Key=name).get(what)


def hashed(token: str) -> str:
    """Return what the `gh` of the job image prints of its token."""
    return f"{hashlib.sha256(token.encode()).hexdigest()}  -"


def closed_pull_request(*, merged: bool, repository: str = "example/docs") -> dict[str, Any]:
    """Return the part of GitHub's event that act and the examples read."""
    head = {"ref": "guide", "repo": {"full_name": repository}}
    return {"action": "closed", "pull_request": {"number": 7, "merged": merged, "head": head, "base": {"ref": "main"}}}


@contextmanager
def served(bodies: Sequence[str | None]) -> Iterator[tuple[str, list[str]]]:
    """Serve these bodies one after the other, then the last one; None is a 404. Yields the address and the requested paths."""
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            body = bodies[min(len(requested), len(bodies)) - 1]
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/version.txt", requested
        finally:
            server.shutdown()
            thread.join()


def deploy_to(context: str) -> dict[str, str]:
    return {"DOCS_CHART": CHART, "DOCS_CHART_VERSION": "0.1.0", "DOCS_KUBE_CONTEXT": context}


def check_deployment(cluster: Cluster, *, version: str) -> str:
    """Check that the release in the cluster has the site's link, this version and its other values; return the link."""
    data = cluster.objects["configmaps", "docs", "docs"]["data"]
    values = json.loads(data["staticExport"])
    assert values == {"enabled": True, "bundleUrl": values["bundleUrl"], "version": version}
    assert requests.get(values["bundleUrl"], timeout=10).content == build_archive(SITE, "tar.gz")
    assert data["replicas"] == "3"
    return str(values["bundleUrl"])

"""The examples and the README's workflows, each run unchanged in a user's repository.

They call the real programs.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
import yaml
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from admin_api_simulator import ExportPlan, Fault, Simulator
from admin_api_simulator.site import SCRIPT_PATH, build_archive, site_files
from docs.pages import readme_workflows
from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import BundleLink
from tests.engine import docker
from tests.workflow.act import DOMAIN, PROJECT, REPOSITORY, Act, WorkflowRun
from tests.workflow.cluster import Cluster, running_cluster
from tests.workflow.conftest import (
    AWS,
    BUCKET,
    EXAMPLES,
    HERE,
    MERGED,
    OLDER,
    PAGES,
    UPLOAD,
    Client,
    access,
    contents,
)

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

HTML_FILES = PAGES + 1  # the page for missing addresses, too
MANY_PAGES = 120  # more than `min-pages` in the README
SITE = site_files(domain=DOMAIN, pages=PAGES)
SHA256_OF_SITE = [f"{hashlib.sha256(body).hexdigest()}  {name}" for name, body in SITE.items()]
ARCHIVE = build_archive(SITE, "tar.gz")
OLD_PAGE = {"Bucket": BUCKET, "Body": b"The page that is online"}
OLD_SCRIPTS = {days: f"_next/static/chunks/{days} days old.js" for days in (0, 29, 31)}
HEADERS = {
    SCRIPT_PATH: ("text/javascript", "public, max-age=31536000, immutable"),
    "assets/site.css": ("text/css", "no-cache"),
    "sitemap.xml": ("application/xml", "no-cache"),
    "index.html": ("text/html", "no-cache"),
    "404.html": ("text/html", "no-cache"),
}
DISTRIBUTION = {
    "CallerReference": "docs",
    "Comment": "",
    "Enabled": True,
    "Origins": {
        "Quantity": 1,
        "Items": [{"Id": "docs", "DomainName": f"{BUCKET}.s3.amazonaws.com"}],
    },
    "DefaultCacheBehavior": {"TargetOriginId": "docs", "ViewerProtocolPolicy": "redirect-to-https"},
}
CONTEXT = "production"
CHART = "/chart"
DEPLOY = {"DOCS_CHART": CHART, "DOCS_CHART_VERSION": "0.1.0", "DOCS_KUBE_CONTEXT": CONTEXT}


def hashed(token: str) -> str:
    """Return what the `gh` of the job image prints of its token."""
    return f"{hashlib.sha256(token.encode()).hexdigest()}  -"


def headers(storage: Client, name: str) -> tuple[str, str]:
    """Return the headers `Content-Type` and `Cache-Control` of a file in the bucket."""
    head = storage.head_object(Bucket=BUCKET, Key=name)
    return head["ContentType"], head["CacheControl"]


def closed_pull_request(*, merged: bool, repository: str = "example/docs") -> dict[str, Any]:
    """Return an event with the part of GitHub's payload that act and the examples read."""
    pull_request = {
        "number": 7,
        "merged": merged,
        "merge_commit_sha": MERGED,
        "head": {"ref": "guide", "repo": {"full_name": repository}},
        "base": {"ref": "main"},
    }
    return {"event": "pull_request", "payload": {"action": "closed", "pull_request": pull_request}}


def by_hand(job: str) -> dict[str, Any]:
    return {"event": "workflow_dispatch", "inputs": {"project-id": "demo-project", "job-id": job}}


def dispatched(job: str) -> dict[str, Any]:
    payload = {
        "action": "docs-agent",
        "client_payload": {"projectId": "demo-project", "jobId": job},
    }
    return {"event": "repository_dispatch", "payload": payload}


COLLECTED = {"event": "workflow_dispatch", "inputs": {"job-id": "se_earlier"}}
DEPLOYED = {
    "event": "repository_dispatch",
    "payload": {"action": "docs-deployed", "client_payload": {}},
}
PULL_REQUEST = "https://git.example.com/acme/docs/pull/18"
COMMENT = (
    f"pr comment {PULL_REQUEST} --body The documentation agent is done. Please review its changes."
)
OTHER_TOKEN = {"DOCS_PR_TOKEN": "token-of-the-other-repository"}
APP = {
    "variables": {"DOCS_APP_CLIENT_ID": "Iv23-of-the-tests", "DOCS_REPOSITORY": "handbook"},
    "secrets": {"DOCS_APP_PRIVATE_KEY": "key-of-the-app"},
}
APP_TOKEN = "app token for example/handbook with contents=write pull-requests=write"


@pytest.mark.parametrize(
    ("example", "given", "printed"),
    [
        ("deploy-to-github-pages.yml", {}, {"deployed:": SHA256_OF_SITE}),
        (
            "export-after-merge.yml",
            closed_pull_request(merged=True),
            {"Exported": [f"{HTML_FILES} pages after pull request 7"]},
        ),
        ("export-after-merge.yml", closed_pull_request(merged=False), {"Exported": []}),
        (
            "export-after-merge.yml",
            closed_pull_request(merged=True, repository="fork/docs"),
            {"Exported": []},
        ),
        ("export-the-merged-commit.yml", DEPLOYED, {"Exported": [f"{HTML_FILES} pages"]}),
        (
            "readme-comment.yml",
            dispatched("agent-pull-request"),
            {"asked of gh:": [COMMENT], "token of gh:": [hashed("token-of-the-run")]},
        ),
        (
            "comment-on-pull-request.yml",
            {**dispatched("agent-pull-request"), "secrets": OTHER_TOKEN},
            {"asked of gh:": [COMMENT], "token of gh:": [hashed("token-of-the-other-repository")]},
        ),
        ("comment-on-pull-request.yml", by_hand("agent-no-change"), {"asked of gh:": []}),
        (
            "merge-agent-pull-request.yml",
            {**by_hand("agent-pull-request"), **APP},
            {
                "asked of gh:": [f"pr merge --auto --squash {PULL_REQUEST}"],
                "token of gh:": [hashed(APP_TOKEN)],
            },
        ),
    ],
)
def test_an_example_prints_what_it_has_done(
    act: Act,
    platform: Simulator,
    example: str,
    given: dict[str, Any],
    printed: dict[str, list[str]],
) -> None:
    run = act.run(example, platform, **given)

    assert run.succeeded, run.log
    for label, lines in printed.items():
        assert sorted(run.printed(label)) == sorted(lines), run.log


@pytest.mark.parametrize(
    ("example", "given", "pages", "started", "cleared"),
    [
        ("upload-to-s3.yml", {}, PAGES, 1, 1),
        ("upload-to-s3.yml", COLLECTED, MANY_PAGES, 0, 1),
        ("readme-publish.yml", {}, MANY_PAGES, 1, 0),
        ("readme-publish.yml", COLLECTED, MANY_PAGES, 0, 0),
    ],
)
def test_the_bucket_holds_the_site_and_scripts_of_the_last_weeks(
    act: Act,
    platform: Simulator,
    storage: Client,
    example: str,
    given: dict[str, Any],
    pages: int,
    started: int,
    cleared: int,
) -> None:
    platform.add_export_job("se_earlier", domain=DOMAIN, pages=pages)
    platform.plan_export(DOMAIN, ExportPlan(pages=pages))
    storage.put_object(Bucket=BUCKET, Key="old/index.html", Body=b"A page that is no longer there")
    for age, script in OLD_SCRIPTS.items():
        storage.put_object(Bucket=BUCKET, Key=script, Body=b"")
        bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]
        bucket.keys[script].last_modified -= timedelta(days=age)
    # as long as the new one, so that their sizes are equal
    storage.put_object(Bucket=BUCKET, Key="index.html", Body=b"x" * len(SITE["index.html"]))
    cdn = boto3.client("cloudfront", endpoint_url=storage.meta.endpoint_url, **AWS)
    distribution = cdn.create_distribution(DistributionConfig=DISTRIBUTION)["Distribution"]["Id"]
    variables = {**UPLOAD, "DOCS_DISTRIBUTION": distribution}

    run = act.run(example, platform, variables=variables, environment=endpoint(storage), **given)

    assert run.succeeded, run.log
    expected = site_files(domain=DOMAIN, pages=pages)
    removes_old_scripts = example == "upload-to-s3.yml"
    for age, script in OLD_SCRIPTS.items():
        if age <= 30 or not removes_old_scripts:
            expected[script] = b""
    assert contents(storage) == expected
    assert {name: headers(storage, name) for name in HEADERS} == HEADERS
    assert platform.count("start_export") == started
    invalidations = cdn.list_invalidations(DistributionId=distribution)["InvalidationList"]
    assert invalidations["Quantity"] == cleared


def test_an_export_waits_until_its_commit_is_deployed(act: Act, platform: Simulator) -> None:
    platform.github.add(OLDER, repository=REPOSITORY)
    platform.github.add(act.commit, repository=REPOSITORY)
    # however long the workflow takes to begin: at the first read, the newer one is in progress
    in_progress = Fault(json=[{"state": "in_progress"}])
    success = Fault(json=[{"state": "success"}])
    platform.script("read_deployment", in_progress, success)

    run = act.run("deploy-to-github-pages.yml", platform)

    assert run.succeeded, run.log
    commit = act.commit[:7]
    waiting = (
        f"The platform serves {OLDER[:7]}, which does not contain {commit} yet. "
        f"The deployment of {commit} is in progress."
    )
    assert run.log.index(waiting) < run.log.index(f"The platform serves {commit}.\n")


def test_an_export_is_started_at_night_and_collected_in_the_morning(
    act: Act, platform: Simulator
) -> None:
    artifacts = [
        artifact(hours=5, run=1),
        artifact(hours=29, run=2),
        artifact(hours=4, run=3, branch="a-branch"),
        # a fork has a branch main, too
        artifact(hours=3, run=4, repository=8),
    ]
    answers = {f"repos/{REPOSITORY}/actions/artifacts?name=docs-job": {"artifacts": artifacts}}
    environment = {"GH_ANSWERS": json.dumps(answers)}

    night = run_on_schedule(act, platform, "17 1 * * *", environment)
    morning = run_on_schedule(act, platform, "17 5 * * *", environment)

    assert night.succeeded, night.log
    assert morning.succeeded, morning.log
    assert night.printed("Collected") == []
    assert morning.printed("Collected") == [f"{HTML_FILES} pages"]
    assert platform.count("start_export") == 1


def artifact(*, hours: int, run: int, branch: str = "main", repository: int = 7) -> dict[str, Any]:
    """Return an artifact of repository 7, as old as `hours`, as GitHub lists it."""
    created = datetime.now(UTC) - timedelta(hours=hours)
    return {
        "created_at": f"{created:%Y-%m-%dT%H:%M:%SZ}",
        "workflow_run": {
            "id": run,
            "head_branch": branch,
            "repository_id": 7,
            "head_repository_id": repository,
        },
    }


def run_on_schedule(
    act: Act, platform: Simulator, at: str, environment: Mapping[str, str]
) -> WorkflowRun:
    return act.run(
        "export-overnight.yml",
        platform,
        event="schedule",
        payload={"schedule": at},
        environment=environment,
    )


def test_after_an_incomplete_export_nothing_is_uploaded_and_nothing_removed(
    act: Act, platform: Simulator, storage: Client
) -> None:
    storage.put_object(**OLD_PAGE, Key="index.html")
    variables = {**UPLOAD, "DOCS_MIN_PAGES": "1000"}

    run = act.run("upload-to-s3.yml", platform, variables=variables, environment=endpoint(storage))

    assert not run.succeeded, run.log
    assert contents(storage) == {"index.html": OLD_PAGE["Body"]}


@pytest.mark.parametrize("name", ["DOCS_DOMAINS", "DOCS_PROJECTS"])
def test_many_sites_are_deployed_and_the_failed_one_stays_unchanged(
    act: Act, platform: Simulator, storage: Client, name: str
) -> None:
    good = (DOMAIN, "developers.example.com")
    bad = "failing.example.com"
    storage.put_object(**OLD_PAGE, Key=f"{bad}/index.html")
    sites = [*good, bad]
    if name == "DOCS_PROJECTS":
        sites = [f"{domain}: {domain.partition('.')[0]}" for domain in sites]
    variables = {**UPLOAD, name: "\n".join(sites)}

    run = act.run(
        "export-many-deploy-each.yml",
        platform,
        event="workflow_dispatch",
        variables=variables,
        environment=endpoint(storage),
    )

    assert not run.succeeded, run.log
    expected = {f"{bad}/index.html": OLD_PAGE["Body"]}
    for domain in good:
        for path, body in site_files(domain=domain, pages=PAGES).items():
            expected[f"{domain}/{path}"] = body
    assert contents(storage) == expected
    # act marks every job of a matrix as failed if one fails, so the steps are checked
    failed = re.findall(r"^\[.*?/Deploy (\S+)-\d+ *\] .*Failure - Main ", run.log, re.MULTILINE)
    assert failed == [bad], run.log
    message = r"::error::Not deployed\. Export of (\S+): .+\. The API at .* said: "
    assert re.findall(message, run.log) == [bad], run.log


def test_a_site_without_a_domain_is_not_deployed_to_the_whole_bucket(
    act: Act, platform: Simulator, storage: Client
) -> None:
    storage.put_object(**OLD_PAGE, Key=f"{DOMAIN}/index.html")
    variables = {**UPLOAD, "DOCS_PROJECTS": "docs"}

    run = act.run(
        "export-many-deploy-each.yml",
        platform,
        event="workflow_dispatch",
        variables=variables,
        environment=endpoint(storage),
    )

    assert not run.succeeded, run.log
    assert "In DOCS_PROJECTS, write DOMAIN: IDENTIFIER" in run.log
    assert contents(storage) == {f"{DOMAIN}/index.html": OLD_PAGE["Body"]}


def endpoint(storage: Client) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": storage.meta.endpoint_url}


ADDRESSES = {
    "index.html": ["/index.html", "/"],
    # beside the folder guide, which has no index.html
    "guide.html": ["/guide.html", "/guide"],
    "guide/setup.html": ["/guide/setup.html", "/guide/setup"],
    "api/index.html": ["/api/index.html", "/api/", "/api"],
    "faq.html": ["/faq.html", "/faq"],
    "faq/index.html": ["/faq/index.html", "/faq/"],
    "404.html": ["/404.html", "/404"],
    # beside a file of the name license
    "license.html": ["/license.html"],
    "v1.html/index.html": ["/v1.html/index.html", "/v1.html/", "/v1.html"],
    "größe/a b+c.html": ["/gr%C3%B6%C3%9Fe/a%20b%2Bc.html", "/gr%C3%B6%C3%9Fe/a%20b%2Bc"],
}


def test_nginx_serves_every_file_and_every_address_of_the_sitemap(
    act: Act, platform: Simulator
) -> None:
    site = {name: f"<h1>{name}</h1>".encode() for name in [*ADDRESSES, "license", "robots.txt"]}
    sitemap = (
        "<urlset>"
        f"<url><loc>https://{DOMAIN}/</loc></url>"
        f"<url><loc>https://{DOMAIN}/guide?a=1&amp;b=2</loc></url>"
        f"<url><loc>https://{DOMAIN}/api/</loc></url>"
        "</urlset>"
    )
    site["sitemap.xml"] = sitemap.encode()
    platform.plan_export(DOMAIN, ExportPlan(bundle=build_archive(site, "tar.gz")))

    run = act.run("serve-with-nginx.yml", platform)

    assert run.succeeded, run.log
    # the license, robots.txt and the sitemap have one address each
    number = sum(len(addresses) for addresses in ADDRESSES.values()) + 3
    printed = f"{len(site)} files at {number} addresses, and 3 addresses of the sitemap"
    assert run.printed("nginx serves") == [printed], run.log


def test_the_site_is_exported_when_it_contains_the_commit(
    act: Act, platform: Simulator, storage: Client
) -> None:
    page = f'<meta name="docs-commit" content="{act.commit}">'
    storage.put_object(Bucket=BUCKET, Key="version.txt", Body=page.encode(), ACL="public-read")
    marker = f"{storage.meta.endpoint_url}/{BUCKET}/version.txt"

    run = act.run("export-the-merged-commit.yml", platform, variables={"DOCS_MARKER_URL": marker})

    assert run.succeeded, run.log
    assert run.printed("Exported") == [f"{HTML_FILES} pages"], run.log


@pytest.fixture
def cluster(examples_image: str) -> Iterator[Cluster]:
    """Serve a cluster with a release of the chart that has its own values."""
    with running_cluster() as cluster:
        install = (
            'printf %s "$TEXT" > /kubeconfig; KUBECONFIG=/kubeconfig '
            f"helm install docs {CHART} --kube-context {CONTEXT} --namespace docs "
            "--set replicas=3 --set-string staticExport.version=2024-05-01"
        )
        command = ["run", "--rm", "--network=host"]
        command += ["--env", f"TEXT={cluster.kubeconfig(CONTEXT)}"]
        command += [examples_image, "bash", "-ec", install]
        docker(*command)
        yield cluster


@pytest.mark.parametrize(
    ("example", "given", "version", "started", "stored"),
    [
        (
            "deploy-with-helm.yml",
            {"event": "workflow_dispatch", "inputs": {"version": "2024-06-01"}},
            "2024-06-01",
            1,
            ["variable set DOCS_EXPORT_JOB --repo example/docs --body se_new"],
        ),
        ("upgrade-with-helm.yml", {}, "the commit", 1, []),
        ("refresh-link-on-schedule.yml", {"event": "schedule"}, "2024-05-01", 0, []),
    ],
)
def test_the_deployment_gets_link_and_version_and_keeps_its_other_values(
    act: Act,
    platform: Simulator,
    cluster: Cluster,
    example: str,
    given: dict[str, Any],
    version: str,
    started: int,
    stored: list[str],
) -> None:
    platform.plan_export(DOMAIN, ExportPlan(job_id="se_new"))
    platform.add_export_job("se_remembered", domain=DOMAIN)
    variables = {**DEPLOY, **PROJECT, "DOCS_EXPORT_JOB": "se_remembered"}
    secrets = {"KUBECONFIG": cluster.kubeconfig(CONTEXT), "VARIABLES_TOKEN": "token-of-the-tests"}

    run = act.run(example, platform, variables=variables, secrets=secrets, **given)

    assert run.succeeded, run.log
    data = cluster.objects["configmaps", "docs", "docs"]["data"]
    values = json.loads(data["staticExport"])
    assert values == {
        "enabled": True,
        "bundleUrl": values["bundleUrl"],
        "version": version.replace("the commit", act.commit),
    }
    assert "," in values["bundleUrl"], "Helm would split it on its command line"
    assert requests.get(values["bundleUrl"], timeout=10).content == ARCHIVE
    assert data["replicas"] == "3"
    assert "X-Amz-Signature" not in run.log
    assert platform.count("start_export") == started
    assert run.printed("asked of gh:") == stored


def test_the_archive_crosses_an_air_gap(
    act: Act, platform: Simulator, storage: Client, cluster: Cluster
) -> None:
    address = storage.meta.endpoint_url
    variables = {
        **DEPLOY,
        "DOCS_STORAGE": f"s3://{BUCKET}",
        "DOCS_STORAGE_URL": f"{address}/{BUCKET}",
        "AWS_ENDPOINT_URL": address,
        "DOCS_RUNNER": "docs-internal",
    }
    given: dict[str, Any] = {
        "event": "workflow_dispatch",
        "secrets": {"KUBECONFIG": cluster.kubeconfig(CONTEXT)},
        "variables": variables,
    }

    run = act.run("behind-an-air-gap.yml", platform, environment=access(storage), **given)

    assert run.succeeded, run.log
    sha256 = hashlib.sha256(ARCHIVE).hexdigest()
    assert contents(storage) == {sha256: ARCHIVE}
    values = json.loads(cluster.objects["configmaps", "docs", "docs"]["data"]["staticExport"])
    assert values["bundleUrl"] == f"{address}/{BUCKET}/{sha256}"

    changing = {**access(storage), "BETWEEN": "echo >> docs/docs.bundle"}
    changed = act.run("behind-an-air-gap.yml", platform, environment=changing, **given)

    assert not changed.succeeded, changed.log
    assert contents(storage) == {sha256: ARCHIVE}


STRINGS = (
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


def test_helm_reads_every_string_of_a_values_file_back_unchanged(
    examples_image: str, tmp_path: Path
) -> None:
    for number, value in enumerate(STRINGS):
        job = Job(kind=Export(), domain=value, job_id=value)
        link = BundleLink(url=value, expires_at=value)
        text = values_text(job, link, value, datetime.now(UTC))
        (tmp_path / f"{number:02}.yaml").write_text(text, "utf-8", newline="")
    render = f"for file in /values/*; do helm template docs {CHART} --values $file; done"
    command = ["run", "--rm", "--network=host", "-v", f"{tmp_path}:/values"]
    command += [examples_image, "bash", "-ec", render]

    rendered = docker(*command)

    documents = yaml.safe_load_all(rendered)
    read = [json.loads(document["data"]["staticExport"]) for document in documents]
    assert read == [{"enabled": True, "bundleUrl": value, "version": value} for value in STRINGS]


def test_every_complete_workflow_has_a_test() -> None:
    tested = set()
    for file in HERE.glob("test_*.py"):
        tested.update(re.findall(r'"([\w-]+\.yml)"', file.read_text("utf-8")))
    examples = set()
    for file in EXAMPLES.glob("*.yml"):
        examples.add(file.name)
        for called in re.findall(r"uses: (\./\S+)", file.read_text("utf-8")):
            tested.add(Path(called).name)

    assert examples | set(readme_workflows()) <= tested

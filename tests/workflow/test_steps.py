"""Steps of the examples that stop the job, each as a script without a workflow around it."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from docs_platform_action.bundle.helm_values import values_text
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import BundleLink
from tests.workflow.act import DOMAIN
from tests.workflow.steps import run_step
from tests.workflow.test_examples import CHART

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the images

SIGNATURE = "0f" * 200
LINK = (
    "https://exports.example.com/se_1/bundle.tar.gz"
    f"?x-id=GetObject,bundle&X-Amz-Signature={SIGNATURE}"
)
UNUSED_LINK = "::error::The chart does not use staticExport.bundleUrl"
CHECK_OF_THE_CHART = ("deploy-with-helm.yml", "Check that the chart uses the link")
OTHER_CHART = (
    f"cp -r {CHART} /other; "
    'printf %s "$TEMPLATE" > /other/templates/values.yaml; '
    'printf %s "$VALUES" > export-values.yaml'
)
WAIT = ("export-the-merged-commit.yml", "Wait until the site contains the commit")
COMMIT = "c0ffee" * 6 + "c0de"
NOT_YET = """
printf '#!/bin/sh
' > /usr/local/bin/sleep
printf '#!/bin/sh
echo x >> /tries; [ $(wc -l < /tries) -le "$TRIES" ] || echo "$COMMIT"
' > /usr/local/bin/curl
chmod 755 /usr/local/bin/sleep /usr/local/bin/curl"""


def chart_with(template: str) -> dict[str, str]:
    job = Job(kind=Export())
    return {
        "RELEASE": "docs",
        "NAMESPACE": "docs",
        "CHART": "/other",
        "CHART_VERSION": "",
        "TEMPLATE": (
            f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: docs\ndata:\n  link: {template}\n"
        ),
        "VALUES": values_text(job, BundleLink(url=LINK), None, datetime.now(UTC)),
        "BUNDLE_URL": LINK,
    }


REQUESTS = ("serve-with-nginx.yml", "Request every file and every address of the sitemap")
NO_SERVER = "mkdir site; touch site/index.html; curl() { return 7; }; export -f curl"


def served(address: str) -> str:
    """Return commands for a site with a sitemap, and for its server, which `curl` stands for.

    The server has the start page alone, and answers with it for missing pages, too.
    """
    return (
        "mkdir site; "
        f"echo '<loc>https://{DOMAIN}{address}</loc>' > site/sitemap.xml; "
        "echo start > site/index.html; "
        "curl() { case ${!#} in "
        "*sitemap.xml) cat site/sitemap.xml ;; "
        "*/guide) return 22 ;; "
        "*-no-such-page) printf 200 ;; "
        "*) cat site/index.html ;; "
        "esac; }; "
        "export -f curl"
    )


@pytest.mark.parametrize(
    ("step", "prepare", "variables", "status", "printed"),
    [
        (
            ("export-many-deploy-each.yml", "Stop if the export failed"),
            "true",
            {"MESSAGE": 'The API said: "one\n::add-mask::two\r\n::warning::\tthree \\n %s $(id)"'},
            1,
            (
                "::error::Not deployed. "
                'The API said: "one ::add-mask::two  ::warning:: three \\n %s $(id)"\n'
            ),
        ),
        (REQUESTS, "mkdir site; touch site/robots.txt", {}, 1, "::error::The site has no page: "),
        (REQUESTS, NO_SERVER, {}, 1, "::error::/index.html is not the file site/index.html\n"),
        (
            REQUESTS,
            served("/guide"),
            {},
            1,
            "::error::/guide is in the sitemap, but the site does not have it\n",
        ),
        (
            REQUESTS,
            served("/"),
            {},
            1,
            "::error::A missing page is answered with 200, or not with the site's 404.html\n",
        ),
        (
            CHECK_OF_THE_CHART,
            OTHER_CHART,
            chart_with("{{ .Values.staticExport.bundleUrl | quote }}"),
            0,
            "",
        ),
        (
            CHECK_OF_THE_CHART,
            OTHER_CHART,
            chart_with("{{ .Values.staticExport.bundleUrl | b64enc }}"),
            0,
            "",
        ),
        (
            CHECK_OF_THE_CHART,
            OTHER_CHART,
            chart_with("{{ .Values.bundleUrl | quote }}"),
            1,
            UNUSED_LINK,
        ),
        (
            ("upgrade-with-helm.yml", "Upgrade the deployment"),
            "true",
            {"KUBE_CONTEXT": ""},
            1,
            "KUBE_CONTEXT: Set the variable DOCS_KUBE_CONTEXT\n",
        ),
        (WAIT, "true", {"MARKER_URL": ""}, 1, "MARKER_URL: Set the variable DOCS_MARKER_URL\n"),
        (
            WAIT,
            NOT_YET,
            {"MARKER_URL": "http://site", "COMMIT": COMMIT, "TRIES": "89"},
            0,
            f"http://site contains {COMMIT}\n",
        ),
        (
            WAIT,
            NOT_YET,
            {"MARKER_URL": "http://site", "COMMIT": COMMIT, "TRIES": "90"},
            1,
            f"::error::http://site did not contain {COMMIT} in time. ",
        ),
    ],
)
def test_a_step_stops_the_job_or_lets_it_continue(
    examples_image: str,
    step: tuple[str, str],
    prepare: str,
    variables: Mapping[str, str],
    status: int,
    printed: str,
) -> None:
    code, log = run_step(examples_image, *step, variables, prepare=prepare)

    assert code == status, log
    assert printed in log, log

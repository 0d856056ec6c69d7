"""The workflows of the page about the plan, put together from its steps as they stand."""

import yaml

from docs.pages import blocks_of
from tests.engine import ROOT
from tests.workflow.act import PUBLISHED_AS

BUCKET = "docs-example-com"
DEPLOYMENTS: dict[str, list[dict[str, str]]] = {
    "plan-host": [
        {"name": "Deploy", "run": f"aws s3 cp --recursive --acl public-read site s3://{BUCKET}"}
    ],
    "plan-s3": [],  # the page has it
}
"""What stands for the deployment to a host that replaces the whole site."""
SECTIONS = {"plan-host": "Hosts that replace the whole site", "plan-s3": "S3"}


def plan_workflows() -> dict[str, str]:
    """Return a workflow for each kind of host, by the names of their files."""
    page = (ROOT / "docs" / "plan.md").read_text("utf-8")
    page = page.replace("https://api.example.com", "${{ vars.DOCS_API_URL }}")
    page = page.replace("https://docs.example.com/", "${{ vars.DOCS_LIVE_URL }}/")
    (export,), by_hand = map(yaml.safe_load, blocks_of(page, "## The step", "yaml"))
    assert export["uses"] == PUBLISHED_AS
    made = {}
    for name, heading in SECTIONS.items():
        (fetch,), publish = map(yaml.safe_load, blocks_of(page, f"### {heading}", "yaml"))
        job = {"runs-on": "ubuntu-latest", "steps": [fetch, export, *publish, *DEPLOYMENTS[name]]}
        events = {"push": {}, **by_hand[True]}  # PyYAML reads YAML 1.1, in which `on` is true
        made[f"{name}.yml"] = yaml.safe_dump({"name": name, "on": events, "jobs": {"publish": job}})
    return made

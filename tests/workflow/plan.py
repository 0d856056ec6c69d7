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
    # the page has it
    "plan-s3": [],
}
"""What stands for the deployment to a host that replaces the whole site."""
SECTIONS = {"plan-host": "Hosts that replace the whole site", "plan-s3": "S3"}


def plan_workflows() -> dict[str, str]:
    """Return a workflow for each kind of host, by the names of their files."""
    page = (ROOT / "docs" / "plan.md").read_text("utf-8")
    page = page.replace("https://api.example.com", "${{ vars.DOCS_API_URL }}")
    page = page.replace("https://docs.example.com/", "${{ vars.DOCS_LIVE_URL }}/")
    export_block, events_block = blocks_of(page, "## The step", "yaml")
    (export,) = yaml.safe_load(export_block)
    assert export["uses"] == PUBLISHED_AS
    # PyYAML reads YAML 1.1, in which `on` is true
    by_hand = yaml.safe_load(events_block)[True]
    events = {"push": {}, **by_hand}

    made = {}
    for name, heading in SECTIONS.items():
        fetch_block, publish_block = blocks_of(page, f"### {heading}", "yaml")
        fetch = yaml.safe_load(fetch_block)
        publish = yaml.safe_load(publish_block)
        steps = [*fetch, export, *publish, *DEPLOYMENTS[name]]
        jobs = {"publish": {"runs-on": "ubuntu-latest", "steps": steps}}
        made[f"{name}.yml"] = yaml.safe_dump({"name": name, "on": events, "jobs": jobs})
    return made

"""The complete workflows in the README."""

import re
from pathlib import Path

import yaml

README = Path(__file__).parents[1] / "README.md"


def readme_workflows() -> dict[str, str]:
    """Return the complete workflows, by names of files, with a variable in place of the API's address."""
    blocks = re.findall(r"```yaml\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)
    complete = [block.replace("https://api.example.com", "${{ vars.DOCS_API_URL }}") for block in blocks if "\njobs:" in block]
    return {f"readme-{next(iter(yaml.safe_load(block)['jobs']))}.yml": block for block in complete}

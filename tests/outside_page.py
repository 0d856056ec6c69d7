"""The code blocks of docs/outside-github-actions.md, which the tests run."""

import re
from pathlib import Path
from typing import Any, Final

import yaml

PAGE: Final = (Path(__file__).parents[1] / "docs" / "outside-github-actions.md").read_text("utf-8")


def block(heading: str, language: str = "") -> str:
    """Return the first code block of a language below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE)[0]  # type: ignore[no-any-return]


def gitlab_job() -> dict[str, Any]:
    """Return the job of the GitLab pipeline."""
    return dict(yaml.safe_load(block("GitLab CI", "yaml"))["export-docs"])


def jenkins_script() -> str:
    """Return the script of the Jenkins pipeline's last stage."""
    (script,) = re.findall(r"'''(.*?)'''", block("Jenkins", "groovy"), flags=re.DOTALL)
    return str(script)

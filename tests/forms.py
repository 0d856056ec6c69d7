"""The two forms of the export API, for tests in which both mean the same."""

from collections.abc import Mapping
from typing import Final

import pytest

BY_DOMAIN: Final = "by domain"
BY_PROJECT: Final = "by project"
FORMS: Final = (BY_DOMAIN, BY_PROJECT)

BOTH_FORMS: Final = pytest.mark.parametrize("form", FORMS)
"""Runs a test of the fixture `action` with each form."""


def by_project(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return inputs for the same exports by project as the given ones by domain.

    The simulator's project of a domain is its first label. The domain becomes the project's label.
    """
    if inputs.get("mode", "export") not in {"export", "collect"}:
        return {**inputs}
    default = ""
    if inputs.get("job-id"):
        default = "docs.example.com"
    projects = []
    for domain in inputs.get("domain", default).split():
        project = domain.removesuffix(".example.com")
        projects.append(f"{domain}: {project}")
    return {**inputs, "domain": "", "project-id": "\n".join(projects)}

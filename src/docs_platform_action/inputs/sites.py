"""The sites that a run is about, by `domain` and `project-id`."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..models import Project
from ..text import join_errors, quoted
from . import table
from .mistakes import Mistakes
from .validators import EXAMPLE, project_errors
from .values import InputValues


@dataclass(frozen=True, kw_only=True)
class Site:
    """A site. `name` is its domain, or the label of its project."""

    name: str | None = None
    project_id: str | None = None


def read_sites(values: InputValues, mistakes: Mistakes) -> Sequence[Site]:
    """Return the sites, at least one. Reports what is wrong with them, and uses the rest."""
    domains = values.value(table.DOMAIN) or []
    projects = values.value(table.PROJECT_ID) or []
    used_domains = _checked_domains(domains, values, mistakes)
    used_projects = _checked_projects(projects, values, mistakes)
    _check_names(domains, projects, mistakes)
    name = used_domains[0] if used_domains else None
    if used_projects:
        return [
            Site(name=project.label or name, project_id=project.project_id)
            for project in used_projects
        ]
    if used_domains:
        return [Site(name=domain) for domain in used_domains]
    return [Site()]


def _checked_domains(
    domains: Sequence[str],
    values: InputValues,
    mistakes: Mistakes,
) -> Sequence[str]:
    if len(domains) > 1 and not values.is_in(table.DOMAIN.several_in):
        limit = f"mode `{values.mode}` delivers one bundle; set one domain, or none"
        mistakes.add("domain", f"lists {len(domains)} domains, but {limit}")
        return domains[:1]
    return domains


def _checked_projects(
    projects: Sequence[Project],
    values: InputValues,
    mistakes: Mistakes,
) -> Sequence[Project]:
    if len(projects) > 1 and not values.is_in(table.PROJECT_ID.several_in):
        limit = f"mode `{values.mode}` is about one job; set one project"
        mistakes.add("project-id", f"lists {len(projects)} projects, but {limit}")
        return projects[:1]
    if not values.is_in(table.DOMAIN.modes):  # then a label names nothing
        if projects and projects[0].label is not None:
            unused = f"has a label, which mode `{values.mode}` does not use"
            mistakes.add("project-id", f"{unused}; write {projects[0].project_id}")
        return projects
    errors = project_errors(projects)
    if errors:
        mistakes.add("project-id", join_errors(errors))
        values.invalidate(table.PROJECT_ID)
        return []
    return projects


def _check_names(
    domains: Sequence[str],
    projects: Sequence[Project],
    mistakes: Mistakes,
) -> None:
    """Report two names for one site."""
    if not domains or not projects:
        return
    if len(projects) > 1 or len(domains) > 1:
        instead = f"write each domain before its project, {EXAMPLE}, and remove `domain`"
        mistakes.add("domain", f"with several sites, `project-id` names them all; {instead}")
    elif projects[0].label is not None:
        label = quoted(projects[0].label)
        error = f"names the site, as does the label {label} in `project-id`; remove one"
        mistakes.add("domain", error)

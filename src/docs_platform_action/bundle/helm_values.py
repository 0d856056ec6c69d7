"""Helm values for a bundle: the file that `helm upgrade --values` reads.

PyYAML writes it: YAML 1.1 and 1.2 escape different characters, but read PyYAML's double-quoted
style the same way.
"""

from datetime import datetime

import yaml

from ..job import Job
from ..models import BundleLink


class _Text(str):
    """A string that is always quoted."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Text` in double quotes.

    A plain `2024-06-01` is a date, `1e3` a number and `yes` a boolean.
    """


def _represent_text(dumper: _Dumper, text: _Text) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_representer(_Text, _represent_text)


def values_text(job: Job, link: BundleLink, version: str | None, now: datetime) -> str:
    """Return a Helm values file in ASCII that enables a static export.

    Without a `version`, a release keeps its own.
    """
    export: dict[str, object] = {"enabled": True, "bundleUrl": _Text(link.url)}
    if version is not None:
        export["version"] = _Text(version)
    values = yaml.dump(
        {"staticExport": export},
        Dumper=_Dumper,
        width=float("inf"),
        allow_unicode=False,
        sort_keys=False,
    )
    export_name = "Static export"
    if job.site is not None:
        export_name = f"Static export of {job.site}"
    facts = _comment(f"{export_name}, job {job.job_id}.{_expiry(link, now)}")
    advice = _comment(f"To get a new link, run the action with {job.inputs_to_collect}")
    return f"{facts}\n{advice}\n{values}"


def _comment(text: str) -> str:
    escaped = text.encode("unicode_escape").decode("ascii")
    return f"# {escaped}".rstrip()


def _expiry(link: BundleLink, now: datetime) -> str:
    """Return a sentence about the link's expiry, if the API reported it."""
    if link.expires is not None:
        verb = "is valid until" if link.expires > now else "expired at"
        return f" The link {verb} {link.expires:%Y-%m-%d %H:%M:%S} UTC."
    if link.expires_at is not None:
        return f" The link is valid until {link.expires_at}."
    return ""

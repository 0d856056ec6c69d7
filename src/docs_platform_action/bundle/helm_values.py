"""Helm values for a bundle: the file that `helm upgrade --values` reads.

PyYAML writes it: YAML 1.1 and 1.2 escape different characters, but read PyYAML's double-quoted style the same way.
"""

from datetime import datetime

import yaml

from ..job import Job


class _Text(str):
    """A string that is always quoted."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Text` in double quotes: a plain `2024-06-01` is a date, `1e3` a number and `yes` a boolean."""


_Dumper.add_representer(
    _Text,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"'),
)


def values_text(job: Job, version: str | None, now: datetime) -> str:
    """Return a Helm values file in ASCII that enables a static export. Without a `version`, a release keeps its own."""
    link = job.link
    assert link is not None  # noqa: S101  # there is a link by now; this tells the type checker
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
    site = f" of {job.site}" if job.site is not None else ""
    until = f"{link.expires:%Y-%m-%d %H:%M:%S} UTC" if link.expires is not None else link.expires_at
    expiry = (
        f" The link {'is valid until' if job.link_seconds(now) > 0 else 'expired at'} {until}."
        if until is not None
        else ""
    )
    comment = (
        f"Static export{site}, job {job.job_id}.{expiry}",
        f"To get a new link, run the action with {job.inputs_to_collect}",
    )
    lines = [f"# {line.encode('unicode_escape').decode('ascii')}".rstrip() for line in comment]
    return "\n".join([*lines, values])

"""Write a bundle as Helm values: the file that `helm upgrade --values` reads.

A library writes the YAML, because what is written here comes from outside and is read by other programs: what needs an escape
differs between YAML 1.1 and 1.2, and an escape left out is a value changed. PyYAML's double-quoted style is what all of them read
back alike.
"""

from collections.abc import Sequence

import yaml


class _Text(str):
    """A string to be quoted, whatever it looks like."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Text` in double quotes; a plain `2024-06-01` is a date, `1e3` a number and `yes` a boolean."""


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"'))


def values_text(*, bundle_url: str, version: str | None, comment: Sequence[str]) -> str:
    """Return a Helm values file in ASCII that turns a static export on: its `comment`, then `staticExport`.

    Every YAML reader gets `bundle_url` and `version` back as the same strings; without a `version` there is no such key, so
    that a release keeps the one it has. Each text of the comment is one line: what could end it, and what is not ASCII, is
    escaped there as Python writes it.

    Raises `ValueError` for a lone surrogate, which YAML cannot hold.
    """
    for text in (bundle_url, version or ""):
        text.encode()
    export: dict[str, object] = {"enabled": True, "bundleUrl": _Text(bundle_url)}
    if version is not None:
        export["version"] = _Text(version)
    values = yaml.dump({"staticExport": export}, Dumper=_Dumper, width=float("inf"), allow_unicode=False, sort_keys=False)
    lines = [f"# {line.encode('unicode_escape').decode('ascii')}".rstrip() for line in comment]
    return "\n".join([*lines, values])

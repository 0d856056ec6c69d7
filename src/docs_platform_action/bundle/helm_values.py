"""Helm values for a bundle: the file that `helm upgrade --values` reads.

PyYAML writes it: YAML 1.1 and 1.2 escape different characters, but read PyYAML's double-quoted style the same way.
"""

from collections.abc import Sequence

import yaml


class _Text(str):
    """A string that is always quoted."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Text` in double quotes: a plain `2024-06-01` is a date, `1e3` a number and `yes` a boolean."""


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"'))


def values_text(*, bundle_url: str, version: str | None, comment: Sequence[str]) -> str:
    """Return a Helm values file in ASCII that enables a static export. Without a `version`, a release keeps its own."""
    export: dict[str, object] = {"enabled": True, "bundleUrl": _Text(bundle_url)}
    if version is not None:
        export["version"] = _Text(version)
    values = yaml.dump({"staticExport": export}, Dumper=_Dumper, width=float("inf"), allow_unicode=False, sort_keys=False)
    lines = [f"# {line.encode('unicode_escape').decode('ascii')}".rstrip() for line in comment]
    return "\n".join([*lines, values])

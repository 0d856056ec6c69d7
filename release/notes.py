"""The text of a release on GitHub."""

import re
from typing import Final

from release.action_file import Image

_STARTS_BLOCK: Final = re.compile(r" *(?:#|>|\||```|[-*+] |\d+\. |$)")
_IS_WHOLE: Final = re.compile(r" *(?:#|\||```|$)")


def release_notes(section: str, image: Image | None, repository: str | None = None) -> str:
    """Return the changes of a version and, with its image, how to verify where that comes from.

    `repository` is the name with its capital letters, because `--signer-workflow` is a case-sensitive pattern (cli/cli,
    `policy.go`). That pattern matches a workflow on any branch, so `--source-ref` requires main. The default is the end of the
    image's name.
    """
    section = _without_wrapping(section)
    if image is None:
        return section
    repository = repository or image.name.partition("/")[2]
    return f"""\
{section}

### Image

This version runs `{image}`.
It was built from this repository for `linux/amd64` and `linux/arm64`. To verify where it comes from:

```sh
gh attestation verify oci://{image} \\
  --repo {repository} --source-ref refs/heads/main \\
  --signer-workflow {repository}/.github/workflows/release.yml
```"""


def _without_wrapping(section: str) -> str:
    """Join the lines of each paragraph and list item, because GitHub shows every line break in release notes."""
    lines: list[str] = []
    in_code = False
    for line in section.splitlines():
        if lines and not in_code and not _STARTS_BLOCK.match(line) and not _IS_WHOLE.match(lines[-1]):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
        in_code ^= line.lstrip().startswith("```")
    return "\n".join(lines)

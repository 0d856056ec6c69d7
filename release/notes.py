"""The text of a release on GitHub."""

from release.action_file import Image


def release_notes(section: str, image: Image | None, repository: str | None = None) -> str:
    """Return the changes of a version and, with its image, how to verify where that comes from.

    `repository` is the name with its capital letters, because `--signer-workflow` is a case-sensitive pattern (cli/cli,
    `policy.go`). That pattern matches a workflow on any branch, so `--source-ref` requires main. The default is the end of the
    image's name.
    """
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

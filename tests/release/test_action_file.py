"""The image's line of action.yml."""

import pytest
import yaml

from release.action_file import diff_of, parse_image, pin_image
from release.errors import ReleaseError
from release.version import parse_version
from tests.release.clones import IMAGE, ROOT

VERSION = parse_version("1.2.0")
ACTION = (ROOT / "action.yml").read_text()


class TestImage:
    @pytest.mark.parametrize(
        ("written", "name"),
        [
            ("ghcr.io/OWNER/docs-platform-action", "ghcr.io/owner/docs-platform-action"),
            ("ghcr.io/Some-Org/Docs-Platform-Action", "ghcr.io/some-org/docs-platform-action"),
            ("127.0.0.1:5000/owner/docs-platform-action", "127.0.0.1:5000/owner/docs-platform-action"),
            ("localhost:5000/a", "localhost:5000/a"),
        ],
    )
    def test_its_name_is_lower_case(self, written: str, name: str) -> None:
        assert str(parse_image(written, IMAGE.digest)) == f"{name}@{IMAGE.digest}"

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (f"{IMAGE.name}:1.2.0", "contains a tag. Remove it: the digest alone identifies the image."),
            ("127.0.0.1:5000/owner/name:1.2.0", "contains a tag."),
            (str(IMAGE), "contains a digest. Pass the digest separately, with --digest."),
            (f"{IMAGE.name}:1.2.0@{IMAGE.digest}", "contains a digest."),
            ("", "is not an image name with its registry, such as ghcr.io/owner/docs-platform-action."),
            ("docs-platform-action", "is not an image name"),
            (f"docker://{IMAGE.name}", "is not an image name"),
            ("ghcr.io/owner/", "is not an image name"),
            ("ghcr.io/own er/name", "is not an image name"),
            ("ghcr.io/owner/name\n", "is not an image name"),
            ("ghcr.io/owner/name # comment", "is not an image name"),
            ("ghcr.io/${OWNER}/name", "is not an image name"),
        ],
    )
    def test_another_name_is_refused(self, name: str, message: str) -> None:
        with pytest.raises(ReleaseError) as caught:
            parse_image(name, IMAGE.digest)

        assert message in str(caught.value)

    @pytest.mark.parametrize(
        "digest",
        [
            "",
            "5a" * 32,
            "sha256:",
            f"sha256:{'5a' * 31}",
            f"sha256:{'5a' * 33}",
            f"sha256:{'5A' * 32}",
            f"sha512:{'5a' * 64}",
            "latest",
        ],
    )
    def test_a_malformed_digest_is_refused(self, digest: str) -> None:
        with pytest.raises(ReleaseError, match=r"is not a digest\. Write sha256: and 64 digits of 0-9 and a-f\."):
            parse_image(IMAGE.name, digest)


class TestPin:
    def test_only_the_images_line_changes(self) -> None:
        pinned = pin_image(ACTION, IMAGE, VERSION)

        changes = [line for line in diff_of(ACTION, pinned).splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        assert changes == ["-  image: Dockerfile", f"+  image: docker://{IMAGE} # v1.2.0"]

    def test_github_reads_the_image_without_the_comment(self) -> None:
        before, after = yaml.safe_load(ACTION), yaml.safe_load(pin_image(ACTION, IMAGE, VERSION))

        assert after["runs"].pop("image") == f"docker://{IMAGE}"
        assert before["runs"].pop("image") == "Dockerfile"
        assert after == before

    def test_a_pinned_file_is_refused(self) -> None:
        pinned = pin_image(ACTION, IMAGE, VERSION)

        with pytest.raises(ReleaseError, match=r"as its image instead of Dockerfile\. Start from main, which is never pinned\."):
            pin_image(pinned, IMAGE, VERSION)

    def test_ends_of_lines_stay_as_they_are(self) -> None:
        assert pin_image(ACTION.replace("\n", "\r\n"), IMAGE, VERSION) == pin_image(ACTION, IMAGE, VERSION).replace("\n", "\r\n")

    def test_the_same_text_in_a_description_stays(self) -> None:
        text = f"description: >-\n  image: Dockerfile\n{ACTION}"

        assert pin_image(text, IMAGE, VERSION) == f"description: >-\n  image: Dockerfile\n{pin_image(ACTION, IMAGE, VERSION)}"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "runs:\n  using: docker\n",
            f"{ACTION}  image: Dockerfile\n",
            "runs:\n  using: docker\nimage: Dockerfile\n",
            "description: >-\n  image: Dockerfile\nruns:\n  using: docker\n",
            "runs:\n  using: docker\n  args:\n    - >-\n      image: Dockerfile\n",
            'runs:\n  "image": Dockerfile\n',
        ],
    )
    def test_a_file_without_one_such_line_is_refused(self, text: str) -> None:
        with pytest.raises(ReleaseError, match=r"has [02] lines with `image:`, .*, below `runs:` .*\. Restore it from main\."):
            pin_image(text, IMAGE, VERSION)

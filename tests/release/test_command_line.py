"""The commands, as release.yml and maintainers call them."""

import io
import os
import re
import subprocess
from pathlib import Path

import pytest

from release.__main__ import main
from release.action_file import PLACEHOLDER_DIGEST
from tests.release.clones import IMAGE, ROOT, Clone

PUBLISHED = ("--image", "ghcr.io/OWNER/docs-platform-action", "--digest", IMAGE.digest)


class TestCheck:
    @pytest.mark.usefixtures("clone")
    def test_a_releasable_clone_passes(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "1.2.0"]) == 0

        assert "ok       The tag v1.2.0 is free on origin.\n" in capsys.readouterr().out

    @pytest.mark.usefixtures("clone")
    def test_refusals_are_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "1.3.0"]) == 1

        shown = capsys.readouterr()
        assert shown.out.count("refused  ") == 3
        assert shown.err == "Error: 3 of 10 checks refuse this release. Each says above what to do.\n"


class TestPin:
    def test_it_rewrites_the_file_in_this_folder(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["pin", *PUBLISHED, "1.2.0"]) == 0

        assert f"\n  image: docker://{IMAGE} # v1.2.0\n" in clone.read("action.yml")
        assert capsys.readouterr().out == f"action.yml names {IMAGE}.\n"

    def test_ends_of_lines_stay_as_they_are(self, clone: Clone) -> None:
        (clone.folder / "action.yml").write_bytes(clone.read("action.yml").replace("\n", "\r\n").encode())

        assert main(["pin", *PUBLISHED, "1.2.0"]) == 0

        content = (clone.folder / "action.yml").read_bytes()
        assert content.count(b"\r\n") == content.count(b"\n") > 0

    def test_a_second_time_is_refused_and_changes_nothing(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        main(["pin", *PUBLISHED, "1.2.0"])
        pinned = clone.read("action.yml")

        assert main(["pin", *PUBLISHED, "1.2.0"]) == 1

        assert clone.read("action.yml") == pinned
        assert "Error: action.yml has docker://" in capsys.readouterr().err


class TestTag:
    def test_it_prints_only_the_commit(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tag", *PUBLISHED, "1.2.0"]) == 0

        assert capsys.readouterr().out == f"{clone.git('rev-parse', 'refs/tags/v1.2.0')}\n"


class TestNotes:
    def test_wrapped_lines_are_joined_because_github_shows_every_line_break(
        self, clone: Clone, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = "Two\nlines.\n\n### Added\n\n- One\n  `two`\n  three.\n- Four.\n\n```sh\na\nb\n```\nFive."
        clone.write("CHANGELOG.md", f"# Changelog\n\n## [1.2.0] - 2026-01-02\n\n{text}\n")
        clone.push("A longer changelog")

        assert main(["notes", "1.2.0"]) == 0

        joined = "Two lines.\n\n### Added\n\n- One `two` three.\n- Four.\n\n```sh\na\nb\n```\nFive.\n"
        assert capsys.readouterr().out == joined

    @pytest.mark.usefixtures("clone")
    def test_without_an_image_they_are_the_changelogs_section(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["notes", "1.2.0"]) == 0

        assert capsys.readouterr().out == "### Added\n\n- Something new.\n"

    @pytest.mark.usefixtures("clone")
    def test_with_an_image_they_say_how_to_verify_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["notes", *PUBLISHED, "1.2.0"]) == 0

        notes = capsys.readouterr().out
        assert notes.startswith("### Added\n\n- Something new.\n\n### Image\n\nThis version runs `ghcr.io/owner/")
        assert verification(notes) == (
            f"oci://{IMAGE}",
            {
                "--repo": "owner/docs-platform-action",
                "--signer-workflow": "owner/docs-platform-action/.github/workflows/release.yml",
                "--source-ref": "refs/heads/main",
            },
        )

    @pytest.mark.usefixtures("clone")
    def test_the_command_is_that_of_the_security_page(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["notes", *PUBLISHED, "--repository", "OWNER/docs-platform-action", "1.2.0"]) == 0

        (image, options) = verification((ROOT / "SECURITY.md").read_text())
        assert image == "oci://ghcr.io/OWNER/docs-platform-action@sha256:…"
        assert options == verification(capsys.readouterr().out)[1]

    @pytest.mark.parametrize("half", [PUBLISHED[:2], PUBLISHED[2:]])
    @pytest.mark.usefixtures("clone")
    def test_a_name_without_a_digest_is_refused(self, capsys: pytest.CaptureFixture[str], half: tuple[str, str]) -> None:
        assert main(["notes", *half, "1.2.0"]) == 1

        assert capsys.readouterr().err == "Error: --image and --digest belong together. Pass both or neither.\n"


class TestMajor:
    @pytest.mark.parametrize(
        ("tag", "exit_code", "out", "err"),
        [
            ("v1.2.0", 0, "v1\n", ""),
            ("v1.1.0", 0, "", "v1 stays where it is: 1.2.0 is newer.\n"),
            ("v1", 1, "", "Error: '1' is not a version."),
        ],
    )
    def test_it_prints_the_tag_that_moves_or_only_the_reason(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        tag: str,
        exit_code: int,
        out: str,
        err: str,
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("v1.2.0\nv1.1.0\n"))

        assert main(["major", tag]) == exit_code

        shown = capsys.readouterr()
        assert shown.out == out
        assert shown.err.startswith(err)
        assert bool(shown.err) is bool(err)


class TestDryRun:
    @pytest.mark.usefixtures("clone")
    def test_it_ends_with_the_refusals_or_says_that_there_are_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        main(["dry-run", "1.2.0"])
        passed = capsys.readouterr().out.splitlines()
        main(["dry-run", "1.3.0"])
        refused = capsys.readouterr().out.partition("\nRefused\n\n")[2].splitlines()

        assert passed[-1].startswith("No check refuses this release. Not checked here: the result of CI")
        assert len(refused) == 3
        assert all(line.startswith("  refused  ") for line in refused)

    def test_a_clean_clone_passes_and_nothing_changes(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        os.utime(clone.folder / "action.yml", (1, 1))  # git would refresh its index
        before = clone.state()

        assert main(["dry-run", "1.2.0"]) == 0
        first = capsys.readouterr().out
        assert main(["dry-run", "1.2.0"]) == 0

        assert capsys.readouterr().out == first
        assert clone.state() == before

    def test_it_prints_the_diff_of_the_release(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        main(["dry-run", *PUBLISHED, "1.2.0"])
        shown = capsys.readouterr().out
        main(["tag", *PUBLISHED, "1.2.0"])

        # git adds two lines of its own at the top
        diff = clone.git("diff", "HEAD", "refs/tags/v1.2.0").splitlines()[2:]
        assert "\n".join(f"  {line}".rstrip() for line in diff if not line.startswith("@@")) in without_hunks(shown)

    def test_without_a_digest_it_prints_a_placeholder_and_what_github_is_asked(
        self, clone: Clone, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["dry-run", "1.2.0"])

        shown, head = capsys.readouterr().out, clone.git("rev-parse", "HEAD")
        assert "The digest is a placeholder. In a release, the build determines it." in shown
        assert f"+  image: docker://ghcr.io/owner/docs-platform-action@{PLACEHOLDER_DIGEST} # v1.2.0" in shown
        assert f"actions/workflows/ci.yml/runs?branch=main&head_sha={head}&per_page=100'" in shown
        assert "git ls-remote origin refs/heads/main" in shown

    @pytest.mark.usefixtures("clone")
    def test_it_prints_the_notes_and_the_commands_of_the_workflows_with_their_values(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["dry-run", *PUBLISHED, "1.2.0"])

        shown = capsys.readouterr().out
        printed = {line.strip().removeprefix("$ ").strip() for line in shown.splitlines()}
        assert "Release notes\n\n  ### Added\n\n  - Something new.\n\n  ### Image\n" in shown
        assert printed >= {
            'python3 -m release check --github -- "1.2.0"',
            "tags: ghcr.io/owner/docs-platform-action:1.2.0",
            f"subject-digest: {IMAGE.digest}",
            f'docker pull "{IMAGE}" || {{',
            f'commit=$(python3 -m release tag --image "{IMAGE.name}" --digest "{IMAGE.digest}" -- "1.2.0")',
            'git push origin "refs/tags/v1.2.0"',
            (
                'gh release "$action" "v1.2.0" --draft --verify-tag --title "v1.2.0" --notes-file "$RUNNER_TEMP/notes.md" '
                '"${flags[@]}"'
            ),
            'git push --force-with-lease="refs/tags/$major:$before" origin "HEAD:refs/tags/$major" || {',
        }
        assert [line for line in shown.splitlines() if "${{" in line and "matrix." not in line] == []

    def test_without_origin_it_passes_and_says_what_it_skipped(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        clone.git("remote", "remove", "origin")

        assert main(["dry-run", "1.2.0"]) == 0

        assert "skipped  There is no remote origin" in capsys.readouterr().out

    def test_a_refused_release_is_printed_to_the_end_and_fails(self, clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
        clone.write("new", "")

        assert main(["dry-run", "1.2.0"]) == 1

        shown = capsys.readouterr()
        assert "refused  Files are not committed: new. Commit or remove them." in shown.out
        assert "- Something new." in shown.out
        assert shown.err == "Error: 1 of 10 checks refuse this release. Each says above what to do.\n"

    @pytest.mark.parametrize("digest", ["sha256:123", "latest"])
    @pytest.mark.usefixtures("clone")
    def test_a_malformed_digest_is_refused(self, capsys: pytest.CaptureFixture[str], digest: str) -> None:
        assert main(["dry-run", "--digest", digest, "1.2.0"]) == 1

        assert "is not a digest" in capsys.readouterr().err

    def test_its_target_in_the_makefile_passes_the_version_and_the_digest_without_running_them(self, tmp_path: Path) -> None:
        made = tmp_path / "made"
        (tmp_path / "installed").touch()
        (tmp_path / "python").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
        (tmp_path / "python").chmod(0o755)
        make = ("make", "--no-print-directory", f"--directory={ROOT}", f"BIN={tmp_path}", f"INSTALLED={tmp_path / 'installed'}")
        version, digest = f"$(shell touch {made})`touch {made}`", f'"; touch {made}; "'

        command = [*make, "release-dry-run", f"VERSION={version}", f"DIGEST={digest}"]
        passed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

        assert passed == ["-m", "release", "dry-run", f"--digest={digest}", "--", version]
        assert not made.exists()


def verification(text: str) -> tuple[str, dict[str, str]]:
    """Return the image and the options of the command that verifies an attestation."""
    (command,) = re.findall(r"^gh attestation verify (.*?)\n```", text, re.MULTILINE | re.DOTALL)
    image, *options = command.replace("\\\n", " ").split()
    return image, dict(zip(options[::2], options[1::2], strict=True))


def without_hunks(text: str) -> str:
    """Return a text without the lines of a diff that git and Python write differently."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("  @@"))

"""Inputs.

What somebody reads whose workflow passes a wrong input, or one without an effect.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from errno import EACCES, ENOSPC, EROFS
from pathlib import Path
from typing import Final
from unittest.mock import patch

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import Reader
from docs_platform_action.text import clean
from tests.keys import ADMIN_KEY
from tests.wording.page import Sections, grouped

EXPORT: Final = {"base-url": "https://api.example.com", "admin-key": ADMIN_KEY, "domain": "docs.example.com"}
COLLECT: Final = {**EXPORT, "mode": "collect", "job-id": "se_1"}
AGENT: Final = {**EXPORT, "mode": "agent", "domain": "", "project-id": "prj_1", "job-id": "aj_1"}
SEVERAL: Final = {**EXPORT, "domain": "a.example.com\nb.example.com"}

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "mode": ("import",),
    "base-url": (
        *("api.example.com", "//api.example.com", "ftp://api.example.com", "https://", "https:///v1", "https:api.example.com"),
        *("https://api example.com", "https://api.example.com\nhttps://other.example.com", "https://münchen.example.com"),
        *("https://api.example.com:port", "https://api.example.com:99999", "https://[::1"),
        *("https://api.example.com:0", "https://api.example.com:", "https://a..example.com", "https://.example.com"),
        *("https://*.example.com", "https://<host>", "https://a|b.example.com", f"https://{'a' * 64}.example.com"),
        *("https://api.example.com\\@evil.example.com", "https://api.example.com\\evil", "http://api.example.com"),
        *("https://user:pa55word@api.example.com", "https://api.example.com?token=pa55word"),
        *("https://api.example.com/#pa55word", "https://user:pa55word@api.example.com:port"),
        *("https://user:pa55word@ api.example.com", "ftp://user:pa55word@api.example.com"),
    ),
    "admin-key": (
        *("first second", "first\nsecond", "first\tsecond", "first\0second", "first\x7fsecond", "firstésecond"),
        *("first\u200bsecond", "Bearer s3cr3t-key"),
    ),
    "domain": (
        *("https://docs.example.com", "https://docs.example.com/", "https://docs.example.com:8443/guide?x#y"),
        *("docs.example.com/guide", "docs.example.com.", "docs. example.com", "- docs.example.com", "https://"),
        *("https://user:pa55word@docs.example.com/", "docs.exa\u200bmple.com", "\ufeff\n\ufeff\n\ufeff", "/", "..."),
        *(
            "münchen.example.com",
            "https://straße.de:8443/weg",
            "👍.example.com",
            "docs。example.com",
            "docs\uff0fguide.example.com",
        ),
        *("-docs.example.com", "docs.example.com:0", "docs.example.com:99999", "docs.example.com\nDocs.Example.COM"),
        *("a.example.com, b.example.com:8443", "a.example.com,b.example.com:8443"),
        *("a.example.com b.example.com:8443", "a.example.com; b.example.com:8443", "https://a.example.com\nb.example.com/x"),
        *("docs\udcff.example.com", "\n".join(f"https://d{number}.example.com" for number in range(50))),
    ),
    "job-id": ("a\nb", "a\0b", "a\x85b", "a\x1bb"),
    "timeout": ("soon", "0s", "841h", f"{'9' * 400}"),
    "wait": ("yes", "x" * 1000),
    "start-options": (
        *("version=v2", "{", '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', "{'a': 1}", "[" * 100_000),
        *('{"a": ' + "9" * 5000 + "}", "[]", "1", '"x"', "null", "true", '{"domain": "other.example.com"}'),
    ),
    "max-parallel": ("0",),
    "min-pages": ("0",),
}
"""Values that are refused."""

PATHS: Final[Mapping[str, Mapping[str, str]]] = {
    "outside": {"site-path": "../site"},
    "outside, and long": {"site-path": "../" + "x" * 1000},
    "outside, through a link": {"site-path": "away/site"},
    "a control character": {"site-path": "a\nb"},
    "bytes that are not UTF-8": {"site-path": "a\udcff"},
    "a folder of a shell": {"site-path": "~/site"},
    "a variable": {"bundle-path": "$RUNNER_TEMP/bundle"},
    "a variable in braces": {"site-path": "${HOME}/site"},
    "a command": {"values-file": "$(pwd)/values.yaml"},
    "a variable of Windows": {"ca-bundle": "%TEMP%/ca.pem"},
    "a backslash": {"site-path": ".\\site"},
    "a circle of links": {"site-path": "circle"},
    "below a circle of links": {"site-path": "circle/site"},
    "a name that is too long": {"site-path": "x" * 256},
    "a path that is too long": {"site-path": "long/" * 1000},
    "a file in the path": {"bundle-path": "notes.txt/deeper/bundle"},
    "a folder in place of a file": {"bundle-path": "empty"},
    "a slash at the end of a file": {"bundle-path": "new/"},
    "a file in place of a folder": {"site-path": "notes.txt"},
    "a pipe in place of a folder": {"site-path": "pipe"},
    "a folder that is not empty": {"site-path": "full"},
    "the workspace": {"site-path": "."},
    "the temporary folder": {"site-path": "{temporary}"},
    "no `{domain}`": {**SEVERAL, "site-path": "site"},
    "`{domain}`, but no domain": {**COLLECT, "domain": "", "site-path": "sites/{domain}"},
    "the same mistake in the paths of many domains": {
        "domain": "\n".join(f"{letter}.example.com" for letter in "abcdefghijkl"),
        "site-path": "notes.txt/{domain}",
    },
    "overlapping paths": {"bundle-path": "out", "site-path": "out/site", "values-file": "out"},
    "overlapping paths of several domains": {**SEVERAL, "site-path": "{domain}", "values-file": "b.example.com/{domain}.yaml"},
    "the file of the outputs": {"bundle-path": "outputs.env", "site-path": "outputs.env/site"},
    "certificates that are not there": {"ca-bundle": "missing.pem"},
    "certificates in a folder": {"ca-bundle": "empty"},
    "certificates in a pipe": {"ca-bundle": "pipe"},
    "certificates behind a circle of links": {"ca-bundle": "circle"},
    "certificates outside": {"ca-bundle": "away/ca.pem"},
    "a file without certificates": {"ca-bundle": "notes.txt"},
}

TOGETHER: Final[Mapping[str, Mapping[str, str]]] = {
    "a pause that is longer than the longest": {"poll-interval": "10s", "max-poll-interval": "9s"},
    "a pause that is longer than the longest by default": {"poll-interval": "45s"},
    "a job in mode `export`": {"job-id": "se_1"},
    "a job and a project in mode `export`": {"job-id": "aj_1", "project-id": "prj_1"},
    "a job and several domains": {**COLLECT, "domain": "a.example.com\nb.example.com\nc.example.com"},
    "a version without a values file": {"export-version": "v1"},
    "the key in another input": {"domain": f"https://{ADMIN_KEY}.example.com/"},
    "several mistakes": {
        "admin-key": "",
        "timeout": "soon",
        "bundle-path": "empty",
        "site-path": "../site",
        "values-file": "a\0",
        "export-version": "\x1b",
        "mask-bundle-url": "perhaps",
    },
    "an unknown mode and the mistakes of several": {"mode": "import", "wait": "perhaps", "require-pr": "perhaps"},
}
MISSING: Final = {
    "nothing is set": ({}, "mode"),
    **{f"no `{name}`": (EXPORT, name) for name in EXPORT},
    "mode `collect`, no `job-id`": (COLLECT, "job-id"),
    **{f"mode `agent`, no `{name}`": (AGENT, name) for name in ("project-id", "job-id")},
    "an unknown mode, no `admin-key`": ({**EXPORT, "mode": "import"}, "admin-key"),
}
INEFFECTIVE: Final[Mapping[str, Mapping[str, str]]] = {
    "an input of mode `agent`": {"require-pr": "true"},
    "inputs of mode `export` alone": {**COLLECT, "wait": "false", "start-options": '{"version": "v2"}', "max-parallel": "5"},
    "inputs of modes `export` and `collect`": {
        **AGENT,
        "domain": "docs.example.com",
        "wait": "false",
        "start-options": '{"version": "v2"}',
        "bundle-path": "bundle",
        "site-path": "../anywhere",
        "min-pages": "100",
        "values-file": "values.yaml",
        "export-version": "v2",
        "mask-bundle-url": "true",
        "max-parallel": "5",
    },
    "a delivery without waiting": {
        "wait": "false",
        "bundle-path": "bundle",
        "site-path": "site",
        "min-pages": "100",
        "values-file": "values.yaml",
        "export-version": "v1",
    },
}
MISSPELT: Final = ("site-pth", "min_pages", "mask_bundle_url", "Job_ID", "maxParallel", "ünïcode")
OUTSIDE: Final[Mapping[str, Mapping[str, str]]] = {
    "an input with two values": {**COLLECT, "job_id": "se_2"},
    "two keys": {**COLLECT, "admin_key": "another-key"},
    "an input with one value, twice": {**COLLECT, "job_id": "se_1"},
    "a misspelled name": {**EXPORT, "min_page": "100"},
}
"""Inputs outside a workflow, where names may be written with underscores."""


def sections() -> Sections:
    """Return the errors of each input, of paths, of inputs together, and the warnings."""
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:  # a longer path would be shortened in the texts
        folder = Path(temporary)
        _prepare(folder / "workspace", folder / "temporary")
        values = {
            f"`{name}`": grouped({_shown(value): _read(folder, {**_base(name), name: value}) for value in VALUES[name]})
            for name in VALUES
        }
        return {
            **values,
            "Missing inputs": {what: _read(folder, {**base, name: ""}) for what, (base, name) in MISSING.items()},
            "Paths": grouped({what: _read(folder, {**EXPORT, **inputs}) for what, inputs in PATHS.items()}),
            "Folders and files that cannot be used": _of_the_system(folder),
            "Inputs together": {what: _read(folder, {**EXPORT, **inputs}) for what, inputs in TOGETHER.items()},
            "Inputs without an effect": {what: _read(folder, {**EXPORT, **inputs}) for what, inputs in INEFFECTIVE.items()},
            "Names that are not inputs": {
                **{name: _read(folder, {**EXPORT, name: "a value"}) for name in MISSPELT},
                "a name that is close to an input that is set": _read(folder, {**EXPORT, "domian": "a value"}),
                "two names": _read(folder, {**EXPORT, "site-pth": "a value", "min_pages": "a value"}),
                "a misspelled name of a required input": _read(folder, {**EXPORT, "domain": "", "domian": "a value"}),
                "several other names": _read(folder, {**EXPORT, "cache": "", "x" * 1000: "", f"{ADMIN_KEY}-x": ""}),
            },
            "Outside a workflow": {what: _read(folder, inputs, in_workflow=False) for what, inputs in OUTSIDE.items()},
        }


def _base(name: str) -> Mapping[str, str]:
    return COLLECT if name == "job-id" else EXPORT


def _shown(value: str) -> str:
    text = value if value.isprintable() else ascii(value)
    return text if len(text) <= 80 else f"{text[:60]}…"


def _read(
    folder: Path, inputs: Mapping[str, str], fault: AbstractContextManager[object] | None = None, *, in_workflow: bool = True
) -> str:
    """Return the error and the warnings for inputs."""
    environ = {f"INPUT_{name.upper()}": value.replace("{temporary}", str(folder / "temporary")) for name, value in inputs.items()}
    workspace = folder / "workspace"
    reader = Reader(environ, in_workflow=in_workflow)
    errors: list[str] = []
    try:
        with fault or nullcontext():
            reader.read(roots=(workspace, folder / "temporary"), env_file=workspace / "outputs.env")
    except InvalidInput as error:
        errors = [error.summary, *error.details]
    texts = [*reader.warnings, *errors]
    return "\n".join(clean(text.replace(str(folder), "/github"), max_length=10_000) for text in texts)


def _prepare(workspace: Path, temporary: Path) -> None:
    for made in (workspace / "empty", workspace / "full", temporary):
        made.mkdir(parents=True)
    (workspace / "notes.txt").touch()
    (workspace / "full" / "index.html").touch()
    os.mkfifo(workspace / "pipe")
    for link, target in {"away": "../..", "circle": "other", "other": "circle"}.items():
        (workspace / link).symlink_to(target)


def _of_the_system(folder: Path) -> dict[str, str]:
    def failing(number: int) -> AbstractContextManager[object]:
        return patch.object(tempfile, "TemporaryFile", side_effect=OSError(number, os.strerror(number)))

    full = OSError(ENOSPC, os.strerror(ENOSPC))
    with patch("docs_platform_action.errors.DENIED_BY", "what often denies it"):
        texts = {
            "a folder that is read-only": _read(folder, {**EXPORT, "bundle-path": "empty/a/bundle"}, failing(EROFS)),
            "a folder that denies access": _read(folder, {**EXPORT, "site-path": "site"}, failing(EACCES)),
            "a disk that is full": _read(
                folder, {**EXPORT, "site-path": "site"}, patch.object(tempfile, "TemporaryFile", side_effect=full)
            ),
            "certificates that cannot be read": _read(
                folder,
                {**EXPORT, "ca-bundle": "notes.txt"},
                patch.object(Path, "open", side_effect=PermissionError(EACCES, os.strerror(EACCES))),
            ),
        }
    (folder / "temporary").rmdir()
    texts["a temporary folder that does not exist"] = _read(folder, {**EXPORT, "bundle-path": "{temporary}/bundle"})
    return texts

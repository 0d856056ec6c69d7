"""Inputs.

What somebody reads whose workflow passes a wrong input, or one without an effect.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from errno import EACCES, EROFS
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import read_plan, unknown_inputs
from docs_platform_action.text import clean
from tests.keys import ADMIN_KEY
from tests.wording.page import Sections, grouped

EXPORT: Final = {"base-url": "https://api.example.com", "admin-key": ADMIN_KEY, "domain": "docs.example.com"}
AGENT: Final = {**EXPORT, "mode": "agent", "domain": "", "project-id": "prj_1", "job-id": "aj_1"}
SEVERAL: Final = {**EXPORT, "domain": "a.example.com\nb.example.com"}
ATTACHED: Final = {**EXPORT, "job-id": "se_1"}

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "mode": ("import",),
    "base-url": (
        *("api.example.com", "//api.example.com", "ftp://api.example.com", "https://", "https:///v1", "https:api.example.com"),
        *("https://api example.com", "https://api.example.com\nhttps://other.example.com", "https://münchen.example.com"),
        *("https://api.example.com:port", "https://api.example.com:99999", "https://[::1", "https://[api]"),
        *("https://api.example.com:0", "https://api.example.com:", "https://a..example.com", "https://.example.com"),
        *("https://*.example.com", "https://<host>", "https://a|b.example.com", f"https://{'a' * 64}.example.com"),
        *("https://api.example.com/a/../b", "https://api.example.com/a|b", "https://api.example.com/%zz"),
        *("https://api.example.com/a[b]", "https://api.example.com\\@evil.example.com", "http://api.example.com"),
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
        *("münchen.example.com", "straße.de", "STRAßE.De", "https://straße.de:8443/weg", "a_b.straße.de.", "βόλος.com"),
        *("\uff44\uff4f\uff43\uff53\u3002example\uff61com", "日本語。jp", "\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.com"),
        *("-docs.example.com", "docs.example.com:0", "docs.example.com:99999", "👍.example.com", "☃.example.com"),
        *("I♥docs.example.com", "ü-.example.com", "docs\uff0fguide.example.com", "ü\u200cb.example.com", "xn--ü.example.com"),
        *(f"{'ü' * 63}.example.com", "docs.\u0627a.example.com", "docs.example.com\nDocs.Example.COM"),
        *("a.example.com:443\na.example.com:0443", "a.example.com, b.example.com:8443", "a.example.com,b.example.com:8443"),
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
    "outside, through a link and back to its folder": {"site-path": "./a/../away/site"},
    "a control character": {"site-path": "a\nb"},
    "a link to a name with a control character": {"site-path": "plain/site"},
    "a circle of links": {"site-path": "circle"},
    "below a circle of links": {"site-path": "circle/site"},
    "a name that is too long": {"site-path": "x" * 256},
    "a path that is too long": {"site-path": "long/" * 1000},
    "a file in the path": {"bundle-path": "notes.txt/deeper/bundle"},
    "a folder in place of a file": {"bundle-path": "empty"},
    "a slash at the end of a file": {"bundle-path": "new/"},
    "a pipe in place of a file": {"bundle-path": "pipe"},
    "a file in place of a folder": {"site-path": "notes.txt"},
    "a pipe in place of a folder": {"site-path": "pipe"},
    "a folder that is not empty": {"site-path": "full"},
    "the workspace": {"site-path": "."},
    "the temporary folder": {"site-path": "{temporary}"},
    "no `{domain}`": {**SEVERAL, "site-path": "site"},
    "`{domain}`, but no domain": {**ATTACHED, "domain": "", "site-path": "sites/{domain}"},
    "the same mistake in the paths of many domains": {
        "domain": "\n".join(f"{letter}.example.com" for letter in "abcde"),
        "site-path": "notes.txt/{domain}",
    },
    "overlapping paths": {"bundle-path": "out", "site-path": "out/site", "values-file": "out"},
    "overlapping paths of several domains": {**SEVERAL, "site-path": "{domain}", "values-file": "b.example.com/{domain}.yaml"},
    "the file of the outputs": {"bundle-path": "outputs.env", "site-path": "outputs.env/site"},
    "certificates that are not there": {"ca-bundle": "missing.pem"},
    "certificates in a folder": {"ca-bundle": "empty"},
    "certificates in a pipe": {"ca-bundle": "pipe"},
    "a file without certificates": {"ca-bundle": "notes.txt"},
}

TOGETHER: Final[Mapping[str, Mapping[str, str]]] = {
    "a pause that is longer than the longest": {"poll-interval": "10s", "max-poll-interval": "9s"},
    "a pause that is longer than the longest by default": {"poll-interval": "45s"},
    "a job and several domains": {**SEVERAL, "domain": "a.example.com\nb.example.com\nc.example.com", "job-id": "se_1"},
    "a job and `wait: false`": {**ATTACHED, "wait": "false"},
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
    "an unknown mode and the mistakes of both": {"mode": "import", "wait": "perhaps", "require-pr": "perhaps"},
}
MISSING: Final = {
    "nothing is set": ({}, ""),
    **{f"no `{name}`": (EXPORT, name) for name in EXPORT},
    **{f"mode `agent`, no `{name}`": (AGENT, name) for name in ("project-id", "job-id")},
}
INEFFECTIVE: Final[Mapping[str, Mapping[str, str]]] = {
    "an input of mode `agent`": {"require-pr": "true"},
    "a project and a job": {**ATTACHED, "project-id": "prj_1"},
    "inputs of mode `export`": {
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
    "start options for a job that is started": {**ATTACHED, "start-options": '{"version": "v2"}'},
    "a version without a values file": {"export-version": "v1"},
    "a delivery without waiting": {
        "wait": "false",
        "bundle-path": "bundle",
        "site-path": "site",
        "min-pages": "100",
        "values-file": "values.yaml",
        "export-version": "v1",
    },
    "several of these": {**ATTACHED, "require-pr": "true", "start-options": '{"version": "v2"}', "export-version": "v1"},
}
UNKNOWN: Final = (
    *("site-pth", "domian", "max_parallel", "Job_ID", "bundle_pth", "domains", "baseurl", "api-key", "maxParallel", "cache"),
    *("ünïcode", "x" * 1000, f"{ADMIN_KEY}-x"),
)


def sections() -> Sections:
    """Return the errors of each input, of paths, of inputs together, and the warnings."""
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:  # a longer path would be shortened in the texts
        folder = Path(temporary)
        _prepare(folder / "workspace", folder / "temporary")
        values = {
            f"`{name}`": grouped({_shown(value): _read(folder, {**EXPORT, name: value}) for value in VALUES[name]})
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
                **{_shown(name).replace(ADMIN_KEY, "the key"): "\n".join(_warnings(name)) for name in UNKNOWN},
                "many": "\n".join(_warnings(*(f"x{number:02}" for number in range(50)))[-2:]),
            },
        }


def _shown(value: str) -> str:
    text = value if value.isprintable() else ascii(value)
    return text if len(text) <= 80 else f"{text[:60]}…"


def _read(folder: Path, inputs: Mapping[str, str], fault: AbstractContextManager[object] | None = None) -> str:
    """Return the error or the warnings for inputs."""
    environ = {f"INPUT_{name.upper()}": value.replace("{temporary}", str(folder / "temporary")) for name, value in inputs.items()}
    workspace = folder / "workspace"
    try:
        with fault or nullcontext():
            plan = read_plan(environ, roots=(workspace, folder / "temporary"), env_file=workspace / "outputs.env")
    except InvalidInput as error:
        texts = [error.summary, *error.details]
        return "\n".join(clean(text.replace(str(folder), "/github"), max_length=10_000) for text in texts)
    return "\n".join(plan.warnings)


def _prepare(workspace: Path, temporary: Path) -> None:
    for made in (workspace / "empty", workspace / "full", workspace / "two\nlines", temporary):
        made.mkdir(parents=True)
    (workspace / "notes.txt").touch()
    (workspace / "full" / "index.html").touch()
    os.mkfifo(workspace / "pipe")
    for link, target in {"away": "../..", "plain": "two\nlines", "circle": "other", "other": "circle"}.items():
        (workspace / link).symlink_to(target)


def _of_the_system(folder: Path) -> dict[str, str]:
    def failing(number: int) -> AbstractContextManager[object]:
        return patch.object(tempfile, "TemporaryFile", side_effect=OSError(number, os.strerror(number)))

    full = SimpleNamespace(f_blocks=1000, f_bavail=255, f_frsize=4096)
    with patch("docs_platform_action.inputs.paths.DENIED_BY", "what often denies it"):
        texts = {
            "a folder that is read-only": _read(folder, {**EXPORT, "bundle-path": "empty/a/bundle"}, failing(EROFS)),
            "a folder that denies access": _read(folder, {**EXPORT, "site-path": "site"}, failing(EACCES)),
            "a disk that is full": _read(folder, {**EXPORT, "site-path": "site"}, patch.object(os, "fstatvfs", lambda _: full)),
            "certificates that cannot be read": _read(
                folder,
                {**EXPORT, "ca-bundle": "notes.txt"},
                patch.object(Path, "open", side_effect=PermissionError(EACCES, os.strerror(EACCES))),
            ),
        }
    (folder / "temporary").rmdir()
    texts["a temporary folder that does not exist"] = _read(folder, {**EXPORT, "bundle-path": "{temporary}/bundle"})
    return texts


def _warnings(*names: str) -> list[str]:
    return unknown_inputs({"INPUT_ADMIN-KEY": ADMIN_KEY, **{f"INPUT_{name.upper()}": "a value" for name in names}})

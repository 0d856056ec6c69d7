"""Paths in inputs: inside the folders that outlive the container, and usable for what is written there."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

from ..errors import system_reason
from ..manifest import MAX_BYTES, FileDigests, read_manifest
from ..text import format_bytes, join_errors, quoted
from .settings import OutputPath

PROBE_BYTES: Final = 64 * 1024  # written to find out whether there is room
PLACEHOLDER: Final = "{domain}"
FETCH_AGAIN: Final = "fetch the manifest of the last publication"

T = TypeVar("T")


def resolve(value: str, roots: Sequence[Path]) -> OutputPath:
    """Return a path inside one of the `roots`; a relative path starts at the first. Raises `ValueError`."""
    path = Path(
        os.path.realpath(roots[0] / value)
    )  # not `resolve`, which raises for a circle of links before Python 3.13
    workspace, *others = [root.resolve() for root in roots]
    root = next((root for root in (workspace, *others) if path.is_relative_to(root)), None)
    if root is None:
        reason = "outside the workspace, so the container cannot share it; use a path inside the workspace"
        raise ValueError(f"{quoted(value)} leads to {quoted(str(path))}, which is {reason}")
    # a container cannot know where the temporary folder is on the runner, so that name is the container's own
    return OutputPath(
        path=path,
        root=root,
        name=str(path.relative_to(workspace)) if root == workspace else str(path),
    )


def resolve_each(
    value: str,
    roots: Sequence[Path],
    domains: Sequence[str | None],
    use: Callable[[str, OutputPath], T],
) -> list[T]:
    """Return what `use` makes of the path of each domain, which replaces `{domain}`. Raises `ValueError` with all errors."""
    if PLACEHOLDER in value and None in domains:
        missing = "neither `domain` nor a label in `project-id` is set"
        raise ValueError(f"contains {PLACEHOLDER}, but {missing}; set one, or remove {PLACEHOLDER}")
    if PLACEHOLDER not in value and len(domains) > 1:
        raise ValueError(f"must contain {PLACEHOLDER}, such as out/{PLACEHOLDER}")
    used, errors = [], []
    for domain in domains:
        path = value.replace(PLACEHOLDER, domain or "")
        try:
            used.append(use(path, resolve(path, roots)))
        except OSError as error:
            errors.append(f"{quoted(path)} cannot be used ({system_reason(error)})")
        except ValueError as error:
            errors.append(str(error))
    if errors:
        raise ValueError(join_errors(errors))
    return used


def writable(
    value: str, target: OutputPath, *, roots: Sequence[Path], is_folder: bool
) -> OutputPath:
    """Return a path that can be written to. Raises `ValueError` or `OSError` for another one."""
    path = target.path
    if not target.root.is_dir():
        raise ValueError(f"{quoted(value)} is in {quoted(str(target.root))}, which does not exist")
    folder = next((existing for existing in path.parents if existing.exists()), path)
    for part in path.relative_to(folder).parts:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            (
                folder / part
            ).stat()  # raises if a name is too long, and what `exists` hides in some versions of Python
    if not is_folder and (value.endswith("/") or (path.exists() and not path.is_file())):
        raise ValueError(f"{quoted(value)} is not the path of a regular file")
    if is_folder and path.exists():
        if path in {root.resolve() for root in roots} or path.is_mount():
            raise ValueError(f"{quoted(value)} cannot be replaced; use a folder inside it")
        if (found := next(path.iterdir(), None)) is not None:
            contents = f"it contains {quoted(found.name)}"
            raise ValueError(
                f"{quoted(value)} is not empty ({contents}); empty it in an earlier step, or use another folder"
            )
    try:
        # not `os.access`, which knows neither a server's own rules nor a quota
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        raise ValueError(
            f"the folder {quoted(folder.name)} cannot be written to ({system_reason(error)})"
        ) from None
    return target


def readable(value: str, target: OutputPath) -> OutputPath:
    """Return the path of a file that can be read. Raises `ValueError` or `OSError` for another one."""
    if not target.path.is_file():
        raise ValueError(
            f"{quoted(value)} {'is not a regular file' if target.path.exists() else 'does not exist'}"
        )
    target.path.open("rb").close()
    return target


def load_manifest(value: str, target: OutputPath, *, is_first: bool) -> Mapping[bytes, FileDigests]:
    """Return the digests in a manifest, which may be missing or empty only if `is_first`. Raises `ValueError` and `OSError`."""
    state = "does not exist"
    if target.path.exists():
        if not target.path.is_file() or target.path.stat().st_size > MAX_BYTES:
            raise ValueError(
                f"{quoted(value)} is not a regular file of at most {format_bytes(MAX_BYTES)}"
            )
        if data := target.path.read_bytes():
            try:
                return read_manifest(data)
            except ValueError as error:
                raise ValueError(
                    f"{quoted(value)} is not a complete manifest: {error}; {FETCH_AGAIN}"
                ) from None
        state = "is empty"
    if not is_first:
        advice = f"{FETCH_AGAIN}, or, if there is none yet, set `first-publication: true`"
        raise ValueError(f"{quoted(value)} {state}; {advice}")
    return {}


def overlaps(targets: Mapping[str, Sequence[OutputPath]]) -> list[tuple[str, str]]:
    """Return a name and an error for two names whose paths overlap."""
    every = sorted(
        ((path.path.parts, name, path.name) for name, paths in targets.items() for path in paths)
    )
    found = {  # sorted, a path is followed by those inside it
        (one, other): (
            other,
            f"{quoted(inner)} overlaps with {one}, {quoted(outer)}; use separate paths",
        )
        for (parts, one, outer), (inner_parts, other, inner) in pairwise(every)
        if inner_parts[: len(parts)] == parts
    }
    return [*found.values()]


def load_certificates(value: str, roots: Sequence[Path]) -> str:
    """Return the text of a PEM file inside one of the `roots`. Raises `ValueError`."""
    try:
        pem = readable(value, resolve(value, roots)).path.read_text("ascii", errors="ignore") + "\n"
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except ssl.SSLError:
        convert = "convert the certificate with `openssl x509 -in FILE -out ca.pem`"
        raise ValueError(
            f"{quoted(value)} contains no PEM certificate, or an invalid one; {convert}"
        ) from None
    except OSError as error:
        raise ValueError(f"{quoted(value)} cannot be read ({system_reason(error)})") from None
    return pem

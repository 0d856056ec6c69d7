"""Paths in inputs: inside the folders that outlive the container, and usable there."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ..errors import system_reason
from ..models import Manifest, OutputPath
from ..site.manifest import MAX_BYTES, read_manifest
from ..text import format_bytes, join_errors, quoted

PROBE_BYTES: Final = 64 * 1024  # written to find out whether there is room
PLACEHOLDER: Final = "{domain}"
FETCH_AGAIN: Final = "fetch the manifest of the last publication"

T = TypeVar("T")


def resolve(value: str, roots: Sequence[Path]) -> OutputPath:
    """Return a path inside one of the `roots`; a relative path starts at the first.

    Raises `ValueError`.
    """
    # not `Path.resolve`, which raises for a circle of links before Python 3.13
    path = Path(os.path.realpath(roots[0] / value))
    workspace = roots[0].resolve()
    for root in roots:
        resolved_root = root.resolve()
        if path.is_relative_to(resolved_root):
            # a container cannot know where the temporary folder is on the runner, so a path in it
            # is named as the container sees it
            is_in_workspace = resolved_root == workspace
            name = path.relative_to(workspace) if is_in_workspace else path
            return OutputPath(path=path, root=resolved_root, name=str(name))
    reason = "outside the workspace, so the container cannot share it"
    leads = f"{quoted(value)} leads to {quoted(str(path))}"
    raise ValueError(f"{leads}, which is {reason}; use a path inside the workspace")


def path_of_new_file(file: Path) -> OutputPath:
    """Return the path of a file to be created. A link at its place is replaced, not followed."""
    folder = Path(os.path.realpath(file.parent))
    return OutputPath(path=folder / file.name, root=folder, name=str(file))


def for_each_site(value: str, names: Sequence[str | None], use: Callable[[str], T]) -> list[T]:
    """Return what `use` makes of the path of each site, whose name replaces `{domain}`.

    Raises `ValueError` with the errors of all sites.
    """
    if PLACEHOLDER in value and None in names:
        missing = "neither `domain` nor a label in `project-id` is set"
        raise ValueError(f"contains {PLACEHOLDER}, but {missing}; set one, or remove {PLACEHOLDER}")
    if PLACEHOLDER not in value and len(names) > 1:
        raise ValueError(f"must contain {PLACEHOLDER}, such as out/{PLACEHOLDER}")
    used = []
    errors = []
    for name in names:
        path = value.replace(PLACEHOLDER, name or "")
        try:
            used.append(use(path))
        except OSError as error:
            errors.append(f"{quoted(path)} cannot be used ({system_reason(error)})")
        except ValueError as error:
            errors.append(str(error))
    if errors:
        raise ValueError(join_errors(errors))
    return used


def writable(value: str, roots: Sequence[Path], *, is_folder: bool = False) -> OutputPath:
    """Return a path that can be written to. Raises `ValueError` or `OSError` for another one."""
    target = resolve(value, roots)
    path = target.path
    if not target.root.is_dir():
        raise ValueError(f"{quoted(value)} is in {quoted(str(target.root))}, which does not exist")
    folder = _nearest_existing_parent(path)
    _check_parts(path, folder)
    if not is_folder and (value.endswith("/") or (path.exists() and not path.is_file())):
        raise ValueError(f"{quoted(value)} is not the path of a regular file")
    if is_folder and path.exists():
        _check_folder(value, path, roots)
    try:
        # not `os.access`, which knows neither a server's own rules nor a quota
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        reason = system_reason(error)
        fact = f"the folder {quoted(folder.name)} cannot be written to ({reason})"
        raise ValueError(fact) from None
    return target


def _nearest_existing_parent(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.exists())  # the root does


def _check_parts(path: Path, folder: Path) -> None:
    """Raise `OSError` if a part of the path below the folder is not usable, such as too long.

    Some versions of Python hide such errors in `exists`.
    """
    for part in path.relative_to(folder).parts:
        # each part by itself: the folders between do not exist yet
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            (folder / part).stat()


def _check_folder(value: str, path: Path, roots: Sequence[Path]) -> None:
    """Raise `ValueError` if a folder is in use."""
    is_root = path in {root.resolve() for root in roots}
    if is_root or path.is_mount():
        raise ValueError(f"{quoted(value)} cannot be replaced; use a folder inside it")
    content = next(path.iterdir(), None)
    if content is not None:
        fact = f"{quoted(value)} is not empty (it contains {quoted(content.name)})"
        raise ValueError(f"{fact}; empty it in an earlier step, or use another folder")


def readable(value: str, roots: Sequence[Path]) -> OutputPath:
    """Return the path of a file that can be read.

    Raises `ValueError` or `OSError` for another one.
    """
    target = resolve(value, roots)
    if not target.path.exists():
        raise ValueError(f"{quoted(value)} does not exist")
    if not target.path.is_file():
        raise ValueError(f"{quoted(value)} is not a regular file")
    target.path.open("rb").close()
    return target


def load_manifest(
    value: str,
    roots: Sequence[Path],
    *,
    is_first: bool,
) -> Manifest:
    """Return what a manifest lists. The file may be missing or empty only if `is_first`.

    Raises `ValueError` and `OSError`.
    """
    path = resolve(value, roots).path
    if not path.exists():
        return _no_manifest(f"{quoted(value)} does not exist", is_first=is_first)
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        limit = format_bytes(MAX_BYTES)
        raise ValueError(f"{quoted(value)} is not a regular file of at most {limit}")
    data = path.read_bytes()
    if not data:
        return _no_manifest(f"{quoted(value)} is empty", is_first=is_first)
    try:
        return read_manifest(data)
    except ValueError as error:
        fact = f"{quoted(value)} is not a complete manifest: {error}"
        raise ValueError(f"{fact}; {FETCH_AGAIN}") from None


def _no_manifest(fact: str, *, is_first: bool) -> Manifest:
    """Return an empty manifest for a first publication. Raises `ValueError` for a later one."""
    if is_first:
        return Manifest()
    advice = f"{FETCH_AGAIN}, or, if there is none yet, set `first-publication: true`"
    raise ValueError(f"{fact}; {advice}")


@dataclass(frozen=True, order=True)
class _Place:
    """A path and its input. Sorted, a folder is followed by what is inside it."""

    parts: tuple[str, ...]
    input_name: str
    path_name: str

    def contains(self, other: "_Place") -> bool:
        return other.parts[: len(self.parts)] == self.parts


def overlaps(targets: Mapping[str, Sequence[OutputPath]]) -> list[tuple[str, str]]:
    """Return a name and an error for each two names whose paths overlap."""
    places = []
    for name, paths in targets.items():
        places += [_Place(path.path.parts, name, path.name) for path in paths]
    errors = {}  # by both names: each domain has such paths
    outer: list[_Place] = []  # the paths around the current one
    for inner in sorted(places):
        while outer and not outer[-1].contains(inner):
            outer.pop()
        if outer:
            nearest = outer[-1]
            fact = f"overlaps with {nearest.input_name}, {quoted(nearest.path_name)}"
            text = f"{quoted(inner.path_name)} {fact}; use separate paths"
            errors[nearest.input_name, inner.input_name] = (inner.input_name, text)
        outer.append(inner)
    return [*errors.values()]


def load_certificates(value: str, roots: Sequence[Path]) -> str:
    """Return the text of a PEM file inside one of the `roots`. Raises `ValueError`."""
    try:
        path = readable(value, roots).path
        pem = path.read_text("ascii", errors="ignore") + "\n"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError:
        fact = f"{quoted(value)} contains no PEM certificate, or an invalid one"
        advice = "convert the certificate with `openssl x509 -in FILE -out ca.pem`"
        raise ValueError(f"{fact}; {advice}") from None
    except OSError as error:
        raise ValueError(f"{quoted(value)} cannot be read ({system_reason(error)})") from None
    return pem

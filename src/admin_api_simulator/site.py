"""The static site of an export, and its archive; both are reproducible."""

import gzip
import hashlib
import html
import io
import tarfile
import zipfile
from dataclasses import dataclass
from typing import Literal

ArchiveKind = Literal["tar.gz", "tar", "zip"]

STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}nav a{margin-right:1rem}\n"
SCRIPT = 'document.documentElement.dataset.ready = "true";\n'
MODIFIED_AT = 1_704_067_200  # 2024-01-01T00:00:00Z
MODIFIED_DATE = (2024, 1, 1, 0, 0, 0)
LARGE_FILE_BYTES = 1 << 20  # only the asset is so large; it cannot be compressed, and trying takes seconds


@dataclass(frozen=True, kw_only=True)
class SiteChange:
    """The numbers of pages that a site has more, with another text, and less than at first."""

    added: int = 0
    changed: int = 0
    removed: int = 0


UNCHANGED = SiteChange()


def site_files(
    *, domain: str, pages: int, asset_bytes: int = 0, change: SiteChange = UNCHANGED, build_id: str = ""
) -> dict[str, bytes]:
    """Return the site's files by path: pages, style, script, sitemap and, with `asset_bytes`, an incompressible file.

    The last pages are removed, and the first guides change. `build_id` is in the markup of every page, as on real platforms.
    """
    paths = ["index.html", *(f"guides/page-{number}/index.html" for number in range(2, pages - change.removed + 1))]
    paths += [f"guides/new-{number}/index.html" for number in range(1, change.added + 1)]
    files = {
        path: _page(
            domain=domain,
            number=number,
            next_path=paths[number % len(paths)],
            note="\n<p>This page was revised.</p>" if 1 < number <= 1 + change.changed else "",
            build_id=build_id,
        ).encode()
        for number, path in enumerate(paths, start=1)
    }
    files["assets/site.css"] = STYLE.encode()
    files["assets/site.js"] = SCRIPT.encode()
    files["sitemap.xml"] = _sitemap(domain=domain, paths=paths).encode()
    if asset_bytes:
        files["assets/video.bin"] = hashlib.shake_256(domain.encode()).digest(asset_bytes)
    return files


def build_archive(files: dict[str, bytes], kind: ArchiveKind) -> bytes:
    """Return an archive of files."""
    return _zip(files) if kind == "zip" else _tar(files, kind)


def _page(*, domain: str, number: int, next_path: str, note: str, build_id: str) -> str:
    root = "" if number == 1 else "../../"
    name = html.escape(domain)
    title = f"Welcome to {name}" if number == 1 else f"Guide {number}"
    build = f'<meta name="build-id" content="{build_id}">\n' if build_id else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'{build}<link rel="stylesheet" href="{root}assets/site.css">\n<script src="{root}assets/site.js" defer></script>\n'
        f'</head>\n<body>\n<nav><a href="{root}index.html">Home</a><a href="{root}{next_path}">Next</a></nav>\n'
        f"<h1>{title}</h1>\n<p>Page {number} of the documentation at {name}.</p>{note}\n</body>\n</html>\n"
    )


def _sitemap(*, domain: str, paths: list[str]) -> str:
    name = html.escape(domain)
    entries = "".join(f"  <url><loc>https://{name}/{path.removesuffix('index.html')}</loc></url>\n" for path in paths)
    opening = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{opening}{entries}</urlset>\n"


def _is_large(content: bytes) -> bool:
    return len(content) >= LARGE_FILE_BYTES


def _tar(files: dict[str, bytes], kind: ArchiveKind) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(content), MODIFIED_AT, 0o644
            archive.addfile(entry, io.BytesIO(content))
    if kind == "tar":
        return buffer.getvalue()
    level = 0 if any(map(_is_large, files.values())) else 6
    return gzip.compress(buffer.getvalue(), compresslevel=level, mtime=MODIFIED_AT)


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, MODIFIED_DATE)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if _is_large(content) else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()

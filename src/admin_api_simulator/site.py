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

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}"
    "nav a{margin-right:1rem}\n"
)
SCRIPT = 'document.documentElement.dataset.ready = "true";\n'
SCRIPT_PATH = f"_next/static/chunks/main-{hashlib.sha256(SCRIPT.encode()).hexdigest()[:16]}.js"
MODIFIED_AT = 1_704_067_200  # 2024-01-01T00:00:00Z
MODIFIED_DATE = (2024, 1, 1, 0, 0, 0)
# only the asset is so large; it cannot be compressed, and trying takes seconds
LARGE_FILE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SiteChange:
    """The numbers of pages that a site has more, with another text, and less than at first."""

    added: int = 0
    changed: int = 0
    removed: int = 0


UNCHANGED = SiteChange()


def site_files(
    *,
    domain: str,
    pages: int,
    asset_bytes: int = 0,
    change: SiteChange = UNCHANGED,
    build_id: str = "",
    base_path: str = "",
) -> dict[str, bytes]:
    """Return the site's files by path.

    They are pages, style, script, sitemap and, with `asset_bytes`, an incompressible file.

    As on real platforms, links have the extension `.html` and the sitemap's addresses have none,
    there is a page for missing addresses, the script's name has the hash of its content, and
    `build_id` is in the markup of every page. Links and assets begin with `base_path`. The last
    pages are removed, and the first guides change.
    """
    last_number = pages - change.removed
    paths = ["index.html"]
    paths += [f"guides/page-{number}.html" for number in range(2, last_number + 1)]
    paths += [f"guides/new-{number}.html" for number in range(1, change.added + 1)]
    files = {}
    for number, path in enumerate(paths, start=1):
        is_changed = 1 < number <= 1 + change.changed
        page = _page(
            domain=domain,
            number=number,
            next_path=paths[number % len(paths)],
            note="\n<p>This page was revised.</p>" if is_changed else "",
            build_id=build_id,
            base_path=base_path,
        )
        files[path] = page.encode()
    files["404.html"] = _not_found(domain=domain, build_id=build_id, base_path=base_path).encode()
    files["assets/site.css"] = STYLE.encode()
    files[SCRIPT_PATH] = SCRIPT.encode()
    files["sitemap.xml"] = _sitemap(domain=domain, paths=paths).encode()
    if asset_bytes:
        files["assets/video.bin"] = hashlib.shake_256(domain.encode()).digest(asset_bytes)
    return files


def build_archive(files: dict[str, bytes], kind: ArchiveKind) -> bytes:
    """Return an archive of files."""
    if kind == "zip":
        return _zip(files)
    tar = _tar(files)
    if kind == "tar":
        return tar
    has_large_file = any(_is_large(content) for content in files.values())
    level = 0 if has_large_file else 6
    return gzip.compress(tar, compresslevel=level, mtime=MODIFIED_AT)


def _page(
    *, domain: str, number: int, next_path: str, note: str, build_id: str, base_path: str
) -> str:
    name = html.escape(domain)
    title = f"Welcome to {name}" if number == 1 else f"Guide {number}"
    body = (
        f'<nav><a href="{base_path}/index.html">Home</a>'
        f'<a href="{base_path}/{next_path}">Next</a></nav>\n'
        f"<h1>{title}</h1>\n"
        f"<p>Page {number} of the documentation at {name}.</p>{note}\n"
    )
    return _document(title, body, build_id, base_path)


def _not_found(*, domain: str, build_id: str, base_path: str) -> str:
    here = f'<a href="{base_path}/index.html">here</a>'
    name = html.escape(domain)
    body = f"<h1>Page not found</h1>\n<p>The documentation at {name} starts {here}.</p>\n"
    return _document("Page not found", body, build_id, base_path)


def _document(title: str, body: str, build_id: str, base_path: str) -> str:
    build = ""
    if build_id:
        build = f'<meta name="build-id" content="{build_id}">\n'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n"
        f"{build}"
        f'<link rel="stylesheet" href="{base_path}/assets/site.css">\n'
        f'<script src="{base_path}/{SCRIPT_PATH}" defer></script>\n'
        f"</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _sitemap(*, domain: str, paths: list[str]) -> str:
    name = html.escape(domain)
    entries = ""
    for path in paths:
        address = path.removesuffix(".html").removesuffix("index")
        entries += f"  <url><loc>https://{name}/{address}</loc></url>\n"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{entries}</urlset>\n"
    )


def _is_large(content: bytes) -> bool:
    return len(content) >= LARGE_FILE_BYTES


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mtime = MODIFIED_AT
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, MODIFIED_DATE)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if _is_large(content) else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()

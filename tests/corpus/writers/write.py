"""Pack a folder with Python's tarfile or zipfile: python3 write.py KIND FOLDER > ARCHIVE."""

import io
import os
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

_FORMATS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT}
_METHODS = {"deflate": zipfile.ZIP_DEFLATED, "store": zipfile.ZIP_STORED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}


def main(kind: str, folder: str) -> None:
    """Write the archive to standard output."""
    os.chdir(folder)
    form, _, option = kind.partition("-")
    if form == "tar":
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|gz", format=_FORMATS[option]) as archive:
            for name in sorted(Path().iterdir()):
                archive.add(name)
    elif option == "stream":
        _write_zip(sys.stdout.buffer, zipfile.ZIP_DEFLATED)
    else:
        packed = io.BytesIO()
        _write_zip(packed, _METHODS[option])
        sys.stdout.buffer.write(packed.getvalue())


def _write_zip(file: io.BufferedIOBase, method: int) -> None:
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = b"made by Python"
        for path in _below(Path()):
            if path.is_symlink():
                link = zipfile.ZipInfo(str(path), (2024, 1, 1, 0, 0, 0))
                link.external_attr = (stat.S_IFLNK | 0o777) << 16
                archive.writestr(link, str(path.readlink()))
            elif path.is_dir():
                archive.write(path)
            else:
                entry = zipfile.ZipInfo.from_file(path)
                entry.compress_type = method
                with archive.open(entry, "w", force_zip64=True) as content:
                    content.write(path.read_bytes())


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Generates a documentation site from a seed: pages with a menu and prose that follows Zipf's law, and images."""

import random
import tarfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Final

SEED: Final = 20260504
LETTERS: Final = "etaoinshrdlucmfpgwybvk"
WORDS: Final = 6_000
PARAGRAPHS: Final = 6_000
IMAGES, PAGES = 0.05, 0.7
"""The shares of images, which cannot be compressed, and of pages, each in a folder of its own. The others are other texts."""
OWNER_ID: Final = 1001
"""The owner in the archive: the user ID of a hosted runner."""


def pack(archive: Path, files: int, size: int) -> None:
    """Pack a site of about `size` bytes as `.zip` or `.tar.gz`, depending on the name."""
    site = site_files(files, size)
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as into:
            for name, content in site:
                into.writestr(name, content)
        return
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        for name, content in site:
            member = tarfile.TarInfo(name)
            member.size, member.uid, member.gid = len(content), OWNER_ID, OWNER_ID
            tar.addfile(member, BytesIO(content))


def site_files(files: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of a site's files."""
    chance = random.Random(SEED)  # noqa: S311  # the same in every run, and no secret
    words = [
        "".join(chance.choices(LETTERS, range(len(LETTERS), 0, -1), k=chance.randint(2, 11)))
        for _ in range(WORDS)
    ]
    often = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    prose = [
        " ".join(chance.choices(words, cum_weights=often, k=chance.randint(30, 120)))
        for _ in range(PARAGRAPHS)
    ]
    links = "".join(
        f'<li class="menu__item"><a class="menu__link" href="/docs/{word}/">{word}</a></li>'
        for word in words[:60]
    )
    shares = [chance.lognormvariate(0, 0.7) for _ in range(files)]
    total = sum(shares)
    for number, share in enumerate(shares):
        word, length = words[number % WORDS], int(size * share / total)
        kind = chance.random()
        if files > 1 and kind < IMAGES:
            yield f"assets/{word}-{number}.png", chance.randbytes(length)
            continue
        parts = [f"<!doctype html><title>{word}</title><ul>{links}</ul>"[:length]]
        left = length - len(parts[0])
        while left > 0:
            text, cut = chance.choice(prose), chance.randrange(100)  # all paragraphs are different
            parts.append(
                f'<h2 id="{text[cut : cut + 9]}">{text[cut : cut + 20]}</h2><p>{text[cut:]} {text[:cut]}</p>\n'
            )
            left -= len(parts[-1])
        is_page = kind > 1 - PAGES
        name = (
            f"docs/{number // 40}/{word}-{number}/index.html"
            if is_page
            else f"assets/{word}-{number}.txt"
        )
        yield name, "".join(parts).encode()

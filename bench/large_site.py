"""Generates a documentation site from a seed.

It has pages with a menu and prose that follows Zipf's law, and images.
"""

import random
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Final

SEED: Final = 20260504
LETTERS: Final = "etaoinshrdlucmfpgwybvk"
WORDS: Final = 6_000
PARAGRAPHS: Final = 6_000
IMAGES: Final = 0.05
"""The share of images, which cannot be compressed."""
PAGES: Final = 0.7
"""The share of pages, each in a folder of its own. The files that are left are other texts."""
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
            member.size = len(content)
            member.uid = OWNER_ID
            member.gid = OWNER_ID
            tar.addfile(member, BytesIO(content))


def site_files(files: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of a site's files."""
    chance = random.Random(SEED)  # noqa: S311  # the same in every run, and no secret
    words = drawn_words(chance)
    prose = drawn_paragraphs(chance, words)
    links = "".join(
        f'<li class="menu__item"><a class="menu__link" href="/docs/{word}/">{word}</a></li>'
        for word in words[:60]
    )
    shares = [chance.lognormvariate(0, 0.7) for _ in range(files)]
    total = sum(shares)
    for number, share in enumerate(shares):
        word = words[number % WORDS]
        length = int(size * share / total)
        kind = chance.random()
        if files > 1 and kind < IMAGES:
            yield f"assets/{word}-{number}.png", chance.randbytes(length)
            continue
        if kind > 1 - PAGES:
            name = f"docs/{number // 40}/{word}-{number}/index.html"
        else:
            name = f"assets/{word}-{number}.txt"
        opening = f"<!doctype html><title>{word}</title><ul>{links}</ul>"
        yield name, drawn_text(chance, opening, prose, length).encode()


def drawn_words(chance: random.Random) -> list[str]:
    """Draw words, in which the first letters are the most frequent ones."""
    weights = range(len(LETTERS), 0, -1)
    words = []
    for _ in range(WORDS):
        length = chance.randint(2, 11)
        words.append("".join(chance.choices(LETTERS, weights, k=length)))
    return words


def drawn_paragraphs(chance: random.Random, words: Sequence[str]) -> list[str]:
    """Draw paragraphs, in which a word is the rarer, the higher its rank."""
    often = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    paragraphs = []
    for _ in range(PARAGRAPHS):
        length = chance.randint(30, 120)
        paragraphs.append(" ".join(chance.choices(words, cum_weights=often, k=length)))
    return paragraphs


def drawn_text(chance: random.Random, opening: str, prose: Sequence[str], length: int) -> str:
    """Return the opening and as many sections as it takes to reach a length."""
    parts = [opening[:length]]
    left = length - len(parts[0])
    while left > 0:
        paragraph = chance.choice(prose)
        cut = chance.randrange(100)  # makes all paragraphs different
        heading = f'<h2 id="{paragraph[cut : cut + 9]}">{paragraph[cut : cut + 20]}</h2>'
        section = f"{heading}<p>{paragraph[cut:]} {paragraph[:cut]}</p>\n"
        parts.append(section)
        left -= len(section)
    return "".join(parts)

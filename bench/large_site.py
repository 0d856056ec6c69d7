"""Generates a large documentation site from a seed: realistic pages, search indexes, scripts, styles and images.

The content resembles the output of static site generators: a head and a sidebar that all pages share, prose whose words follow
Zipf's law, code samples, and assets whose sizes have a long tail.
"""

import itertools
import json
import random
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

SEED: Final = 20260504
LETTERS: Final = "etaoinshrdlucmfpgwybvk"
WORDS: Final = 6_000
PHRASES: Final = 8_000
PARAGRAPHS: Final = 6_000
MARKUP_CHARACTERS: Final = 180
OWNER_ID: Final = 1001
"""The owner in the archive: the user ID of a hosted runner."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of file: its share of all files, the median of its size in bytes, and the sigma of that size."""

    ending: str
    share: float
    median_bytes: int
    tail: float


KINDS: Final = (
    Kind(ending="html", share=0.72, median_bytes=40_000, tail=0.55),
    Kind(ending="json", share=0.08, median_bytes=30_000, tail=1.1),
    Kind(ending="js", share=0.10, median_bytes=12_000, tail=1.2),
    Kind(ending="css", share=0.02, median_bytes=15_000, tail=0.8),
    Kind(ending="png", share=0.08, median_bytes=45_000, tail=1.1),
)


class Prose:
    """Words, paragraphs and the shared part of all pages, generated once."""

    def __init__(self, chance: random.Random) -> None:
        words = ["".join(chance.choices(LETTERS, range(len(LETTERS), 0, -1), k=chance.randint(2, 11))) for _ in range(WORDS)]
        by_rank = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
        phrases = [" ".join(chance.choices(words, cum_weights=by_rank, k=chance.randint(1, 6))) for _ in range(PHRASES)]
        often = list(itertools.accumulate(1 / rank for rank in range(1, PHRASES + 1)))
        self._chance = chance
        self.texts = [", ".join(chance.choices(phrases, cum_weights=often, k=chance.randint(8, 30))) for _ in range(PARAGRAPHS)]
        self.words = words
        links = (f'<li class="menu__item"><a class="menu__link" href="/docs/{word}/">{word}</a></li>' for word in words[:120])
        self.head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="stylesheet" href="/assets/main.css">'
        self.menu = f'<nav class="menu thin-scrollbar"><ul class="menu__list">{"".join(links)}</ul></nav><main><article>'
        self.end = '</article></main><script src="/assets/runtime.js" defer></script></body></html>\n'

    def _parts(self, size: int) -> Iterator[tuple[str, str]]:
        """Yield paragraphs up to a total number of characters."""
        made = 0
        while made < size:
            text, word = self._chance.choice(self.texts), self._chance.choice(self.words)
            cut = self._chance.randrange(len(text))  # all paragraphs are different
            made += len(text) + MARKUP_CHARACTERS
            yield f"{text[cut:]} {text[:cut]}", word

    def html(self, size: int) -> str:
        """Return a page, or a redirect page if the size is too small."""
        if size < len(self.menu):
            word = self._chance.choice(self.words)
            return f'{self.head}<meta http-equiv="refresh" content="0; url=/docs/{word}/"></head><body></body></html>\n'
        body = "".join(
            f'<h2 class="anchor anchorWithStickyNavbar" id="{word}">{word}<a href="#{word}" class="hash-link" '
            f'aria-label="Direct link to {word}" title="Direct link to {word}">\u200b</a></h2>\n<p>{text}</p>\n'
            if len(word) < 8
            else f'<p>{text}</p><div class="language-sh codeBlockContainer"><pre tabindex="0" '
            f'class="prism-code"><code><span class="token-line token plain">{word}</span></code></pre></div>\n'
            for text, word in self._parts(size - len(self.menu))
        )
        return f"{self.head}<title>{self._chance.choice(self.words)}</title></head><body>{self.menu}{body}{self.end}"

    def json(self, size: int) -> str:
        """Return a part of a search index."""
        return json.dumps([{"u": f"/docs/{word}/", "h": word, "t": text} for text, word in self._parts(size)])

    def js(self, size: int) -> str:
        """Return a chunk of a script."""
        return "".join(
            f'"use strict";(self.webpackChunk=self.webpackChunk||[]).push([[{len(text)}],{{{word}:(e,t,n)=>{{n.r(t);'
            f'const {word}={{toc:[]}};return n("{text[:120]}")}}}}]);'
            for text, word in self._parts(2 * size)
        )

    def css(self, size: int) -> str:
        """Return a style sheet."""
        return "".join(
            f".{word}_{len(text)}{{display:flex;margin:0 {len(text) % 9}px;color:var(--ifm-color-{text[:9].strip()})}}\n"
            for text, word in self._parts(6 * size)
        )


def site_files(files: int, size: int, *, seed: int = SEED) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of a site's files, whose total size is within 1 % of `size` bytes."""
    chance = random.Random(seed)  # noqa: S311  # the same in every run, and no secret
    prose = Prose(chance)
    kinds = chance.choices(KINDS, [kind.share for kind in KINDS], k=files)
    wanted = [kind.median_bytes * chance.lognormvariate(0, kind.tail) for kind in kinds]
    left, left_wanted = float(size), sum(wanted)
    for number, (kind, share) in enumerate(zip(kinds, wanted, strict=True)):
        target_bytes = max(int(share * left / left_wanted), 1)
        if kind.ending == "png":
            content = b"\x89PNG\r\n\x1a\n" + chance.randbytes(target_bytes)
        else:
            content = getattr(prose, kind.ending)(target_bytes).encode()
        left, left_wanted = left - len(content), left_wanted - share
        folder = f"docs/{prose.words[number // 40 % WORDS]}-{number // 40}" if kind.ending == "html" else f"assets/{kind.ending}"
        name = f"{folder}/{prose.words[number % WORDS]}-{number}"
        yield (f"{name}/index.html" if kind.ending == "html" else f"{name}.{kind.ending}"), content


def pack(archive: Path, files: int, size: int, *, level: int = 6) -> int:
    """Pack a site as `.tar.gz` or `.zip`, depending on the name, and return its unpacked size in bytes."""
    return (_pack_zip if archive.suffix == ".zip" else _pack_tar_gz)(archive, site_files(files, size), level)


def _pack_tar_gz(archive: Path, site: Iterator[tuple[str, bytes]], level: int) -> int:
    packed = 0
    with tarfile.open(archive, "w:gz", compresslevel=level) as tar:
        for name, content in site:
            member = tarfile.TarInfo(name)
            member.size, member.uid, member.gid = len(content), OWNER_ID, OWNER_ID
            tar.addfile(member, BytesIO(content))
            packed += len(content)
    return packed


def _pack_zip(archive: Path, site: Iterator[tuple[str, bytes]], level: int) -> int:
    packed = 0
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as into:
        for name, content in site:
            into.writestr(name, content)
            packed += len(content)
    return packed

"""The encoded forms of a secret, and the search for all of them."""

import base64
import functools
import html
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from docs_platform_action.text import clean, markdown

_MIN_IN_BASE64 = 8
"""Minimum characters of a base64 form. A shorter form, of a very short secret, also occurs in ordinary words."""

_HEX_SEPARATORS = re.compile(rb"0x(?=[0-9a-f]{2})|[:,._-]")
"""Separators that programs write between bytes in hex."""

_MAX_UNPACKED_BYTES = 4 * 2**20
"""Larger than any log or page of a run."""

_NUMBERS = {"HTML numbers": "&#{};", "HTML hex numbers": "&#x{:X};", "JSON numbers": "\\u{:04x}", "percent codes": "%{:02x}"}
"""Ways to write a character as its number."""

_JAVASCRIPT_LEAVES = "!'()*"
"""Characters that `encodeURIComponent` does not encode but Python's `quote` does (source: ECMA-262, section 19.2.6)."""


@functools.cache
def forms_of(secret: str) -> Mapping[str, bytes]:
    """Return the distinct forms that servers, encoders and our own writers make of a secret, by name.

    A base64 form is cut to the characters that do not depend on the neighboring bytes.
    """
    forms: dict[str, bytes] = {}
    for name, text in _forms(secret):
        form = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        if form and form not in forms.values():
            forms[name] = form
    return forms


def leaked(secret: str, text: str | bytes) -> list[str]:
    """Return the names of the forms of a secret that a text contains, in upper or lower case."""
    searched = (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).lower()
    return [name for name, form in forms_of(secret).items() if form.lower() in searched]


def leaked_in_part(key: str, text: str | bytes) -> list[str]:
    """Return the names of the forms of a key in a text, or else the forms of any 16 consecutive characters, wrapped or not."""
    searched = (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).lower()
    found = leaked(key, searched)
    if found or len(searched) > _MAX_UNPACKED_BYTES:  # only a bundle is this large
        return found
    joined = b"".join(searched.split())
    digits_alone = _HEX_SEPARATORS.sub(b"", joined)
    plain, base64s, digits = _parts_of(key)
    return [
        *(f"in part, {part!r}" for part in plain if part in searched),
        *(f"wrapped, {part!r}" for part in plain if part in joined and part not in searched),
        *(f"base64, {part!r}" for part in base64s if part in joined),
        *(f"hex, {part!r}" for part in digits if part in digits_alone),
    ]


@functools.cache
def _parts_of(key: str) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Return all parts of 16 characters of a key, and the base64 and hex pieces that identify such a part.

    16 bytes take at least 20 characters of base64; any 20 consecutive characters contain one of the pieces.
    """
    content = key.encode("utf-8", "surrogatepass").lower()
    if len(content) < _MIN_IN_BASE64:
        return [], [], []  # too short: ordinary words would match
    plain = _windows(content, 16, 1)
    whole = [form.lower() for name, form in forms_of(key).items() if name.startswith("base64")]
    return (
        plain,
        [part for form in whole for part in _windows(form, 12, 9)],
        _windows(key.encode("utf-8", "surrogatepass").hex().encode(), 32, 1),
    )


def _windows(content: bytes, length: int, step: int) -> list[bytes]:
    return [content[at : at + length] for at in range(0, len(content) - length + 1, step)] or [content]


def _forms(secret: str) -> Iterator[tuple[str, str | bytes]]:
    yield "unencoded", secret
    yield from _percent_forms(secret)
    yield "JSON", json.dumps(secret)[1:-1]
    yield "JSON with escaped slashes", json.dumps(secret)[1:-1].replace("/", r"\/")
    yield "JSON with non-ASCII characters", json.dumps(secret, ensure_ascii=False)[1:-1]
    yield "HTML", html.escape(secret)
    yield "HTML, decimal", html.escape(secret).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    yield "HTML, quotes as they are", html.escape(secret, quote=False)
    for name, number in _NUMBERS.items():
        yield name, "".join(character if character.isalnum() else number.format(ord(character)) for character in secret)
        yield f"{name} for all", "".join(number.format(ord(character)) for character in secret)
    yield "a log line", clean(secret)
    yield "Markdown", markdown(secret)
    yield "Markdown, inside a line", markdown(f"x{secret}x")[1:-1]
    yield "Python's repr", repr(secret)[1:-1]
    yield "Python's repr of bytes", repr(secret.encode("utf-8", "surrogatepass"))[2:-1]
    data = secret.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    yield "a workflow command's message", data
    yield "a workflow command's property", data.replace(":", "%3A").replace(",", "%2C")
    yield from _base64_forms(secret)
    yield "hex", secret.encode("utf-8", "surrogatepass").hex() if len(secret) >= _MIN_IN_BASE64 else ""
    for encoding in ("utf-16-le", "utf-16-be"):
        yield encoding.upper(), secret.encode(encoding, "surrogatepass")


def _percent_forms(secret: str) -> Iterator[tuple[str, str]]:
    encoded = quote(secret, safe="", errors="surrogatepass")
    yield "percent-encoded", encoded
    yield "percent-encoded, but slashes", quote(secret, safe="/", errors="surrogatepass")
    yield "percent-encoded as JavaScript does", quote(secret, safe=_JAVASCRIPT_LEAVES, errors="surrogatepass")
    yield "percent-encoded in a form", quote_plus(secret, errors="surrogatepass")
    yield "percent-encoded twice", quote(encoded, safe="")
    yield "percent-encoded three times", quote(quote(encoded, safe=""), safe="")


def _base64_forms(secret: str) -> Iterator[tuple[str, bytes]]:
    """Return the base64 of a secret at each of the three alignments, without the characters that depend on its neighbors."""
    content = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content)
        # a character has six bits, and may contain bits of a neighboring byte
        whole = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        if len(whole) >= _MIN_IN_BASE64:
            yield f"base64 after {before}", whole
            yield f"base64 for links after {before}", whole.translate(bytes.maketrans(b"+/", b"-_"))

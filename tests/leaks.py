"""The forms in which a secret must not be shown, and the search for them."""

import base64
import functools
import html
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import quote

from docs_platform_action.text import clean, markdown


def _numbered(number: str) -> Callable[[str], str]:
    return lambda secret: "".join(number.format(ord(character)) for character in secret)


ENCODERS: Final[Mapping[str, Callable[[str], str]]] = {
    "unencoded": str,
    "percent-encoded": lambda secret: quote(secret, safe=""),
    "percent-encoded, but slashes": quote,
    "percent codes for all": _numbered("%{:02x}"),
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON with escaped slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", r"\/"),
    "JSON numbers": _numbered("\\u{:04x}"),
    "HTML": html.escape,
    "HTML numbers": _numbered("&#{};"),
    "HTML hex numbers": _numbered("&#x{:X};"),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode().rstrip("="),
    "base64 for links": lambda secret: (
        base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    ),
}
"""The promised forms of the admin key, by name.

A server may write a whole key that consists of ASCII characters in any of them.
"""

_WRITERS: Final = (str, clean, lambda text: markdown(f"x{text}x")[1:-1])
"""How the action writes a foreign text: into an output, the log and the summary."""


@functools.cache
def forms_of(secret: str) -> Mapping[str, bytes]:
    """Return the different forms of a secret, by name."""
    forms: dict[str, bytes] = {}
    for name, encode in ENCODERS.items():
        form = encode(secret).encode()
        if form not in forms.values():
            forms[name] = form
    return forms


def leaked(secret: str, text: str | bytes) -> list[str]:
    """Return the names of the forms of a secret that a text contains.

    The text may have them in any way in which the action writes foreign texts.
    """
    searched = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    written = _written_forms(secret)
    return [name for name, forms in written.items() if _contains_any(searched, forms)]


def _contains_any(text: bytes, forms: Iterable[bytes]) -> bool:
    return any(form in text for form in forms)


@functools.cache
def _written_forms(secret: str) -> Mapping[str, set[bytes]]:
    written = {}
    for name, form in forms_of(secret).items():
        text = form.decode()
        written[name] = {write(text).encode() for write in _WRITERS}
    return written

"""Hides the admin key and the secrets of links in foreign text, and the queries of all addresses in it.

The runner masks the key in the log by itself. A server may echo it in another form, and the summary is not masked.
"""

import base64
import html
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

MIN_SECRET_LENGTH: Final = 8
"""Shortest key that makes a job's id or a link unusable, and shortest value of a link that is hidden."""

HIDDEN: Final = "***"
_CUT: Final = "…"  # in place of a query, or of a secret of a link

# parameters of signed links (source: documentation of Amazon S3, CloudFront, Google Cloud Storage and Azure Blob Storage)
_SECRET_PARAMETER: Final = re.compile(r"signature|credential|token|\Asig\Z", re.IGNORECASE)
_QUERY: Final = re.compile(
    r"""(https?:(?:\\?/){2}[^\s"<>?#]{0,2000}[?#])[^\s"<>]+""", re.IGNORECASE
)
_TOKEN: Final = re.compile(
    rf"""[^\s"'<>&=]{{{MIN_SECRET_LENGTH},}}=*"""
)  # what a secret of a link looks like
_AROUND: Final = "=.,:;!?()[]{}"  # may stand around a secret; its base64 may end with `=`


class Redactor:
    """Hides `keys` and the secrets of links. Safe to use from several threads."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        keys = sorted(filter(None, keys), key=len, reverse=True)  # one may contain another
        self._keys = _any_of(keys)
        self._long_keys = _any_of(key for key in keys if len(key) >= MIN_SECRET_LENGTH)
        self._link_secrets: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def add_link(self, url: str) -> None:
        """Hide the signature, the credential and the token of a link from now on."""
        parameters = [
            parameter.partition("=") for parameter in re.split("[&;]", urlsplit(url).query)
        ]
        values = {value for name, _, value in parameters if _SECRET_PARAMETER.search(unquote(name))}
        with self._lock:
            self._link_secrets |= {
                form.strip(_AROUND) for value in values for form in (value, unquote(value))
            } - {""}

    def hide(self, text: str) -> str:
        """Return a text for people: without keys, secrets of links, and queries of addresses."""
        return _TOKEN.sub(self._cut, _QUERY.sub(rf"\1{_CUT}", self.hide_key(text)))

    def _cut(self, token: re.Match[str]) -> str:
        secret = token[0].strip(_AROUND)
        return (
            re.sub(f"{re.escape(secret)}=*", _CUT, token[0])
            if secret in self._link_secrets
            else token[0]
        )

    def hide_key(self, text: str) -> str:
        """Return a text without keys."""
        return self._keys.sub(HIDDEN, text)

    def has_key(self, text: str) -> bool:
        """Return whether a text contains a key of at least `MIN_SECRET_LENGTH` characters."""
        return self._long_keys.search(text) is not None


def _any_of(keys: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for each key as it is, or in base64; any of its characters may be percent-, JSON- or HTML-encoded."""
    forms = ("".join(map(_encodings, form)) for key in keys for form in _in_base64(key))
    return re.compile("|".join(forms) or "(?!)")  # matches nothing if there is no key


def _in_base64(key: str) -> Iterator[str]:
    """Yield a key, and its base64 in both alphabets without the padding."""
    encoded = base64.b64encode(key.encode("utf-8", "replace")).decode().rstrip("=")
    yield from dict.fromkeys((key, encoded, encoded.translate(str.maketrans("+/", "-_"))))


def _encodings(character: str) -> str:
    code = ord(character)
    percent = "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "replace"))
    names = {character, html.escape(character), "&apos;" if character == "'" else character}
    escaped = [rf"\\{re.escape(character)}"] if character in '"\\/' else []
    literal = [
        *escaped,
        *sorted(map(re.escape, names), key=len, reverse=True),
    ]  # the longest first: it may begin with another one
    return f"(?:(?i:{percent}|\\\\u{code:04x}|&#0*{code};|&#x0*{code:x};)|{'|'.join(literal)})"

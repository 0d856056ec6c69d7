"""Hides the admin key, the secrets of links and the queries of all addresses in foreign text.

The runner masks the key in the log by itself. A server may echo it in another form, and the summary
is not masked.
"""

import base64
import html
import math
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

MIN_SECRET_LENGTH: Final = 8
"""The shortest key that makes a job's id or a link unusable.

Also the shortest value of a link that is hidden: a shorter one may be part of a word.
"""

HIDDEN: Final = "***"
_CUT: Final = "…"  # in place of a query, or of a secret of a link

# parameters of signed links (source: documentation of Amazon S3, CloudFront, Google Cloud Storage
# and Azure Blob Storage)
_SECRET_PARAMETER: Final = re.compile(r"signature|credential|token|\Asig\Z", re.IGNORECASE)
_QUERY: Final = re.compile(
    r"""(https?:(?:\\?/){2}[^\s"<>?#]{0,2000}[?#])[^\s"<>]+""", re.IGNORECASE
)
_URL_SAFE: Final = str.maketrans("+/", "-_")  # from the usual alphabet of base64


class Redactor:
    """Hides `keys` and the secrets of links. Safe to use from several threads."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        longest_first = sorted(keys, key=len, reverse=True)  # one may contain another
        self._keys = _any_of(longest_first, min_length=1)
        self._long_keys = _any_of(longest_first, min_length=MIN_SECRET_LENGTH)
        # longest first; replaced whole, so that any thread may read it
        self._link_secrets: Mapping[str, re.Pattern[str]] = {}
        self._lock = threading.Lock()

    def add_link(self, url: str) -> None:
        """Hide the signature, the credential and the token of a link from now on."""
        with self._lock:
            patterns = dict(self._link_secrets)
            for secret in _secrets_of(url):
                if secret not in patterns:
                    patterns[secret] = _link_secret_pattern(secret)
            longest_first = sorted(patterns, key=len, reverse=True)
            self._link_secrets = {secret: patterns[secret] for secret in longest_first}

    def hide(self, text: str) -> str:
        """Return a text for people: without keys, secrets of links, and queries of addresses."""
        without_keys = self.hide_key(text)
        hidden = _QUERY.sub(rf"\1{_CUT}", without_keys)
        # one by one, because each is searched by how it begins, which is fast
        for secret in self._link_secrets.values():
            hidden = secret.sub(_CUT, hidden)
        return hidden

    def hide_key(self, text: str) -> str:
        """Return a text without keys."""
        return self._keys.sub(HIDDEN, text)

    def has_key(self, text: str) -> bool:
        """Return whether a text contains a key of at least `MIN_SECRET_LENGTH` characters."""
        return self._long_keys.search(text) is not None


def _any_of(keys: Iterable[str], *, min_length: int) -> re.Pattern[str]:
    """Return a pattern for all forms of the keys that have at least this length."""
    patterns: list[str] = []
    for key in keys:
        if len(key) >= min_length:
            patterns.append(_text_pattern(key))
            patterns.extend(_token_pattern(form) for form in _base64_of(key))
    if not patterns:
        return re.compile("(?!)")  # matches nothing
    return re.compile("|".join(patterns))


def _base64_of(key: str) -> list[str]:
    """Return the base64 of a key in both alphabets without padding: alone, and in a longer text.

    A proxy may echo that of `Bearer KEY`. Where the key begins in a group of three bytes depends on
    the text before it, and so do characters at both ends, which are left out.
    """
    content = key.encode("utf-8", "replace")
    forms = [base64.b64encode(content).decode().rstrip("=")]
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        begin = math.ceil(before * 8 / 6)
        end = (before + len(content)) * 8 // 6
        if end - begin >= MIN_SECRET_LENGTH:
            forms.append(encoded[begin:end])
    forms += [form.translate(_URL_SAFE) for form in forms]
    return list(dict.fromkeys(forms))


def _secrets_of(url: str) -> set[str]:
    """Return the secret values of a link: as they are, decoded, and without a final padding."""
    secrets: set[str] = set()
    for parameter in re.split("[&;]", urlsplit(url).query):
        name, _, value = parameter.partition("=")
        if _SECRET_PARAMETER.search(unquote(name)):
            secrets.update([value.rstrip("="), unquote(value).rstrip("=")])
    return {secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH}


def _link_secret_pattern(secret: str) -> re.Pattern[str]:
    """Return a pattern for a secret of a link, and for the padding that base64 may end with."""
    return re.compile(f"{_token_pattern(secret)}{_character_pattern('=')}*")


def _token_pattern(text: str) -> str:
    """Return a pattern for a text, any of whose characters but letters and digits may be encoded.

    It is fast: nothing encodes those, unless it encodes all characters.
    """
    parts: list[str] = []
    for character in text:
        is_plain = character.isascii() and character.isalnum()
        parts.append(character if is_plain else _character_pattern(character))
    return "".join(parts)


def _text_pattern(text: str) -> str:
    """Return a pattern for a text, any of whose characters may be encoded."""
    return "".join(_character_pattern(character) for character in text)


def _character_pattern(character: str) -> str:
    """Return a pattern for a character as it is, or percent-, JSON- or HTML-encoded."""
    code = ord(character)
    percent = "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "replace"))
    forms = [f"(?i:{percent}|\\\\u{code:04x}|&#0*{code};|&#x0*{code:x};)"]
    if character in '"\\/':
        forms.append(rf"\\{re.escape(character)}")  # as in JSON
    if character == "'":
        forms.append("&apos;")
    entity = html.escape(character)
    if entity != character:
        forms.append(re.escape(entity))
    # last, because an entity may begin with the character itself: `&` and `&amp;`
    forms.append(re.escape(character))
    return f"(?:{'|'.join(forms)})"

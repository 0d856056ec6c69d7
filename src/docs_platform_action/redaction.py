"""Hides the admin key, the secrets of links and the queries of all addresses in foreign text.

The runner masks the key in the log by itself. A server may echo it in another form, and the summary
is not masked.
"""

import base64
import html
import re
import threading
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

MIN_SECRET_LENGTH: Final = 8
"""The shortest key that makes a job's id or a link unusable.

Also the shortest value of a link that is hidden.
"""

HIDDEN: Final = "***"
_CUT: Final = "…"  # in place of a query, or of a secret of a link

# parameters of signed links (source: documentation of Amazon S3, CloudFront, Google Cloud Storage
# and Azure Blob Storage)
_SECRET_PARAMETER: Final = re.compile(r"signature|credential|token|\Asig\Z", re.IGNORECASE)
_QUERY: Final = re.compile(
    r"""(https?:(?:\\?/){2}[^\s"<>?#]{0,2000}[?#])[^\s"<>]+""", re.IGNORECASE
)
# what a secret of a link looks like
_TOKEN: Final = re.compile(rf"""[^\s"'<>&=]{{{MIN_SECRET_LENGTH},}}=*""")
_AROUND: Final = "=.,:;!?()[]{}"  # may stand around a secret; its base64 may end with `=`


class Redactor:
    """Hides `keys` and the secrets of links. Safe to use from several threads."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        longest_first = sorted(keys, key=len, reverse=True)  # one may contain another
        self._keys = _any_of(longest_first, min_length=1)
        self._long_keys = _any_of(longest_first, min_length=MIN_SECRET_LENGTH)
        self._link_secrets: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def add_link(self, url: str) -> None:
        """Hide the signature, the credential and the token of a link from now on."""
        secrets: set[str] = set()
        for parameter in re.split("[&;]", urlsplit(url).query):
            name, _, value = parameter.partition("=")
            if _SECRET_PARAMETER.search(unquote(name)):
                secrets.add(value.strip(_AROUND))
                secrets.add(unquote(value).strip(_AROUND))
        secrets.discard("")  # of a parameter without a value
        with self._lock:
            self._link_secrets |= secrets

    def hide(self, text: str) -> str:
        """Return a text for people: without keys, secrets of links, and queries of addresses."""
        without_keys = self.hide_key(text)
        without_queries = _QUERY.sub(rf"\1{_CUT}", without_keys)
        return _TOKEN.sub(self._without_link_secret, without_queries)

    def _without_link_secret(self, token: re.Match[str]) -> str:
        secret = token[0].strip(_AROUND)
        if secret not in self._link_secrets:
            return token[0]
        return re.sub(f"{re.escape(secret)}=*", _CUT, token[0])

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
            patterns.extend(_text_pattern(form) for form in _forms_of(key))
    if not patterns:
        return re.compile("(?!)")  # matches nothing
    return re.compile("|".join(patterns))


def _forms_of(key: str) -> list[str]:
    """Return a key, and its base64 in both alphabets without the padding."""
    standard = base64.b64encode(key.encode("utf-8", "replace")).decode().rstrip("=")
    url_safe = standard.replace("+", "-").replace("/", "_")
    if url_safe == standard:
        return [key, standard]
    return [key, standard, url_safe]


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

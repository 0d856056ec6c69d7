"""Finds the secrets in a signed link: its signatures, credentials and tokens.

A parameter is secret when its name says so, or when its value looks random. The names are those of the signers of Amazon S3,
Google Cloud Storage, Azure Blob Storage, CloudFront, Cloudflare, Akamai, Alibaba Cloud, Tencent Cloud and nginx (source: their
documentation of signed URLs), and those that others commonly use. Secrets in the path are not recognized.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_plus, urlsplit

MIN_RANDOM_SECRET_LENGTH: Final = 16
"""Characters of a value that looks random, where its parameter's name does not say what it is."""

MIN_BARE_SECRET_LENGTH: Final = 8
"""Characters of a random query that has no name at all."""

_SECRET_WORDS: Final = frozenset(
    {
        *("sig", "sign", "signature", "hmac", "mac", "md5", "hash", "digest", "verify", "policy"),
        *("auth", "authorization", "credential", "credentials", "key", "secret", "password", "passwd", "pwd", "pass"),
        *("token", "jwt", "bearer", "sas", "ticket", "otp"),
        *("skoid", "sktid", "saoid", "suoid", "hdnts", "hdnea", "hdntl", "gda"),
    }
)
_IN_SECRET_NAMES: Final = re.compile(r"signature$|token$|secret|password|credential|api_?key|access_?(?:key|id|token)|hmac|jwt")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+")

_NOT_RANDOM: Final = re.compile(
    # a UUID, and a date with or without a time
    r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9:]+)?)?"
)
_CHANGE: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_FILE: Final = re.compile(r".*\.(?:tar|tgz|gz|bz2|xz|zst|zip|jar)", re.IGNORECASE | re.DOTALL)


class LinkSecret(NamedTuple):
    """A secret as it may be written, and the name of its parameter; without one, an empty name."""

    name: str
    value: str


def secrets_of(url: str) -> set[LinkSecret]:
    """Return the secrets of a link in each form in which they may be echoed: as they are, decoded, and encoded as a whole."""
    parts = urlsplit(url)
    password = parts.netloc.rpartition("@")[0].partition(":")[2]
    found = {LinkSecret("", password), *_secrets_in(parts.query)}
    return {LinkSecret(name, form) for name, value in found for form in _forms(value) if form}


def _secrets_in(query: str, *, nested: bool = False) -> Iterator[LinkSecret]:
    for parameter in re.split("[&;]", query):
        name, _, value = parameter.partition("=")
        if not value.strip("="):  # base64 ends with such
            if (
                len(name) >= MIN_BARE_SECRET_LENGTH
                and not _is_secret_name(name)
                and _looks_random(parameter, MIN_BARE_SECRET_LENGTH)
            ):
                yield LinkSecret("", parameter)
        elif _is_secret_name(name) and not _is_object_key(name, value):
            yield from _secrets_of_parameter(name, value)
        elif "?" in (decoded := unquote(value)) and not nested:
            yield from _secrets_in(decoded.partition("?")[2], nested=True)  # a link within the link
        elif _looks_random(decoded, MIN_RANDOM_SECRET_LENGTH):
            yield LinkSecret(name, value)


def _secrets_of_parameter(name: str, value: str) -> Iterator[LinkSecret]:
    yield LinkSecret(name, value)
    if "credential" in name.lower():
        yield LinkSecret(name, unquote(value).partition("/")[0])  # what follows is the scope: date, region and service
    for piece in unquote(value).split("~"):
        inner, is_named, inner_value = piece.partition("=")
        if is_named and _is_secret_name(inner):
            yield LinkSecret(inner, inner_value)


def _is_secret_name(name: str) -> bool:
    name = unquote(name)
    words = {word.lower() for word in (*_WORDS.findall(name), *_WORDS.findall(name.lower()))}
    return bool(words & _SECRET_WORDS or _IN_SECRET_NAMES.search(name.lower()))


def _is_object_key(name: str, value: str) -> bool:
    """Return whether this is the key of an object in a storage, which is its path."""
    return name.lower().endswith("key") and _FILE.fullmatch(unquote(value)) is not None


def _looks_random(value: str, shortest: int) -> bool:
    """Return whether letters of both cases and digits alternate as they do in a signature, but not in words, dates and UUIDs."""
    rest = _NOT_RANDOM.sub("", value)
    letters = sum(character.isalnum() for character in rest)
    if letters < shortest or _FILE.fullmatch(rest):
        return False
    return len(_CHANGE.findall(rest)) >= (max(4, letters / 5) if shortest == MIN_RANDOM_SECRET_LENGTH else 1)


def _forms(value: str) -> set[str]:
    decoded = unquote(value)
    # `value` encoded once more is how it stands in a link that is encoded as a whole
    encoded = {quote(decoded, safe=""), quote(decoded, safe="/"), quote(value, safe="")}
    lower_case = {re.sub("%..", lambda code: code[0].lower(), form) for form in encoded}
    return {value, decoded, unquote_plus(value), *encoded, *lower_case}

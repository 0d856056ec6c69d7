"""Finds the secrets in a signed link: its signatures, credentials and tokens. Secrets in the path are not recognized.

A parameter is secret when its name says so, or when its value looks random. The names are common ones and those of Amazon S3,
Google Cloud Storage, Azure Blob Storage, CloudFront, Cloudflare, Akamai, Alibaba Cloud, Tencent Cloud and nginx (source: their
documentation of signed URLs).
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

MAX_LINK_LENGTH: Final = 16 * 1024
"""Characters of a query that are searched for secrets. Storages reject longer links, and a run may get any number of them."""

MIN_RANDOM_SECRET_LENGTH: Final = 16
"""Shortest random value that is secret under a name that does not say so."""

MIN_BARE_SECRET_LENGTH: Final = 8
"""Shortest random value that is secret without a name."""

_SECRET_WORDS: Final = frozenset(
    {
        *("sig", "sign", "signature", "hmac", "mac", "md5", "hash", "digest", "verify", "policy"),
        *("auth", "authorization", "credential", "credentials", "key", "secret", "password", "passwd", "pwd", "pass"),
        *("token", "jwt", "bearer", "sas", "ticket", "otp"),
        *("skoid", "sktid", "saoid", "suoid", "hdnts", "hdnea", "hdntl", "gda"),
    }
)
_SECRET_NAME: Final = re.compile(r"signature$|token$|secret|password|credential|api_?key|access_?(?:key|id|token)|hmac|jwt")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+")

_NOT_RANDOM: Final = re.compile(
    # a UUID, and a date with or without a time
    r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9:]+)?)?"
)
_ALTERNATION: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_ARCHIVE_NAME: Final = re.compile(r".*\.(?:tar|tgz|gz|bz2|xz|zst|zip|jar)", re.IGNORECASE | re.DOTALL)


class LinkSecret(NamedTuple):
    """A secret and its parameter's name, which may be empty."""

    name: str
    value: str


def secrets_of(url: str) -> set[LinkSecret]:
    """Return the secrets of a link as it has them, which may be percent-encoded."""
    parts = urlsplit(url)
    user, password = ((text or "")[:MAX_LINK_LENGTH] for text in (parts.username, parts.password))
    # the user's name is before the password, like a parameter's before its value
    return {secret for secret in (LinkSecret(user, password), *_secrets_in(parts.query[:MAX_LINK_LENGTH])) if secret.value}


def _secrets_in(query: str, *, nested: bool = False) -> Iterator[LinkSecret]:
    for parameter in re.split("[&;]", query):
        name, _, value = parameter.partition("=")
        is_secret_name = _is_secret_name(name)
        if not value.strip("="):  # base64 may end with `=`
            if len(name) >= MIN_BARE_SECRET_LENGTH and not is_secret_name and _looks_random(parameter, MIN_BARE_SECRET_LENGTH):
                yield LinkSecret("", parameter)
        elif is_secret_name and not _is_object_key(name, value):
            yield from _secrets_of_parameter(name, value)
        elif "?" in (decoded := unquote(value)) and not nested:
            yield from _secrets_in(decoded.partition("?")[2], nested=True)
        elif _looks_random(decoded, MIN_RANDOM_SECRET_LENGTH):
            yield LinkSecret(name, value)


def _secrets_of_parameter(name: str, value: str) -> Iterator[LinkSecret]:
    yield LinkSecret(name, value)
    if "credential" in name.lower():
        yield LinkSecret(name, unquote(value).partition("/")[0])  # without its scope: date, region, service
    for piece in unquote(value).split("~"):  # Akamai's fields
        inner_name, separator, inner_value = piece.partition("=")
        if separator and _is_secret_name(inner_name):
            yield LinkSecret(inner_name, inner_value)


def _is_secret_name(name: str) -> bool:
    name = unquote(name)
    words = {word.lower() for word in (*_WORD.findall(name), *_WORD.findall(name.lower()))}
    return bool(words & _SECRET_WORDS or _SECRET_NAME.search(name.lower()))


def _is_object_key(name: str, value: str) -> bool:
    """Return whether the value is an object's key in a storage: a path, not a secret."""
    return name.lower().endswith("key") and _ARCHIVE_NAME.fullmatch(unquote(value)) is not None


def _looks_random(value: str, min_length: int) -> bool:
    """Return whether upper case, lower case and digits alternate as in a signature, but not as in words, dates and UUIDs."""
    rest = _NOT_RANDOM.sub("", value)
    count = sum(character.isalnum() for character in rest)
    if count < min_length or _ARCHIVE_NAME.fullmatch(rest):
        return False
    return len(_ALTERNATION.findall(rest)) >= (max(4, count / 5) if min_length == MIN_RANDOM_SECRET_LENGTH else 1)

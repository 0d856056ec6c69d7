"""Web addresses from outside: which are valid, and which may be used without encryption."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from .text import UNUSABLE

# URL parsers differ in how they read a host with one of these
_AMBIGUOUS_HOST: Final = re.compile(r"""\\|[%<>"^`{|}][^@]*\Z""")


def is_web_address(url: str) -> bool:
    """Return whether a URL is an absolute http or https address.

    It must not contain white space or control characters.
    """
    if UNUSABLE.search(url) or re.search(r"\s", url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"}:
        return False
    if not host or port == 0:
        return False
    return not _AMBIGUOUS_HOST.search(parts.netloc)


def is_bundle_url(url: str) -> bool:
    """Return whether a bundle may be downloaded from a URL: https, or http from this machine."""
    if not is_web_address(url):
        return False
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Return whether a host name or IP address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

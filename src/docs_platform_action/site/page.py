"""The pages of a site, and the digest of a page's text."""

import hashlib
import re
from typing import Final

MAX_PAGE_BYTES: Final = 8 * 1024**2  # of a page whose text has a digest

# Closing tags are first, because half of all tags are closing tags. No match gives back what it
# has read, so the time is always linear.
_HIDDEN: Final = re.compile(
    rb"""
      </[^>]*+>?  # a closing tag

    | <!--(?: -?>  # an empty comment
          | [^-]*+ (?: -(?!-!?>) [^-]*+ )*+ (?: --!?> )?  # or a comment up to its end
      )

    | <(script|style|template|noscript)(?=[\s/>])  # an element whose content is not shown
      [^<]*+ (?: <(?!/\1[\s/>]) [^<]*+ )*+  # up to its own closing tag
      (?: <[^>]*+>? )?

    | <[a-z!?][^>=]*+  # any other tag
      (?: =\s*+ (?: "[^"]*+"? | '[^']*+'? )? [^>=]*+ )*+  # whose attributes may contain `>`
      >?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WHITE_SPACE: Final = bytes.maketrans(b"\t\n\v\f\r", b"     ")
_SPACES: Final = re.compile(rb"  +")


def is_page(path: bytes) -> bool:
    """Return whether a file is a page of the site."""
    return path.lower().endswith(b".html")


def text_digest(page: bytes) -> bytes:
    """Return the digest of what a reader sees of a page."""
    return hashlib.sha256(text_of(page)).digest()


def text_of(page: bytes) -> bytes:
    """Return what a reader sees of a page.

    Comments, tags, repeated spaces, and the elements `script`, `style`, `template` and `noscript`
    are left out.
    """
    text = _HIDDEN.sub(b"", page).translate(_WHITE_SPACE)
    if b"  " in text:
        text = _SPACES.sub(b" ", text)
    return text

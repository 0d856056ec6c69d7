"""The addresses of operations."""

import re
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, kw_only=True)
class Route:
    """The method and path of an operation; `{}` in the path stands for one segment."""

    operation: str
    method: str
    path: str

    def match(self, path: str) -> list[str] | None:
        """Return the decoded segments in place of `{}`, or None for another path."""
        pattern = re.escape(self.path).replace(r"\{\}", "([^/]+)")
        found = re.fullmatch(pattern, path)
        # Clients and proxies resolve a plain dot segment; only an encoded one can be an id.
        if found is None or any(segment in (".", "..") for segment in found.groups()):
            return None
        return [unquote(segment) for segment in found.groups()]

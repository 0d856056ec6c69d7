"""A request, as the layers above describe it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(kw_only=True)
class Request:
    """A request, and whether the server may have processed it.

    `url` is absolute, or is what follows a base URL; `body` is sent as JSON. `maybe_processed` is set as soon as there is a
    connection. The caller clears it when the response, or the lack of one, shows that the server did not process the request.
    """

    method: str
    url: str
    body: Mapping[str, object] | None = None
    maybe_processed: bool = False

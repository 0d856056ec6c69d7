"""A certificate authority for the simulator's `https`."""

import ssl
from pathlib import Path


def serve_tls(host: str, *, ca_file: Path) -> ssl.SSLContext:
    """Make an authority, write its PEM file, and return a server's context.

    The server is at a host and the loopback names. Raises OSError if the file cannot be written,
    and ModuleNotFoundError without the package trustme.
    """
    import trustme  # needed for TLS only

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    names = sorted({host, "127.0.0.1", "::1", "localhost"})
    authority.issue_cert(*names).configure_cert(context)
    return context

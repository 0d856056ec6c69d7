"""A certificate authority for the simulator's `https`."""

import ssl
from pathlib import Path


def serve_tls(host: str, *, ca_file: Path) -> ssl.SSLContext:
    """Make an authority, write its PEM file, and return the context of a server at a host and the loopback names.

    Raises OSError if the file cannot be written, and ModuleNotFoundError without the package trustme.
    """
    import trustme  # needed for TLS only

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*sorted({host, "127.0.0.1", "::1", "localhost"})).configure_cert(context)
    return context

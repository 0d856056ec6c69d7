"""A certificate authority for the simulator's `https`."""

import ssl
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """The server's TLS context, and the PEM file of the authority for clients."""

    server_context: ssl.SSLContext
    ca_path: Path
    folder: tempfile.TemporaryDirectory[str] | None

    def remove(self) -> None:
        """Delete the authority's file."""
        self.ca_path.unlink(missing_ok=True)
        if self.folder is not None:
            self.folder.cleanup()


def make_certificates(host: str, *, ca_file: Path | None = None) -> Certificates:
    """Make an authority and a certificate for a host and the loopback names.

    The authority's PEM file is `ca_file`, or a temporary one. Raises OSError if it cannot be written, and ModuleNotFoundError
    without the package trustme.
    """
    try:
        import trustme  # needed for TLS only
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"TLS needs the package trustme: {sys.executable} -m pip install trustme") from error

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*sorted({host, "127.0.0.1", "::1", "localhost"})).configure_cert(context)
    folder = None if ca_file else tempfile.TemporaryDirectory(prefix="admin-api-simulator-")
    ca_path = ca_file or Path(folder.name if folder else "") / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_path))
    return Certificates(server_context=context, ca_path=ca_path, folder=folder)

"""A certificate authority of the simulator's own, for `https` without a public one."""

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """The server's side of TLS, and the PEM file of the authority that clients need."""

    server_context: ssl.SSLContext
    ca_path: Path
    folder: tempfile.TemporaryDirectory[str]

    def remove(self) -> None:
        """Remove the authority's file."""
        self.folder.cleanup()


def make_certificates(host: str) -> Certificates:
    """Make an authority and a certificate for a host and the loopback names; needs the package trustme."""
    import trustme  # here, because the simulator works without it as long as nobody asks for TLS

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*sorted({host, "127.0.0.1", "::1", "localhost"})).configure_cert(context)
    folder = tempfile.TemporaryDirectory(prefix="admin-api-simulator-")
    ca_path = Path(folder.name) / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_path))
    return Certificates(server_context=context, ca_path=ca_path, folder=folder)

"""Certificate authorities as people make them with openssl. Their certificates lack extensions that Python 3.13 requires.

trustme's authorities have every extension that RFC 5280 requires, so they cannot test this.
"""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CONFIG: Final = """
[req]
distinguished_name = subject
prompt = no
{options}
[subject]
CN = {name}
[extensions]
{extensions}
"""
_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

ROOTS: Final = {
    "no key usage": "basicConstraints = critical, CA:TRUE\nsubjectKeyIdentifier = hash\n",
    "basic constraints that are not critical": "basicConstraints = CA:TRUE\n",
    "key usage that is not critical": "basicConstraints = CA:TRUE\nkeyUsage = keyCertSign\nsubjectKeyIdentifier = hash\n",
}
"""Extensions of roots that curl and OpenSSL trust with their defaults."""


@dataclass(frozen=True, kw_only=True)
class Authority:
    """A certificate authority and its folder; `certificate` is its PEM file."""

    folder: Path
    certificate: Path
    key: Path

    def issue(self, address: str) -> ssl.SSLContext:
        """Return the TLS context of a server at an IP address."""
        config, request, added = (self.folder / f"{address}.{kind}" for kind in ("cnf", "csr", "ext"))
        certificate, key = self.folder / f"{address}.pem", self.folder / f"{address}.key"
        config.write_text(_CONFIG.format(options="", name="Server", extensions=""))
        added.write_text(f"subjectAltName = IP:{address}\n")
        _openssl("req", "-new", *_KEY, "-keyout", key, "-out", request, "-config", config)
        signer = ("-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *signer, "-out", certificate, "-days", "30", "-extfile", added)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context


def make_root(folder: Path, extensions: str) -> Authority:
    """Make a root with `openssl req -x509` whose certificate has only the given extensions."""
    config, certificate, key = folder / "root.cnf", folder / "root.pem", folder / "root.key"
    config.write_text(_CONFIG.format(options="x509_extensions = extensions", name="Root", extensions=extensions))
    _openssl("req", "-x509", *_KEY, "-keyout", key, "-out", certificate, "-config", config, "-days", "30")
    return Authority(folder=folder, certificate=certificate, key=key)


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

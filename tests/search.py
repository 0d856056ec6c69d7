"""Keeps what tests bring about, and searches it when a test has ended: for the key, and for what opens a bundle's link.

Both belong to few places. The key is in the `Authorization` of requests to the API, and once in the log, in the command that has
the runner mask it, which the runner takes out. A link's query is in the outputs, in the Helm values file, and in requests to
the storage.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest, Recorder
from tests.keys import ADMIN_KEY
from tests.leaks import leaked, leaked_in_part

OURS = "docs-platform-action/"
"""How the `User-Agent` of a request begins that the action itself made."""

_MASK = re.compile(r"^::add-mask::(.*)\n?", re.MULTILINE)
_SIGNATURE = re.compile(r"X-Amz-Signature=([0-9a-f]{64})")
_PRINTED = re.compile(r"^(?:bundleUrl|results)(?:=.*\n?|<<(\S+)\n.*\n\1$)", re.MULTILINE)
"""Outputs where there is no runner to hand them to, or where `GITHUB_OUTPUT` is a stream of the process."""

_MAY_HOLD_LINKS = re.compile(r"(?:output|set_output_.*)")
"""Names of the files that may: what `GITHUB_OUTPUT` names, and act's own of it."""

_VALUES = b"# Static export"
"""How a Helm values file begins, whatever its name."""


@dataclass(frozen=True, kw_only=True)
class _Text:
    where: str
    text: str
    holds_links: bool


@dataclass
class Search:
    """What one test has brought about."""

    keys: set[str] = field(default_factory=lambda: {ADMIN_KEY})
    signatures: set[str] = field(default_factory=set)
    texts: list[_Text] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)

    def clear(self) -> None:
        """Begin anew."""
        self.__init__()  # type: ignore[misc]

    def remember(self, text: str, *, where: str = "a text", holds_links: bool = False) -> None:
        """Keep a text that people or later steps would see; outputs alone hold links."""
        self.texts.append(_Text(where=where, text=text, holds_links=holds_links))

    def found(self, folder: Path | None) -> list[str]:
        """Return what is where it does not belong: in everything that was kept, and in the files of a folder."""
        return [*self._in_texts(), *self._in_requests(), *(self._in_files(folder) if folder else ())]

    def _in_texts(self) -> Iterator[str]:
        for kept in self.texts:
            for key in self.keys:
                for form in leaked_in_part(key, without_mask(kept.text, key)):
                    yield f"{kept.where} holds the key, {form}"
            if kept.holds_links:
                self.signatures.update(_SIGNATURE.findall(kept.text))  # those of a run that is older than the test
        for kept in self.texts:
            if not kept.holds_links:
                yield from self._links_in(_PRINTED.sub("", _MASK.sub("", kept.text)).encode("utf-8", "surrogatepass"), kept.where)

    def _links_in(self, content: bytes, where: str) -> Iterator[str]:
        for signature in self.signatures:
            for form in leaked(signature, content):
                yield f"{where} holds a link's signature, {form}"

    def _in_requests(self) -> Iterator[str]:
        for request in self.requests:
            if not request.headers.get("User-Agent", "").startswith(OURS):
                continue  # a test's own
            to_storage = request.operation == "download"
            where = f"a request to the {'storage' if to_storage else 'API'}, {request.method} {request.path},"
            headers = {name: text for name, text in request.headers.items() if to_storage or name.lower() != "authorization"}
            if to_storage and "Authorization" in request.headers:
                yield f"{where} holds an Authorization"
            shown = f"{request.path}?{request.query}\n{headers}\n".encode("utf-8", "surrogateescape") + request.body
            for key in self.keys:
                for form in leaked_in_part(key, shown):
                    yield f"{where} holds the key, {form}"
            if not to_storage:
                yield from self._links_in(shown, where)

    def _in_files(self, folder: Path) -> Iterator[str]:
        searched: set[int] = set()
        for file in folder.rglob("*"):
            # a file that a test wrote to hold the key, as GitHub's store of secrets does
            if not file.is_file() or file.is_symlink() or file.suffix == ".secret":
                continue
            if (inode := file.stat().st_ino) in searched:  # a hard link
                continue
            searched.add(inode)
            content, where = file.read_bytes(), str(file.relative_to(folder))
            for key in self.keys:
                for form in leaked_in_part(key, content):
                    yield f"{where} holds the key, {form}"
            if not _MAY_HOLD_LINKS.fullmatch(file.name) and not content.startswith(_VALUES):
                yield from self._links_in(content, where)


def without_mask(log: str, key: str) -> str:
    """Take the command out of a log that masks the key: it is there once at most, as the runner reads it."""
    written = key.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return re.sub(rf"^::add-mask::{re.escape(written)}$", "", log, count=1, flags=re.MULTILINE)


SEARCH = Search()
"""That of the test that runs."""


def watch(patch: Callable[[object, str, object], None]) -> None:
    """Have every simulator tell of the links that it signs, and of the requests that reach it."""
    sign, add = LinkSigner.sign, Recorder.add

    def sign_and_tell(self: LinkSigner, **about: str) -> object:
        query, expires_at = sign(self, **about)
        SEARCH.signatures.update(parse_qs(query)["X-Amz-Signature"])
        return query, expires_at

    def add_and_tell(self: Recorder, request: RecordedRequest) -> int:
        SEARCH.requests.append(request)
        return add(self, request)

    patch(LinkSigner, "sign", sign_and_tell)
    patch(Recorder, "add", add_and_tell)

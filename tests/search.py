"""Records everything that a test produces, and searches it afterwards for the admin key and for the signatures of bundle links.

The key belongs in the `Authorization` header of requests to the API, and once in the log, in the command that masks it, which the
runner removes. A link's query belongs in the outputs, the Helm values file, and requests to the storage.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest, Recorder
from tests.keys import ADMIN_KEY
from tests.leaks import leaked

USER_AGENT_PREFIX = "docs-platform-action/"
"""The start of the `User-Agent` of requests from the action."""

_MASK = re.compile(r"^::add-mask::(.*)\n?", re.MULTILINE)
_SIGNATURE = re.compile(r"X-Amz-Signature=([0-9a-f]{64})")
_PRINTED = re.compile(r"^(?:bundleUrl|results)(?:=.*\n?|<<(\S+)\n.*\n\1$)", re.MULTILINE)
"""Printed outputs: outside a workflow, or with `GITHUB_OUTPUT` set to a stream of the process."""

_OUTPUT_FILE = re.compile(r"(?:output|outputs\.env|set_output_.*)")
"""Names of output files: `GITHUB_OUTPUT`, `OUTPUT_ENV_FILE`, and act's own."""

_VALUES_FILE_START = b"# Static export"
"""The first bytes of every Helm values file."""


@dataclass(frozen=True, kw_only=True)
class _Text:
    where: str
    text: str
    holds_links: bool


@dataclass
class Search:
    """What one test has produced."""

    keys: set[str] = field(default_factory=lambda: {ADMIN_KEY})
    signatures: set[str] = field(default_factory=set)
    texts: list[_Text] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]

    def remember(self, text: str, *, where: str = "a text", holds_links: bool = False) -> None:
        """Record a text that people or later steps would see; only outputs hold links."""
        self.texts.append(_Text(where=where, text=text, holds_links=holds_links))

    def found(self, folder: Path | None) -> list[str]:
        """Return the leaks in everything that was recorded, and in the files of a folder."""
        return [*self._in_texts(), *self._in_requests(), *(self._in_files(folder) if folder else ())]

    def _in_texts(self) -> Iterator[str]:
        for kept in self.texts:
            for key in self.keys:
                for form in leaked(key, without_mask(kept.text, key)):
                    yield f"{kept.where} holds the key, {form}"
            if kept.holds_links:
                self.signatures.update(_SIGNATURE.findall(kept.text))  # the run may be older than the test
        for kept in self.texts:
            if not kept.holds_links:
                yield from self._links_in(_PRINTED.sub("", _MASK.sub("", kept.text)).encode("utf-8", "surrogatepass"), kept.where)

    def _links_in(self, content: bytes, where: str) -> Iterator[str]:
        for signature in self.signatures:
            for form in leaked(signature, content):
                yield f"{where} holds a link's signature, {form}"

    def _in_requests(self) -> Iterator[str]:
        for request in self.requests:
            if not request.headers.get("User-Agent", "").startswith(USER_AGENT_PREFIX):
                continue  # sent by the test itself
            to_storage = request.operation == "download"
            where = f"a request to the {'storage' if to_storage else 'API'}, {request.method} {request.path},"
            headers = {name: text for name, text in request.headers.items() if to_storage or name.lower() != "authorization"}
            if to_storage and "Authorization" in request.headers:
                yield f"{where} holds an Authorization"
            shown = f"{request.path}?{request.query}\n{headers}\n".encode("utf-8", "surrogateescape") + request.body
            for key in self.keys:
                for form in leaked(key, shown):
                    yield f"{where} holds the key, {form}"
            if not to_storage:
                yield from self._links_in(shown, where)

    def _in_files(self, folder: Path) -> Iterator[str]:
        searched: set[int] = set()
        for file in folder.rglob("*"):
            # `.secret` files stand for GitHub's secret store
            if not file.is_file() or file.is_symlink() or file.suffix == ".secret":
                continue
            if (inode := file.stat().st_ino) in searched:  # a hard link
                continue
            searched.add(inode)
            content, where = file.read_bytes(), str(file.relative_to(folder))
            for key in self.keys:
                for form in leaked(key, content):
                    yield f"{where} holds the key, {form}"
            if not _OUTPUT_FILE.fullmatch(file.name) and not content.startswith(_VALUES_FILE_START):
                yield from self._links_in(content, where)


def without_mask(log: str, key: str) -> str:
    """Return a log without the command that masks the key, which may occur once."""
    written = key.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return re.sub(rf"^::add-mask::{re.escape(written)}$", "", log, count=1, flags=re.MULTILINE)


SEARCH = Search()
"""The search of the current test."""


def watch(patch: Callable[[object, str, object], None]) -> None:
    """Record every link that a simulator signs, and every request that reaches one."""
    sign, add = LinkSigner.sign, Recorder.add

    def sign_and_record(self: LinkSigner, **parameters: str) -> object:
        query, expires_at = sign(self, **parameters)
        SEARCH.signatures.update(parse_qs(query)["X-Amz-Signature"])
        return query, expires_at

    def add_and_record(self: Recorder, request: RecordedRequest) -> int:
        SEARCH.requests.append(request)
        return add(self, request)

    patch(LinkSigner, "sign", sign_and_record)
    patch(Recorder, "add", add_and_record)

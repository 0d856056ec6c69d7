"""The simulated platform and GitHub, served in a thread.

The API, the storage and GitHub's API have a port each.
"""

import asyncio
import os
import secrets
import socket
import ssl
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from aiohttp import web

from admin_api_simulator.api import Api, Override
from admin_api_simulator.bundles import BundleStore
from admin_api_simulator.clock import Clock
from admin_api_simulator.faults import Fault, FaultScript, Operation
from admin_api_simulator.github import COMMITS, GitHub
from admin_api_simulator.jobs import DEMO_PROJECT, ExportPlan, JobStore
from admin_api_simulator.limits import StartLimits, StartQuota
from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest, request_on_the_wire
from admin_api_simulator.site import ArchiveKind
from admin_api_simulator.storage import Storage
from admin_api_simulator.tls import serve_tls
from admin_api_simulator.wire import Reply, Service, Wire

DEFAULT_KEY = "simulated-admin-key"
DEFAULT_READ_KEY = "simulated-read-key"
DEFAULT_TOKEN = "simulated-github-token"  # noqa: S105 - the same for everybody
LONGEST_LINE_BYTES = 1 << 20
SHUTDOWN_SECONDS = 0.05
TURNS_TO_CLOSE = 5  # an aborted transport closes its socket in later turns of the event loop


@dataclass(kw_only=True, eq=False, repr=False)
class Simulator:
    """A documentation platform on this machine, from `start` (or `with`) to `stop`.

    - `key`: the admin API key. `read_key`: one that is limited to the scope `read`.
    - `export_seconds`: how long an export takes. The fraction `queue_share` is in the queue.
    - `agent_seconds`: how long an agent job takes.
    - `pages`: number of pages of an exported site.
    - `asset_bytes`: size of an additional incompressible file in the bundle.
    - `build_ids=False`: pages are the same in every export; otherwise each has its export's build
      id in its markup.
    - `archive`: `tar.gz`, `tar` or `zip`. `link_seconds`: how long a bundle link is valid.
    - `job_ids`: ids of the first exports.
    - `max_jobs`: maximum unfinished exports; a start above it gets 429.
    - `start_quota`: maximum starts an hour; a start above it gets 429. None: unlimited.
    - `one_active_export`: a start gets 409 while an export of the deployment is queued or running.
    - `names_running_job=False`: every such 409 is without `jobId`.
    - `token`: GitHub's token. `deploy_seconds`: how long a deployment takes.
    - `commits`: the history of each repository.
    - `tls=True`: all ports serve `https`; `ca_path` is the certificate authority's PEM file.
    - `ca_file`: where to write that PEM file.
    - `host`, `port`, `storage_port`, `github_port`: where to listen; port 0 is any free port.
    - `clock`: a clock of the caller's.
    - `keep_requests=False`: `requests` stays empty, in a run whose memory is measured.
    """

    key: str = DEFAULT_KEY
    read_key: str = DEFAULT_READ_KEY
    export_seconds: float = 0.3
    queue_share: float = 0.2
    agent_seconds: float = 0.3
    pages: int = 12
    asset_bytes: int = 0
    build_ids: bool = True
    archive: ArchiveKind = "tar.gz"
    link_seconds: float = 3600.0
    job_ids: Sequence[str] = ()
    max_jobs: int | None = None
    start_quota: StartQuota | None = None
    one_active_export: bool = False
    names_running_job: bool = True
    token: str = DEFAULT_TOKEN
    deploy_seconds: float = 0.3
    commits: Sequence[str] = COMMITS
    tls: bool = False
    ca_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    storage_port: int = 0
    github_port: int = 0
    clock: Clock = field(default_factory=Clock)
    keep_requests: bool = True

    def __post_init__(self) -> None:
        self._jobs = JobStore(
            clock=self.clock,
            export_seconds=self.export_seconds,
            queue_share=self.queue_share,
            agent_seconds=self.agent_seconds,
            pages=self.pages,
            job_ids=self.job_ids,
        )
        limits = StartLimits(
            jobs=self._jobs,
            clock=self.clock,
            quota=self.start_quota,
            one_active_export=self.one_active_export,
            names_running_job=self.names_running_job,
            max_jobs=self.max_jobs,
        )
        signer = LinkSigner(
            clock=self.clock, secret=secrets.token_bytes(32), link_seconds=self.link_seconds
        )
        self._bundles = BundleStore(
            jobs=self._jobs,
            archive=self.archive,
            asset_bytes=self.asset_bytes,
            build_ids=self.build_ids,
        )
        self._storage = Storage(clock=self.clock, signer=signer, bundles=self._bundles)
        self._api = Api(
            key=self.key,
            read_key=self.read_key,
            jobs=self._jobs,
            bundles=self._bundles,
            signer=signer,
            storage_url=lambda: self.storage_url,
            limits=limits,
        )
        self.github = GitHub(
            clock=self.clock,
            token=self.token,
            deploy_seconds=self.deploy_seconds,
            commits=self.commits,
        )
        self._faults = FaultScript()
        self._wire = Wire(faults=self._faults, key=self.key, keep_requests=self.keep_requests)
        self._addresses: tuple[str, ...] | None = None
        self.ca_path: Path | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._running: _Running | None = None

    def start(self) -> Self:
        """Start to serve.

        Raises OSError if an address is not available, RuntimeError if already started.
        """
        if self._running is not None:
            raise RuntimeError("the simulator is already running")
        sockets = _listen(self.host, (self.port, self.storage_port, self.github_port))
        try:
            ssl_context = self._serve_tls() if self.tls else None
        except BaseException:
            for listening in sockets:
                listening.close()
            raise
        self._addresses = tuple(self._address(listening) for listening in sockets)
        self._running = _Running(
            wire=self._wire,
            services=list(zip(sockets, self._services, strict=True)),
            ssl_context=ssl_context,
        )
        return self

    def _serve_tls(self) -> ssl.SSLContext:
        self._folder = tempfile.TemporaryDirectory(prefix="admin-api-simulator-")
        self.ca_path = self.ca_file or Path(self._folder.name) / "ca.pem"
        return serve_tls(self.host, ca_file=self.ca_path)

    def open(self, *, api: str, storage: str, github: str) -> Self:
        """Serve at made-up addresses, such as `https://api.example.com`, without sockets.

        Only `reply` answers.
        """
        self._addresses = (api, storage, github)
        return self

    def reply(
        self,
        *,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        at: float,
        fault: Fault | None = None,
    ) -> Reply:
        """Return what the platform does about a request that arrives at a monotonic time.

        A `fault` happens instead, if it is given. The caller says with `sent` that the client has
        received the reply. Raises ValueError for another address.
        """
        service, target = self._service_of(url)
        path = target.partition("?")[0]
        received = request_on_the_wire(
            operation=service.operation_of(method, path),
            method=method,
            target=target,
            headers={"Host": urlsplit(url).netloc, **headers},
            body=body,
            at=at,
        )
        return self._wire.reply(service, received, fault)

    def sent(self, reply: Reply) -> None:
        """Record that the client has received a reply."""
        self._wire.sent(reply)

    def stop(self) -> None:
        """Close all connections, even during a response, and the ports.

        Can be called more than once.
        """
        if self._running is not None:
            self._running.stop()
            self._running = None
        if self._folder is not None and self.ca_path is not None:
            self.ca_path.unlink(missing_ok=True)
            self._folder.cleanup()
            self._folder = None
            self.ca_path = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """The API's address, without a trailing slash."""
        return self._started_addresses()[0]

    @property
    def storage_url(self) -> str:
        """The storage's address."""
        return self._started_addresses()[1]

    @property
    def github_url(self) -> str:
        """The address of GitHub's API."""
        return self._started_addresses()[2]

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests so far, in the order of their arrival."""
        return list(self._wire.requests)

    def requests_of(self, operation: str) -> list[RecordedRequest]:
        """Return the requests with this operation."""
        return [request for request in self.requests if request.operation == operation]

    def count(self, operation: str, *, domain: str | None = None, status: int | None = None) -> int:
        """Return the number of requests with this operation.

        If given, the domain and the response status must match, too.
        """
        found = self.requests_of(operation)
        if domain is not None:
            found = [request for request in found if request.is_about(domain)]
        if status is not None:
            found = [request for request in found if request.status == status]
        return len(found)

    @property
    def max_concurrent_jobs(self) -> int:
        """The maximum number of exports that were unfinished at the same time.

        A fault that reports the end of a job earlier does not end the job.
        """
        return self._jobs.max_concurrent()

    def add_export_job(
        self,
        job_id: str,
        *,
        seconds: float = 0.0,
        domain: str = "docs.example.com",
        pages: int | None = None,
    ) -> None:
        """Add an export that ends in `seconds`."""
        self._jobs.add_export(job_id, domain=domain, plan=ExportPlan(seconds=seconds, pages=pages))

    def plan_export(self, domain: str, plan: ExportPlan) -> None:
        """Set how the exports of a domain will be, which the action starts."""
        self._jobs.plan_export(domain, plan)

    def add_agent_job(
        self,
        job_id: str,
        *,
        project_id: str = DEMO_PROJECT,
        seconds: float | None = None,
        **overrides: object,
    ) -> None:
        """Add an agent job that ends with a pull request.

        It ends `seconds` after its first read, by default `agent_seconds`. `overrides` replace
        fields of the job; `status`, `prLink` and `archivedAt` only once it has ended.
        """
        self._jobs.add_agent(job_id, project_id=project_id, seconds=seconds, overrides=overrides)

    def put_bundle(self, job_id: str, content: bytes) -> None:
        """Replace a job's bundle; its ETag changes with it. Raises KeyError for an unknown job."""
        self._bundles.put(job_id, content)

    def script(self, operation: Operation, *turns: Fault | None, domain: str | None = None) -> None:
        """Replace the planned turns of an operation.

        None is a normal turn, like every turn after the planned ones. With `domain`, the turns are
        for requests about that domain, before the turns for all requests.
        """
        self._faults.plan(operation, turns, domain=domain)

    def script_forever(
        self,
        operation: Operation,
        fault: Fault,
        *,
        after: Sequence[Fault | None] = (),
        domain: str | None = None,
    ) -> None:
        """Plan a fault for every turn of an operation, `after` the given ones.

        `domain` works as in `script`.
        """
        self._faults.plan(operation, after, then=fault, domain=domain)

    def override(self, operation: Operation, json: Override | None = None) -> None:
        """Replace the JSON of an operation's successful responses; None removes the override.

        A function receives the normal JSON and returns another.
        """
        self._api.override(operation, json)

    def _service_of(self, url: str) -> tuple[Service, str]:
        """Return what responds at an address, and the request's target."""
        for address, service in zip(self._started_addresses(), self._services, strict=True):
            if url.startswith(f"{address}/"):
                return service, url.removeprefix(address)
        raise ValueError(f"{url} is at no address of the simulator")

    @property
    def _services(self) -> tuple[Service, ...]:
        return (self._api, self._storage, self.github)

    def _address(self, listening: socket.socket) -> str:
        scheme = "https" if self.tls else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = listening.getsockname()[1]
        return f"{scheme}://{host}:{port}"

    def _started_addresses(self) -> tuple[str, ...]:
        if self._addresses is None:
            raise RuntimeError("the simulator has not been started")
        return self._addresses


class _Running:
    """The thread with the event loop."""

    def __init__(
        self,
        *,
        wire: Wire,
        services: Sequence[tuple[socket.socket, Service]],
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._ready = threading.Event()
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(wire, services, ssl_context)),
            name="admin-api-simulator",
            daemon=True,
        )
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Stop the event loop and wait for the thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is already closed
                self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    async def _serve(
        self,
        wire: Wire,
        services: Sequence[tuple[socket.socket, Service]],
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        runners: list[web.ServerRunner] = []
        try:
            for listening, service in services:
                server = web.Server(
                    wire.handler(service),
                    handler_cancellation=True,
                    access_log=None,
                    max_line_size=LONGEST_LINE_BYTES,
                    max_field_size=LONGEST_LINE_BYTES,
                )
                runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
                runners.append(runner)
                await runner.setup()
                await web.SockSite(runner, listening, ssl_context=ssl_context).start()
            self._ready.set()
            await self._stopping.wait()
        finally:
            self._ready.set()
            await _close(runners)


async def _close(runners: Sequence[web.ServerRunner]) -> None:
    transports = []
    for runner in runners:
        if runner.server is not None:
            transports += [connection.transport for connection in runner.server.connections]
    for runner in runners:
        await runner.cleanup()
    for transport in transports:
        if transport is not None:
            transport.abort()  # does not wait for a client to read
    for _ in range(TURNS_TO_CLOSE):
        await asyncio.sleep(0)


def _listen(host: str, ports: Sequence[int]) -> list[socket.socket]:
    first_address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    family, _, _, _, (address, *_) = first_address
    sockets: list[socket.socket] = []
    for port in ports:
        try:
            sockets.append(socket.create_server((str(address), port), family=family))
        except OSError as error:
            for listening in sockets:
                listening.close()
            raise OSError(error.errno, f"port {port}: {os.strerror(error.errno or 0)}") from None
    return sockets

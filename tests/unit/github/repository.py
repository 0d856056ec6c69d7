"""A repository on the simulated GitHub in virtual time."""

from collections.abc import Mapping

from admin_api_simulator.github import COMMIT, CREATOR, REPOSITORY
from admin_api_simulator.simulator import DEFAULT_TOKEN
from docs_platform_action.github.client import GitHubClient
from docs_platform_action.github.deployments import Deployments, GitHub
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from tests.unit.fakes import NONE, RecordedEvents, http_client
from tests.virtual_platform import GITHUB_URL, Sent, VirtualPlatform
from tests.virtual_time import VirtualClock


class Repository:
    """A repository's deployments on the simulated GitHub, and the requests for them.

    Requests are `asked` without their common beginning.
    """

    def __init__(
        self,
        *,
        creator: str = CREATOR,
        environment: str | None = None,
        proxies: Mapping[str, str] = NONE,
    ) -> None:
        self.clock = VirtualClock()
        self.job = Job(kind=Export())
        self.events = RecordedEvents()
        self.sent: list[Sent] = []
        self.asked: list[str] = []
        platform = VirtualPlatform(self.clock, trouble=self._record)
        self.simulator = platform.simulator
        self.github = platform.simulator.github
        self.client = GitHubClient(
            client=http_client(platform, clock=self.clock, proxies=proxies),
            api_url=GITHUB_URL,
            token=DEFAULT_TOKEN,
            repository=REPOSITORY,
            clock=self.clock,
            listener=self.events,
        )
        self.reader = GitHub(
            self.client,
            commit=COMMIT,
            timeout_seconds=25.0,
            creator=creator,
            environment=environment,
            repository_url="https://github.example.com/demo/docs",
        )

    def _record(self, request: Sent) -> None:
        _, _, path = request.target.partition("docs/")
        self.sent.append(request)
        self.asked.append(path)

    def read(self, timeout_seconds: float = 0.0) -> Deployments:
        """Read the deployments. Without a timeout, there is one attempt."""
        self.asked.clear()
        deadline = self.clock.monotonic() + timeout_seconds
        return self.reader.read(self.job, deadline=deadline)

    @property
    def live(self) -> str | None:
        live = self.read().live
        return live.commit if live is not None else None

    def get(self, path: str = "/deployments", *, seconds: float = 0.0) -> list[object]:
        """Read a list once. The deadline is in seconds from now."""
        deadline = self.clock.monotonic() + seconds
        return self.client.get(self.job, path, list, deadline=deadline)

    def find(self) -> list[object] | None:
        """Read the statuses of a deployment that does not exist, once."""
        deadline = self.clock.monotonic()
        return self.client.find(self.job, "/deployments/99/statuses", list, deadline=deadline)

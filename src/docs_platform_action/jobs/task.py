"""What a run works on: its jobs, each with its settings and its steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ..inputs.settings import CommitSettings, DeliverySettings, PlatformSettings
from ..job import Job

S = TypeVar("S")  # the settings of a job
C = TypeVar("C")  # the context that its steps need


@dataclass(frozen=True, kw_only=True)
class Task(Generic[S, C]):
    """A job, and the steps in which it is done.

    A step raises the `ActionError` that the job fails with, and `Cancelled`. A start that is
    refused for lack of room, or held back, is tried again later, with all steps from the first.
    """

    job: Job
    settings: S
    steps: Sequence[Callable[[Job, S, C], None]]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The tasks of a run, and what they need.

    With `platform`, the steps get a `PlatformContext`. The links of `deliveries` must still be
    valid when all tasks have ended.
    """

    tasks: Sequence[Task[Any, Any]]
    platform: PlatformSettings | None = None
    commit: CommitSettings | None = None
    start_timeout_seconds: float = 0.0
    max_parallel: int = 1
    deliveries: Mapping[Job, DeliverySettings] = field(default_factory=dict)

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs, in the order of the inputs."""
        return [task.job for task in self.tasks]

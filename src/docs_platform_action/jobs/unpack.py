"""Unpacks a bundle that is a file here already."""

from collections.abc import Sequence

from ..inputs.settings import Mode
from ..job import Job, Kind


class Unpack(Kind):
    """A bundle that is a file here already, and not a job of the platform."""

    mode = Mode.UNPACK
    name = "Bundle"
    noun = "bundle"
    bundle_path_label = "Archive"

    def heading(self, job: Job) -> tuple[str, str]:
        if job.domain is not None:
            return "Domain", job.domain
        return "Mode", self.mode

    def cancelled_before_start(self, _job: Job, _now: float) -> Sequence[str]:
        return []

"""Unpacks a bundle that is a file here already, without the platform."""

from ..bundle.deliver import Delivery
from ..context import Context
from ..inputs.settings import JobSettings
from ..job import Job


def unpack_site(job: Job, settings: JobSettings, context: Context) -> None:
    """Unpack a bundle; everything known is in the job at once. Raises the `ActionError` that it failed with."""
    Delivery(job, settings.delivery, context).unpack()

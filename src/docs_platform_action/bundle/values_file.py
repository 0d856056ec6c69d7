"""Writes the Helm values file of a bundle's link."""

from dataclasses import replace

from ..context import Context
from ..inputs.settings import DeliverySettings
from ..job import Job
from ..ownership import Owners
from .staging import write_file


def write_values_file(
    job: Job,
    settings: DeliverySettings,
    owners: Owners,
    context: Context,
) -> None:
    """Write the file that the settings ask for, with the job's link. Raises `InternalError`."""
    target = settings.values_file
    if target is None or job.link is None:
        return
    # imports a YAML library, which most runs do not need
    from .helm_values import values_text

    text = values_text(job, job.link, settings.export_version, context.clock.now())
    write_file(
        target,
        "the Helm values file",
        [text.encode()],
        owner=owners.of(target.root),
        cancellation=context.clock.cancellation,
    )
    job.delivered = replace(job.delivered, values_file=target.name)
    context.listener.noted(job, f"Wrote the Helm values file {target.name}")

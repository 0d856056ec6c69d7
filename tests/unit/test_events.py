"""Every event reaches every listener."""

import inspect

import pytest

from docs_platform_action.events import Events
from docs_platform_action.job import Job
from tests.unit.fakes import RecordedEvents

NAMES = [name for name in vars(Events) if not name.startswith("_") and name != "heartbeat"]


def announce(events: Events, name: str, job: Job) -> None:
    """Announce an event with something for each of its parameters."""
    _, _, *parameters = inspect.signature(getattr(Events, name)).parameters.values()
    given = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    named = {parameter.name: parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    getattr(events, name)(job, *given, **named)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_is_forwarded_to_each_listener(name: str) -> None:
    job, first, second = Job(mode=None), RecordedEvents(), RecordedEvents()

    announce(Events(first, Events(second)), name, job)

    (event,) = first.seen
    assert event[:2] == (name, job)
    assert first.seen == second.seen


def test_a_heartbeat_is_forwarded() -> None:
    class Pulse(Events):
        beats = 0

        def heartbeat(self) -> None:
            self.beats += 1

    pulse = Pulse()

    Events(pulse).heartbeat()

    assert pulse.beats == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_listener_ignores_what_it_does_not_override(name: str) -> None:
    announce(Events(Events()), name, Job(mode=None))

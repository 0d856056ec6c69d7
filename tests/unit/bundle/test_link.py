"""The link to a bundle: where it comes from, when it is replaced, and what is warned of."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from docs_platform_action.bundle.link import (
    Renewals,
    is_expiring,
    make_link,
    renew_link,
    replace_link,
)
from docs_platform_action.errors import ActionError, Cancelled, DownloadFailed, Unavailable
from docs_platform_action.inputs.settings import DeliverySettings
from docs_platform_action.job import BUNDLE, Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import BundleLink, Delivered, ExportJob, OutputPath
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import NOON, VirtualClock

LINK: Final = BundleLink(url="https://s.example.com/b?sig=1", expires=NOON + timedelta(hours=1))
SHORT: Final = replace(LINK, expires=NOON + timedelta(seconds=59))
FRESH: Final = replace(LINK, url="https://s.example.com/b?sig=2")
DOWN: Final = Unavailable("it is down")
NONE: Final[Mapping[str, float]] = {}


class Links:
    """Jobs of the sites a, b, c … with links that are valid for so many seconds, or without end.

    A new one takes `seconds`, is valid for `fresh`, and is not made of those that `fail`.
    """

    def __init__(
        self,
        *links: float | None,
        seconds: Mapping[str, float] = NONE,
        fresh: Mapping[str, float] = NONE,
        fail: str = "",
    ) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.asked: list[str | None] = []
        self.jobs = []
        for letter, valid in zip("abcdefgh", links, strict=False):
            link = BundleLink(url=f"old {letter}")
            if valid is not None:
                link = replace(link, expires=NOON + timedelta(seconds=valid))
            self.jobs.append(Job(kind=Export(), domain=letter, job_id=f"se_{letter}", link=link))
        self._seconds = seconds
        self._fresh = fresh
        self._fail = fail
        self.parts = context(self.clock, self.events, platform=self)
        self.renewals = Renewals({job: DeliverySettings() for job in self.jobs}, self.parts)

    def make_link(self, job: Job) -> BundleLink:
        site = str(job.domain)
        self.asked.append(site)
        self.clock.sleep(self._seconds.get(site, 0))
        if site in self._fail:
            raise DOWN
        expires = self.clock.now() + timedelta(seconds=self._fresh.get(site, 3600))
        return BundleLink(url=f"new {site}", expires=expires)

    @property
    def warned_of(self) -> list[str | None]:
        return [event[1].domain for event in self.events.seen if event[0] == "warning"]


class One:
    """A job with a link, or without one, and an API that makes another, or fails."""

    def __init__(self, link: BundleLink | None, made: BundleLink | ActionError = FRESH) -> None:
        self.events = RecordedEvents()
        self.clock = VirtualClock()
        self.job = Job(kind=Export(), domain="docs.example.com", job_id="se_1", link=link)
        self.asked = 0

        def answer(_job: Job) -> BundleLink:
            self.asked += 1
            if isinstance(made, ActionError):
                raise made
            return made

        platform = SimpleNamespace(make_link=answer)
        self.parts = context(self.clock, self.events, platform=platform)

    def renew(self, values_file: OutputPath | None = None) -> bool:
        return renew_link(self.job, DeliverySettings(values_file=values_file), self.parts)


@pytest.mark.parametrize(
    ("reading", "link"),
    [
        (ExportJob(status="completed", link=LINK), LINK),
        (ExportJob(status="completed"), FRESH),
        (None, FRESH),
    ],
    ids=["in the reading", "not in the reading", "without a reading"],
)
def test_the_first_link_is_the_last_readings_or_a_new_one(
    reading: ExportJob | None, link: BundleLink
) -> None:
    one = One(None)
    one.job.reading = reading

    make_link(one.job, one.parts)

    assert one.job.link == link
    assert one.asked == int(link == FRESH)
    assert one.events.of("link_made") == [(link,)]
    assert one.job.is_in(BUNDLE)


def test_a_replaced_link_is_announced_and_recorded_even_if_the_reading_has_one() -> None:
    one = One(LINK)
    one.job.reading = ExportJob(status="completed", link=LINK)

    assert replace_link(one.job, one.parts) == FRESH
    assert one.job.link == FRESH
    assert one.events.of("link_made") == [(FRESH,)]


@pytest.mark.parametrize(
    ("seconds", "has_short_link", "expires_soon"),
    [(59, False, True), (-1, False, True), (60, False, False), (None, False, False)],
)
def test_a_link_expires_soon_in_its_last_minute_and_after_it(
    seconds: float | None, has_short_link: bool, expires_soon: bool
) -> None:
    links = Links(seconds)
    (job,) = links.jobs
    job.has_short_link = has_short_link

    assert is_expiring(job, links.parts) == expires_soon


def test_a_link_whose_replacement_was_as_short_is_left_as_it_is() -> None:
    one = One(SHORT)
    one.job.has_short_link = True

    assert not is_expiring(one.job, one.parts)


class TestRenewal:
    def test_replaces_the_link_and_says_so(self) -> None:
        one = One(SHORT)

        assert one.renew()
        assert one.job.link == FRESH
        assert not one.job.has_short_link
        assert one.events.names == ["noted", "link_made"]

    @pytest.mark.parametrize("is_written", [True, False])
    def test_writes_the_values_file_again_if_there_is_one(
        self, tmp_path: Path, is_written: bool
    ) -> None:
        one = One(SHORT)
        file = tmp_path / "v.yaml"
        if is_written:
            one.job.delivered = Delivered(values_file="v.yaml")

        assert one.renew(OutputPath(path=file, root=tmp_path, name="v.yaml"))
        assert file.exists() == is_written
        assert not is_written or FRESH.url in file.read_text()

    @pytest.mark.parametrize(
        ("seconds", "state"), [(59, "expires in"), (0, "has expired"), (-1, "has expired")]
    )
    def test_warns_of_a_new_link_that_is_not_valid_for_longer(
        self, seconds: int, state: str
    ) -> None:
        link = replace(LINK, expires=NOON + timedelta(seconds=seconds))
        one = One(link, link)

        assert one.renew()
        ((lines,),) = one.events.of("warning")
        assert one.job.has_short_link
        assert state in lines[0]
        assert "not valid for longer" in lines[-1]

    @pytest.mark.parametrize(
        ("error", "remedy"),
        [(DOWN, "mode: collect"), (DownloadFailed("no", remedy="Do this."), "Do this.")],
    )
    def test_that_fails_keeps_the_link_with_a_warning_that_says_what_to_do(
        self, error: ActionError, remedy: str
    ) -> None:
        one = One(SHORT, error)

        assert not one.renew()
        ((lines,),) = one.events.of("warning")
        assert one.job.link == SHORT
        assert remedy in lines[-1]

    def test_that_cannot_write_the_values_file_keeps_the_link_that_is_in_it(
        self, tmp_path: Path
    ) -> None:
        one = One(SHORT)
        one.job.delivered = Delivered(values_file="v.yaml")
        tmp_path.joinpath("v.yaml").mkdir()

        assert not one.renew(OutputPath(path=tmp_path / "v.yaml", root=tmp_path, name="v.yaml"))
        assert one.job.link == SHORT
        assert len(one.events.of("warning")) == 1

    def test_ends_with_a_cancel(self) -> None:
        one = One(SHORT, Cancelled("cancelled"))

        with pytest.raises(Cancelled):
            one.renew()

        assert one.events.of("warning") == []


class TestAtTheEndOfTheRun:
    def test_before_it_no_link_is_due_although_it_expires_soon(self) -> None:
        run = Links(1)

        assert not run.renewals.is_due(run.jobs[0])

    @pytest.mark.parametrize(
        ("links", "seconds", "renewed"),
        [
            ((59.9, 60, None), {}, ["a"]),
            # the second expires during the first renewal
            ((1, 150, 300), {"a": 100}, ["a", "b"]),
        ],
    )
    def test_links_about_to_expire_are_renewed(
        self, links: tuple[float | None, ...], seconds: Mapping[str, float], renewed: list[str]
    ) -> None:
        run = Links(*links, seconds=seconds)

        run.renewals.run()

        assert run.asked == renewed
        changed = [job.domain for job in run.jobs if job.link and "new" in job.link.url]
        assert changed == renewed
        assert not any(run.renewals.is_due(job) for job in run.jobs)

    def test_a_failed_job_and_one_without_a_delivery_get_no_new_link(self) -> None:
        run = Links(1, 1)
        failed, other = run.jobs
        failed.failure = DOWN
        renewals = Renewals({failed: DeliverySettings()}, run.parts)

        renewals.run()

        assert run.asked == []
        assert not renewals.is_due(failed)
        assert not renewals.is_due(other)

    def test_after_three_that_fail_in_a_row_the_other_links_are_kept_without_a_request(
        self,
    ) -> None:
        run = Links(*[1.0] * 8, fail="abdefgh")

        run.renewals.run()

        assert run.asked == [*"abcdef"]
        assert run.warned_of == [*"abdefgh"]

    def test_new_links_that_live_no_longer_are_not_asked_for_again(self) -> None:
        run = Links(1, 1, fresh={"b": 59})
        run.jobs[0].has_short_link = True

        run.renewals.run()

        assert run.asked == ["b"]
        assert run.warned_of == ["b"]

    @pytest.mark.parametrize(
        ("at", "asked", "due"), [("a", ["a"], ["a", "b"]), ("b", ["a", "b"], ["b"])]
    )
    def test_a_cancel_ends_it_and_what_is_not_renewed_stays_due(
        self, at: str, asked: list[str], due: list[str]
    ) -> None:
        run = Links(1, 1)
        make = run.make_link

        def make_link(job: Job) -> BundleLink:
            if job.domain == at:
                run.clock.cancel()
            return make(job)

        run.make_link = make_link  # type: ignore[method-assign]

        with pytest.raises(Cancelled):
            run.renewals.run()

        assert run.asked == asked
        assert [job.domain for job in run.jobs if run.renewals.is_due(job)] == due

    def test_none_is_made_after_a_cancel(self) -> None:
        run = Links(1)
        run.clock.cancel()

        with pytest.raises(Cancelled):
            run.renewals.run()

        assert run.asked == []

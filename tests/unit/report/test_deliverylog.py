"""What becomes of a bundle, in the log: a line for each thing that is done, and one every ten seconds in between."""

import pytest

from docs_platform_action.job import Job
from docs_platform_action.models import Downloaded
from docs_platform_action.report.deliverylog import LINE_SECONDS, WORTH_TELLING_SECONDS, DeliveryLog
from tests.unit.fakes import FakeClock, Log, words

MIB = 1024 * 1024


class Delivery:
    """A delivery, and the log that its job's is."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.job_log = Log(Job(mode="export", job_id="se_1", status="completed", page_count=412), self.clock, "completed")
        self.log = DeliveryLog(self.job_log, self.clock)

    @property
    def lines(self) -> list[str]:
        return self.job_log.lines


class TestDownload:
    def test_a_small_bundle_is_told_in_one_line(self) -> None:
        delivery = Delivery()
        delivery.clock.pass_(100)
        delivery.log.downloading()
        delivery.clock.pass_(1.9)
        delivery.log.progressed(40 * MIB, 40 * MIB)

        delivery.log.downloaded(Downloaded(size=40 * MIB, sha256="9b1c" + "0" * 56 + "e07a"), "out/bundle.tar.gz")

        assert delivery.lines == ["  Downloaded 40.0 MiB to out/bundle.tar.gz in 1.9 s, SHA-256 9b1c…e07a"]

    def test_one_that_nobody_keeps_is_told_without_a_place(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(75)

        delivery.log.downloaded(Downloaded(size=512, sha256="ab" * 32), None)

        assert delivery.lines == ["  Downloaded 512 bytes in 75 s, SHA-256 abab…abab"]

    def test_a_large_one_is_told_every_ten_seconds_with_how_far_and_how_fast_it_is(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()

        for second in range(1, 26):
            delivery.clock.pass_(1)
            delivery.log.progressed(second * 4 * MIB, 400 * MIB)

        assert delivery.lines == [
            "  downloading  10 %    40.0 MiB of 400.0 MiB      4.0 MiB/s      0:10",
            "  downloading  20 %    80.0 MiB of 400.0 MiB      4.0 MiB/s      0:20",
        ]

    def test_one_of_unknown_size_is_told_without_a_share(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(10)

        delivery.log.progressed(2500, None)

        assert delivery.lines == ["  downloading                        2.4 KiB    250 bytes/s      0:10"]

    def test_the_rate_is_that_since_the_line_before(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(10)
        delivery.log.progressed(100 * MIB, 400 * MIB)
        delivery.clock.pass_(20)

        delivery.log.progressed(110 * MIB, 400 * MIB)

        assert delivery.lines[-1] == "  downloading  27 %   110.0 MiB of 400.0 MiB    512.0 KiB/s      0:30"

    def test_no_line_comes_sooner(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(LINE_SECONDS - 0.1)

        delivery.log.progressed(1, 2)

        assert delivery.lines == []

    def test_it_begins_anew_for_the_next_bundle(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(10)
        delivery.log.progressed(100 * MIB, None)
        delivery.log.downloading()
        delivery.clock.pass_(10)

        delivery.log.progressed(10 * MIB, 10 * MIB)

        assert delivery.lines[-1] == "  downloading 100 %     10.0 MiB of 10.0 MiB      1.0 MiB/s      0:10"


class TestTrouble:
    def test_it_is_told_with_what_happens_next(self) -> None:
        delivery = Delivery()

        delivery.log.trouble("The storage answered 503 after 1,024 bytes", budget_seconds=299.7, pause_seconds=4)

        assert delivery.lines == ["  The storage answered 503 after 1,024 bytes. Trying again for up to 5:00, next in 4 s."]

    @pytest.mark.parametrize(
        ("lasted", "told"),
        [(WORTH_TELLING_SECONDS - 0.1, []), (WORTH_TELLING_SECONDS, ["  The download goes on after 0:05."])],
    )
    def test_its_end_is_told_when_it_lasted(self, lasted: float, told: list[str]) -> None:
        delivery = Delivery()

        delivery.log.recovered(lasted)

        assert delivery.lines == told

    def test_a_dead_link_is_told_with_what_happens_next(self) -> None:
        delivery = Delivery()

        delivery.log.link_died("The storage refused the link with 403 (AccessDenied)")

        assert delivery.lines == ["  The storage refused the link with 403 (AccessDenied). Making a fresh link."]

    def test_a_download_that_starts_over_says_why(self) -> None:
        delivery = Delivery()

        delivery.log.started_over("the bundle there is another now")

        assert delivery.lines == ["  Starting the download over: the bundle there is another now."]

    def test_it_counts_its_bytes_from_nothing_again(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(10)
        delivery.log.progressed(100 * MIB, None)
        delivery.log.started_over("the storage does not resume it")
        delivery.clock.pass_(10)

        delivery.log.progressed(20 * MIB, None)

        assert delivery.lines[-1] == "  downloading                       20.0 MiB      2.0 MiB/s      0:20"

    def test_fewer_bytes_than_before_are_no_negative_rate(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(10)
        delivery.log.progressed(100 * MIB, None)
        delivery.clock.pass_(10)

        delivery.log.progressed(20 * MIB, None)

        assert "0 bytes/s" in delivery.lines[-1]


class TestUnpacking:
    def test_a_small_site_is_told_in_one_line(self) -> None:
        delivery = Delivery()
        delivery.log.unpacking()
        delivery.log.unpacked_so_far(1, 3)

        delivery.log.unpacked(1, "out/site")

        assert delivery.lines == ["  Unpacked 1 file to out/site/"]

    def test_a_large_one_is_told_every_ten_seconds(self) -> None:
        delivery = Delivery()
        delivery.clock.pass_(1000)
        delivery.log.unpacking()

        for second in range(1, 26):
            delivery.clock.pass_(1)
            delivery.log.unpacked_so_far(second * 200, second * 4 * MIB)
        delivery.log.unpacked(5000, "site")

        assert delivery.lines == [
            "  unpacking        2,000 files, 40.0 MiB      0:10",
            "  unpacking        4,000 files, 80.0 MiB      0:20",
            "  Unpacked 5,000 files to site/",
        ]


def test_the_values_file_is_told_by_its_name() -> None:
    delivery = Delivery()

    delivery.log.wrote_values("deploy/values.yaml")

    assert delivery.lines == ["  Wrote the Helm values file deploy/values.yaml"]


def test_a_hostile_name_stays_a_name() -> None:
    delivery = Delivery()

    delivery.log.unpacked(2, "a##[error]b")

    assert delivery.lines == ["  Unpacked 2 files to a# #[error]b/"]


class TestConnectionsThatKeepBreaking:
    def test_are_told_of_every_few_seconds_only(self) -> None:
        delivery = Delivery()

        for _ in range(90):
            delivery.log.trouble("It broke off", budget_seconds=300, pause_seconds=0.5)
            delivery.clock.pass_(0.25)

        assert delivery.lines == ["  It broke off. Trying again for up to 5:00, next in 0.5 s."] * 3

    def test_are_counted_in_the_end(self) -> None:
        delivery = Delivery()
        for status in (200, 503, 206, 403, 206):
            delivery.log.answered("https://storage.example.com/x", status, None, None)

        delivery.log.downloaded(Downloaded(size=1024, sha256="0123456789"), None)

        assert delivery.lines == ["  Downloaded 1.0 KiB in under 0.1 s over 3 connections, SHA-256 0123…6789"]


class TestSignOfLife:
    """What the job's log shows when nothing else was told for long."""

    def heartbeat(self, delivery: Delivery) -> str:
        delivery.clock.pass_(60)
        delivery.job_log.heartbeat(55)
        return delivery.lines[-1]

    def test_a_download_that_nothing_came_of_yet(self) -> None:
        delivery = Delivery()

        delivery.log.downloading()

        assert words([self.heartbeat(delivery)]) == ["downloading 0 bytes 0 bytes/s 1:00"]

    def test_one_that_stands_still_shows_where(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.clock.pass_(10)
        delivery.log.progressed(40 * MIB, 400 * MIB)

        assert words([self.heartbeat(delivery)]) == ["downloading 10 % 40.0 MiB of 400.0 MiB 0 bytes/s 1:10"]
        assert len(delivery.lines) == 2

    def test_an_unpacking(self) -> None:
        delivery = Delivery()
        delivery.log.downloading()
        delivery.log.unpacking()

        assert words([self.heartbeat(delivery)]) == ["unpacking 0 files, 0 bytes 1:00"]

    def test_an_unpacking_that_stands_still_shows_where(self) -> None:
        delivery = Delivery()
        delivery.log.unpacking()
        delivery.clock.pass_(10)
        delivery.log.unpacked_so_far(7, 3000)

        assert self.heartbeat(delivery) == "  unpacking            7 files, 2.9 KiB      1:10"

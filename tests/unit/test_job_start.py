"""The arithmetic of the benchmark `bench/job_start.py`, and what it reads from a registry's manifest and log."""

from pathlib import Path
from typing import Any

import pytest
from bench.job_start import (
    BUILDKIT,
    CLASSIC,
    MAX_BYTES,
    PULL,
    Image,
    check_fetched,
    fetched_blobs,
    missed_goals,
    ratios,
    split_layers,
    spread,
)

BASE, CODE, CONFIG = (f"sha256:{character * 64}" for character in "abc")
IMAGE = Image(name="image", context=Path(), reference="host/image@sha256:…", base={BASE: 100}, beyond={CODE: 7})


def manifest(**sizes: int) -> dict[str, Any]:
    return {"layers": [{"digest": digest, "size": size} for digest, size in sizes.items()]}


def request_line(digest: str, *, method: str = "GET", kind: str = "blobs", status: int = 200) -> str:
    return (
        f'127.0.0.1 - - [22/Nov/2026:21:00:00 +0000] "{method} /v2/image/{kind}/{digest} HTTP/1.1" {status} 7 "" "docker/20.10"\n'
    )


class TestLayers:
    def test_those_of_the_base_are_separate_from_those_beyond_it(self) -> None:
        assert split_layers(manifest(a=100, b=7, c=2), manifest(a=100)) == ({"a": 100}, {"b": 7, "c": 2})

    def test_an_image_on_another_base_is_an_error(self) -> None:
        with pytest.raises(SystemExit, match="layers of the base image"):
            split_layers(manifest(b=7), manifest(a=100))


class TestRegistryLog:
    def test_delivered_blobs_are_fetched(self) -> None:
        assert fetched_blobs(request_line(BASE) + request_line(CODE)) == {BASE, CODE}

    @pytest.mark.parametrize(
        "line",
        [
            request_line(BASE, method="HEAD"),
            request_line(BASE, status=404),
            request_line(BASE, kind="manifests"),
        ],
    )
    def test_other_requests_fetch_no_blob(self, line: str) -> None:
        assert fetched_blobs(line) == set()

    @pytest.mark.parametrize(
        ("way", "present", "fetched"),
        [
            (PULL, False, [BASE, CODE, CONFIG]),
            (PULL, True, [CODE, CONFIG]),
            (CLASSIC, False, [BASE, CONFIG]),
            (BUILDKIT, True, []),
        ],
    )
    def test_a_turn_that_fetched_what_it_needs_counts(self, way: str, present: bool, fetched: list[str]) -> None:
        check_fetched(IMAGE, "".join(map(request_line, fetched)), present=present, way=way)

    @pytest.mark.parametrize(
        ("way", "present", "fetched"),
        [
            (PULL, False, [CODE]),
            (PULL, True, []),
            (PULL, True, [BASE, CODE]),
            (CLASSIC, False, []),
            (BUILDKIT, True, [BASE]),
        ],
    )
    def test_a_turn_with_layers_left_behind_or_missing_does_not_count(self, way: str, present: bool, fetched: list[str]) -> None:
        with pytest.raises(SystemExit, match=f"{way}: fetched"):
            check_fetched(IMAGE, "".join(map(request_line, fetched)), present=present, way=way)


class TestFigures:
    def test_ratios_are_those_of_turns_in_the_same_round(self) -> None:
        assert ratios([1.0, 3.0], [10.0, 6.0]) == [0.1, 0.5]

    def test_the_median_has_its_extremes(self) -> None:
        assert spread([0.5, 0.1, 0.2]) == "0.20 (0.10 to 0.50)"

    def test_a_small_and_fast_pull_meets_the_goals(self) -> None:
        assert missed_goals(MAX_BYTES, {PULL: [1.0], CLASSIC: [10.0], BUILDKIT: [10.0]}) == []

    def test_each_missed_goal_is_named(self) -> None:
        missed = missed_goals(MAX_BYTES + 10_000, {PULL: [1.0, 1.0, 9.0], CLASSIC: [10.0, 10.0, 10.0], BUILDKIT: [2.0, 2.0, 2.0]})

        assert missed == ["3.01 MB beyond the base", "50% of the time of a build (BuildKit)"]

"""The rate limit."""

from admin_api_simulator.limits import RateLimit


def test_no_window_of_a_second_lets_more_through() -> None:
    limit = RateLimit(2)

    assert [limit.allows(at) for at in (0.0, 0.75, 0.875, 1.0, 1.5, 1.75)] == [True, True, False, True, False, True]


def test_a_refused_request_takes_nobodys_place() -> None:
    limit = RateLimit(1)

    assert [limit.allows(at / 4) for at in range(9)] == [True, False, False, False, True, False, False, False, True]

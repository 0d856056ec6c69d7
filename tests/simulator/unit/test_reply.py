"""The simulator without sockets: replies to requests at made-up addresses."""

import pytest

from admin_api_simulator import Fault, Simulator

API = "https://api.example.com"
AUTHORIZED = {"Authorization": "Bearer k"}
READ = "/v1/static-export/jobs/export-finished"


def test_a_request_is_answered_and_recorded_with_its_time() -> None:
    simulator = Simulator(key="k").open(api=API, storage="https://storage.example.com")

    reply = simulator.reply(method="GET", url=API + READ, headers=AUTHORIZED, body=b"", at=7.0)

    assert reply.response.status == 200
    assert [(request.operation, request.at, request.status) for request in simulator.requests] == [("read_export", 7.0, None)]
    simulator.sent(reply)
    assert simulator.requests[0].status == 200


@pytest.mark.parametrize("given", [True, False], ids=["given", "planned"])
def test_a_fault_replaces_the_response(given: bool) -> None:
    simulator = Simulator(key="k").open(api=API, storage="https://storage.example.com")
    fault = Fault(status=503)
    if not given:
        simulator.script("read_export", fault)

    reply = simulator.reply(method="GET", url=API + READ, headers=AUTHORIZED, body=b"", at=0.0, fault=fault if given else None)

    assert (reply.response.status, reply.fault) == (503, fault)


def test_another_address_is_an_error() -> None:
    simulator = Simulator(key="k").open(api=API, storage="https://storage.example.com")

    with pytest.raises(ValueError, match="neither address"):
        simulator.reply(method="GET", url=f"https://api.example.org{READ}", headers={}, body=b"", at=0.0)

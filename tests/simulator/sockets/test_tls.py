"""Both ports with TLS, for clients that trust the simulator's authority."""

from pathlib import Path

import pytest
import requests

from admin_api_simulator import Simulator


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_authority_certifies_both_ports_under_the_public_name(host: str) -> None:
    with Simulator(tls=True, public_host=host) as platform:
        authority = str(platform.ca_path)
        key = {"Authorization": f"Bearer {platform.key}"}
        path = "/v1/static-export/jobs/export-finished/bundle"

        made = requests.post(platform.base_url + path, headers=key, verify=authority, timeout=10)
        got = requests.get(made.json()["bundleUrl"], verify=authority, timeout=10)

    assert platform.base_url.startswith(f"https://{host}:")
    assert got.url.startswith(f"https://{host}:")
    assert got.status_code == 200
    assert not Path(authority).exists()


def test_others_do_not_trust_it() -> None:
    with Simulator(tls=True) as platform, pytest.raises(requests.exceptions.SSLError):
        requests.get(platform.base_url, timeout=10)


def test_the_authority_goes_where_it_is_wanted(tmp_path: Path) -> None:
    wanted = tmp_path / "authority.pem"

    with Simulator(tls=True, ca_file=wanted) as platform:
        assert platform.ca_path == wanted
        assert "BEGIN CERTIFICATE" in wanted.read_text()

    assert not wanted.exists()


def test_without_tls_there_is_no_authority(platform: Simulator) -> None:
    assert platform.ca_path is None

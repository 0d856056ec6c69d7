"""The object storage behind the presigned links."""

import time
from pathlib import Path

import pytest
import requests

from admin_api_simulator import Simulator
from tests.simulator.client import bundle_url


def get(url: str, **headers: str) -> requests.Response:
    return requests.get(url, headers={name.replace("_", "-"): text for name, text in headers.items()}, timeout=10)


def test_a_link_gets_the_whole_bundle(platform: Simulator) -> None:
    response = get(bundle_url(platform))

    assert response.status_code == 200
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["Content-Type"] == "application/gzip"
    assert int(response.headers["Content-Length"]) == len(response.content)
    assert response.headers["ETag"].startswith('"')
    assert "bundle.tar.gz" in response.headers["Content-Disposition"]


def test_an_expired_link_is_refused() -> None:
    with Simulator(link_seconds=0.05) as platform:
        url = bundle_url(platform)
        time.sleep(0.06)

        response = get(url)

    assert response.status_code == 403
    assert "<Code>AccessDenied</Code><Message>Request has expired</Message>" in response.text
    assert response.headers["Content-Type"] == "application/xml"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("X-Amz-Expires=3600", "X-Amz-Expires=7200", "SignatureDoesNotMatch"),
        ("/exports/export-finished/", "/exports/export-failed/", "SignatureDoesNotMatch"),
        ("X-Amz-Signature=", "X-Amz-Signature=0", "SignatureDoesNotMatch"),
        ("X-Amz-Security-Token=session", "X-Amz-Security-Token=other", "SignatureDoesNotMatch"),
        ("X-Amz-Signature=", "X-Amz-Other=", "AccessDenied"),
        ("X-Amz-Date=", "X-Amz-Date=x", "AccessDenied"),
    ],
)
def test_a_changed_link_is_refused(old: str, new: str, code: str, platform: Simulator) -> None:
    url = bundle_url(platform)
    assert old in url

    response = get(url.replace(old, new))

    assert response.status_code == 403
    assert f"<Code>{code}</Code>" in response.text


def test_an_authorization_header_beside_the_signature_is_refused(platform: Simulator) -> None:
    response = get(bundle_url(platform), Authorization="Bearer key")

    assert response.status_code == 400
    assert "<Code>InvalidArgument</Code>" in response.text


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=10-19", 10, 20), ("bytes=-7", -7, None)],
)
def test_a_range_gets_its_part(asked: str, start: int, end: int | None, platform: Simulator) -> None:
    whole = get(bundle_url(platform)).content

    response = get(bundle_url(platform), Range=asked)

    assert response.status_code == 206
    assert response.content == whole[start:end]
    assert response.headers["Content-Range"].endswith(f"/{len(whole)}")


def test_a_range_from_the_very_end_cannot_be_satisfied(platform: Simulator) -> None:
    size = len(get(bundle_url(platform)).content)

    response = get(bundle_url(platform), Range=f"bytes={size}-")

    assert response.status_code == 416
    assert response.headers["Content-Range"] == f"bytes */{size}"
    assert "<Code>InvalidRange</Code>" in response.text


@pytest.mark.parametrize("validator", ["ETag", "Last-Modified"])
def test_if_range_continues_the_same_bundle_and_restarts_another(validator: str, platform: Simulator) -> None:
    known = get(bundle_url(platform)).headers[validator]

    same = get(bundle_url(platform), Range="bytes=5-", If_Range=known)
    platform.put_bundle("export-finished", b"another bundle")
    other = get(bundle_url(platform), Range="bytes=5-", If_Range=known)

    assert same.status_code == 206
    assert (other.status_code, other.content) == (200, b"another bundle")


def test_other_bytes_can_be_served_as_a_bundle(platform: Simulator) -> None:
    platform.add_export_job("odd", bundle=b"no archive")

    assert get(bundle_url(platform, "odd")).content == b"no archive"


def test_a_file_can_be_served_as_a_bundle(tmp_path: Path, platform: Simulator) -> None:
    file = tmp_path / "bundle.tar.gz"
    file.write_bytes(bytes(range(256)) * 12_000)
    platform.put_bundle_file("export-finished", file)

    whole = get(bundle_url(platform))
    rest = get(bundle_url(platform), Range="bytes=1000000-", If_Range=whole.headers["ETag"])

    assert whole.content == file.read_bytes()
    assert int(whole.headers["Content-Length"]) == file.stat().st_size
    assert (rest.status_code, rest.content) == (206, file.read_bytes()[1_000_000:])

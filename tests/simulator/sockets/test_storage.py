"""The object storage behind the presigned links."""

import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from admin_api_simulator import Simulator
from admin_api_simulator.site import ArchiveKind
from tests.simulator.sockets.client import bundle_url


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


@pytest.mark.parametrize(
    ("archive", "content_type"),
    [
        ("tar", "application/x-tar"),
        ("tar.bz2", "application/x-bzip2"),
        ("tar.xz", "application/x-xz"),
        ("zip", "application/zip"),
    ],
)
def test_a_bundle_may_be_another_kind_of_archive(archive: ArchiveKind, content_type: str) -> None:
    with Simulator(archive=archive) as platform:
        url = bundle_url(platform)
        response = get(url)

    assert urlsplit(url).path.endswith(f"/bundle.{archive}")
    assert response.headers["Content-Type"] == content_type


def test_the_storage_is_on_another_port(platform: Simulator) -> None:
    assert bundle_url(platform).startswith(f"{platform.storage_url}/")
    assert urlsplit(platform.storage_url).port != urlsplit(platform.base_url).port


def test_an_expired_link_is_refused() -> None:
    with Simulator(link_seconds=0.05) as platform:
        url = bundle_url(platform)
        time.sleep(0.06)

        response = get(url)

    assert response.status_code == 403
    assert "<Code>AccessDenied</Code><Message>Request has expired</Message>" in response.text
    assert response.headers["Content-Type"] == "application/xml"


def test_a_revoked_link_is_refused_and_a_fresh_one_works(platform: Simulator) -> None:
    url = bundle_url(platform)
    platform.revoke_links()

    assert get(url).status_code == 400
    assert "<Code>ExpiredToken</Code>" in get(url).text
    assert get(bundle_url(platform)).status_code == 200


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


def test_a_link_whose_comma_was_encoded_on_the_way_still_works(platform: Simulator) -> None:
    assert get(bundle_url(platform).replace(",", "%2C")).status_code == 200


def test_a_deleted_bundle_is_reported_as_a_missing_key(platform: Simulator) -> None:
    url = bundle_url(platform)
    platform.delete_bundle("export-finished")

    response = get(url)

    assert response.status_code == 404
    assert "<Code>NoSuchKey</Code>" in response.text
    assert get(bundle_url(platform)).status_code == 200


def test_a_bundle_that_was_moved_has_the_same_bytes_at_another_path(platform: Simulator) -> None:
    urls = [bundle_url(platform)]
    whole = get(urls[0])
    for _ in range(2):
        platform.move_bundle("export-finished")
        urls.append(bundle_url(platform))

    responses = [get(url) for url in urls]

    assert len({urlsplit(url).path for url in urls}) == 3
    assert [response.status_code for response in responses] == [404, 404, 200]
    assert "<Code>NoSuchKey</Code>" in responses[0].text
    assert (responses[2].content, responses[2].headers["ETag"]) == (whole.content, whole.headers["ETag"])


def test_a_bundle_can_be_moved_before_it_is_packed(platform: Simulator) -> None:
    platform.move_bundle("export-finished")

    assert get(bundle_url(platform)).status_code == 200


def test_an_authorization_header_beside_the_signature_is_refused(platform: Simulator) -> None:
    response = get(bundle_url(platform), Authorization="Bearer key")

    assert response.status_code == 400
    assert "<Code>InvalidArgument</Code>" in response.text


def test_only_get_is_signed(platform: Simulator) -> None:
    assert requests.head(bundle_url(platform), timeout=10).status_code == 403
    assert requests.post(bundle_url(platform), timeout=10).status_code == 403


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


def test_a_storage_without_ranges_always_sends_the_whole() -> None:
    with Simulator(ranges=False) as platform:
        whole = get(bundle_url(platform))
        etag = whole.headers["ETag"]

        responses = [
            get(bundle_url(platform), Range="bytes=5-"),
            get(bundle_url(platform), Range="bytes=5-", If_Range=etag),
            get(bundle_url(platform), Range=f"bytes={len(whole.content)}-"),
        ]

    assert "Accept-Ranges" not in whole.headers
    assert [(response.status_code, response.content) for response in responses] == [(200, whole.content)] * 3


def test_a_weak_etag_never_fits_an_if_range() -> None:
    with Simulator(etags="weak") as platform:
        etag = get(bundle_url(platform)).headers["ETag"]

        weak = get(bundle_url(platform), Range="bytes=5-", If_Range=etag)
        as_if_strong = get(bundle_url(platform), Range="bytes=5-", If_Range=etag.removeprefix("W/"))
        unconditional = get(bundle_url(platform), Range="bytes=5-")

    assert etag.startswith('W/"')
    assert [weak.status_code, as_if_strong.status_code, unconditional.status_code] == [200, 200, 206]


def test_a_storage_without_etags_has_the_time_of_the_last_change() -> None:
    with Simulator(etags="none") as platform:
        headers = get(bundle_url(platform)).headers

        response = get(bundle_url(platform), Range="bytes=5-", If_Range=headers["Last-Modified"])

    assert "ETag" not in headers
    assert response.status_code == 206


def test_a_link_may_lead_to_the_bundle_by_a_redirect() -> None:
    with Simulator(redirect_downloads=True) as platform:
        url = bundle_url(platform)
        first = requests.get(url, timeout=10, allow_redirects=False)
        second = get(first.headers["Location"], Range="bytes=5-")

    assert url.startswith(f"{platform.storage_url}/go/")
    assert first.status_code == 302
    assert first.headers["Location"].startswith(f"{platform.storage_url}/exports/")
    assert second.status_code == 206
    assert [request.operation for request in platform.requests] == ["make_bundle", "download", "download"]


def test_a_redirect_leads_to_the_refusal_of_a_link_that_ended() -> None:
    with Simulator(redirect_downloads=True) as platform:
        url = bundle_url(platform)
        platform.revoke_links()

        response = get(url)

    assert [one.status_code for one in (*response.history, response)] == [302, 400]


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


def test_what_is_not_there_is_reported_at_once(tmp_path: Path, platform: Simulator) -> None:
    with pytest.raises(FileNotFoundError):
        platform.put_bundle_file("export-finished", tmp_path / "gone")
    with pytest.raises(KeyError):
        platform.put_bundle_file("nowhere", Path(__file__))
    with pytest.raises(KeyError):
        platform.put_bundle("nowhere", b"")
    with pytest.raises(KeyError):
        platform.move_bundle("nowhere")


def test_another_file_has_another_etag(tmp_path: Path, platform: Simulator) -> None:
    etags = []
    for content in (b"one", b"other"):
        (tmp_path / "bundle").write_bytes(content)
        platform.put_bundle_file("export-finished", tmp_path / "bundle")
        etags.append(get(bundle_url(platform)).headers["ETag"])

    assert etags[0] != etags[1]


def test_one_connection_serves_several_downloads(platform: Simulator) -> None:
    address = urlsplit(platform.storage_url)
    connection = HTTPConnection(str(address.hostname), address.port or 0, timeout=10)

    with closing(connection):
        sizes = []
        ports = []
        for _ in range(2):
            connection.request("GET", bundle_url(platform).removeprefix(platform.storage_url))
            ports.append(connection.sock.getsockname())
            sizes.append(len(connection.getresponse().read()))

    assert sizes[0] == sizes[1] > 0
    assert ports[0] == ports[1]


def test_a_download_that_nobody_reads_holds_no_other_up() -> None:
    with Simulator(asset_bytes=20_000_000) as large:
        url = bundle_url(large)
        with requests.get(url, timeout=10, stream=True) as unread:
            read = get(bundle_url(large))
            rest = unread.content

    assert len(read.content) > 20_000_000
    assert rest == read.content

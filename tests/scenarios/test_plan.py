"""A site is compared with what is published.

That shows what people and later steps learn, and what stops a publication.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault
from admin_api_simulator.site import SiteChange, build_archive
from tests import archives
from tests.action import Action
from tests.ended import Ended
from tests.forms import BOTH_FORMS
from tests.keys import ADMIN_KEY
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

pytestmark = BOTH_FORMS

DOMAIN: Final = "docs.example.com"
PATHS: Final = {
    "site_path": "next/{domain}",
    "manifest_path": "next.{domain}.manifest",
    "compare_with": "{domain}.manifest",
}
PAGES: Final = 12
HTML_FILES: Final = PAGES + 1  # the page for missing addresses, too
THREE_KINDS: Final = SiteChange(added=1, changed=2, removed=3)
NONE: Final = {"added": 0, "textChanged": 0, "changed": 0, "removed": 0, "unchanged": 0}
NO_FILES: Final = {"added": 0, "changed": 0, "removed": 0, "unchanged": 2}


class Site:
    """A site that is published by one workspace again and again."""

    def __init__(self, action: Action, *, is_published: bool = True, **options: Any) -> None:
        self.action = action
        self.workspace = action.workspace
        self.disappears: list[Path] = []  # at the first request
        self.platform = VirtualPlatform(
            VirtualClock(), trouble=lambda _sent: self._remove(), pages=PAGES, **options
        )
        if is_published:
            assert self.export(first_publication="true").exit_code == 0
            self.publish()

    def export(
        self, change: SiteChange | None = None, domain: str = DOMAIN, **inputs: str
    ) -> Ended:
        if change is not None:
            self.platform.simulator.plan_export(DOMAIN, ExportPlan(change=change))
        given = {**PATHS, "changes_path": "changes.{domain}.json", "domain": domain, **inputs}
        return self.action.run(self.platform, **given)

    def publish(self, domain: str = DOMAIN) -> None:
        self.path(f"next.{domain}.manifest").rename(self.path(f"{domain}.manifest"))
        self.path(f"next/{domain}").rename(self.path(f"published-{domain}"))

    def _remove(self) -> None:
        while self.disappears:
            self.disappears.pop().unlink()

    def path(self, name: str) -> Path:
        return self.workspace / name

    def read_changes(self) -> dict[str, list[str]]:
        changes: dict[str, list[str]] = json.loads(self.path(f"changes.{DOMAIN}.json").read_text())
        return changes


@pytest.fixture
def site(action: Action) -> Site:
    """Return a site of which twelve pages are published."""
    return Site(action)


def test_the_first_publication_adds_everything_and_says_so(action: Action) -> None:
    site = Site(action, is_published=False)

    ended = site.export(first_publication="true", max_removed="0%")

    assert ended.outputs["changed"] == "true"
    assert ended.outputs["manifestPath"] == f"next.{DOMAIN}.manifest"
    assert ended.result["changes"]["pages"] == {**NONE, "added": HTML_FILES}
    assert len(site.read_changes()["added"]) == HTML_FILES + 3
    for text in (ended.log, ended.summary):
        assert "Nothing is published yet" in text


@pytest.mark.parametrize("archive", ["tar.gz", "tar", "zip"])
def test_an_unchanged_site_has_the_same_digest_whatever_its_archive(
    action: Action, archive: Any
) -> None:
    first = Site(action, build_ids=False)
    published = first.path(f"{DOMAIN}.manifest").read_bytes()
    site = Site(action, is_published=False, build_ids=False, archive=archive)

    ended = site.export(max_removed="0")

    assert ended.outputs["changed"] == "false"
    assert ended.result["changed"] is False
    assert ended.result["changes"]["pages"] == {**NONE, "unchanged": HTML_FILES}
    assert site.path(f"next.{DOMAIN}.manifest").read_bytes() == published
    assert not any(site.read_changes().values())


def test_where_only_build_ids_differ_no_text_has_changed(site: Site) -> None:
    ended = site.export()

    assert ended.outputs["changed"] == "true"
    assert ended.result["changes"] == {
        "pages": {**NONE, "changed": HTML_FILES},
        "files": {**NO_FILES, "unchanged": 3},
    }
    changes = f"pages: {HTML_FILES} otherwise changed; other files: 3 unchanged"
    assert f"Changes: {changes}\n" in ended.log


def test_added_changed_and_removed_pages_are_counted_and_listed(site: Site) -> None:
    ended = site.export(THREE_KINDS)

    changes = site.read_changes()
    assert ended.result["changes"] == {
        "pages": {"added": 1, "textChanged": 2, "changed": 8, "removed": 3, "unchanged": 0},
        "files": {**NO_FILES, "changed": 1},  # the sitemap
    }
    assert changes["added"] == ["guides/new-1.html"]
    assert changes["textChanged"] == ["guides/page-2.html", "guides/page-3.html"]
    assert changes["removed"] == [f"guides/page-{number}.html" for number in (10, 11, 12)]
    assert "sitemap.xml" in changes["changed"]
    assert ended.outputs["changesPath"] == f"changes.{DOMAIN}.json"
    for path in [*changes["added"], *changes["textChanged"], *changes["removed"]]:
        assert f"- {path}\n" in ended.summary


def test_a_site_that_lost_half_of_its_pages_is_stopped_and_can_be_collected(site: Site) -> None:
    half = SiteChange(removed=PAGES // 2)

    ended = site.export(half, max_removed="10%", bundle_path="b", values_file="v.yaml")

    assert ended.end == (1, "too-many-removed")
    reason = "6 of 13 published pages would be removed, but `max-removed` (10%) allows 1"
    assert reason in ended.error
    outputs = {*ended.outputs}
    assert {"changed", "siteSha256", "changesPath", "bundleSha256"} < outputs
    assert outputs.isdisjoint({"bundleUrl", "bundlePath", "sitePath", "manifestPath", "valuesFile"})
    assert ended.result["changes"]["pages"]["removed"] == 6
    assert len(site.read_changes()["removed"]) == 6
    left = {f"changes.{DOMAIN}.json", f"{DOMAIN}.manifest", f"published-{DOMAIN}", "next"}
    assert {path.name for path in site.workspace.iterdir()} == left
    assert not [*site.path("next").iterdir()]

    collected = site.export(mode="collect", job_id=ended.outputs["jobId"], max_removed="6")

    assert collected.exit_code == 0
    limit = "6 of 13 published pages would be removed; `max-removed` allows 6."
    assert limit in collected.log
    assert limit.replace("`", "") in collected.summary.replace("`", "")
    assert collected.outputs["siteSha256"] == ended.outputs["siteSha256"]
    assert collected.result["changes"] == ended.result["changes"]
    assert site.platform.simulator.count("start_export") == 2


@pytest.mark.parametrize(
    ("max_removed", "reason"),
    [("5", "too-many-removed"), ("6", None), ("46%", "too-many-removed"), ("47%", None)],
)
def test_the_guard_allows_exactly_what_it_says(
    site: Site, max_removed: str, reason: str | None
) -> None:
    ended = site.export(SiteChange(removed=6), max_removed=max_removed)

    assert ended.reason == reason


def test_renamed_scripts_are_no_removed_pages_and_renamed_pages_are(action: Action) -> None:
    site = Site(action, is_published=False)
    old = {"index.html": b"a", "guide.HTML": b"b", "app-1.js": b"c", "app-1.css": b"d"}
    new = {"index.html": b"a", "guides.HTML": b"b", "app-2.js": b"c", "app-2.css": b"d"}
    site.platform.simulator.plan_export(DOMAIN, ExportPlan(bundle=build_archive(old, "tar")))
    site.export(first_publication="true")
    site.publish()
    site.platform.simulator.plan_export(DOMAIN, ExportPlan(bundle=build_archive(new, "tar")))

    none_allowed = site.export(max_removed="0")
    one_allowed = site.export(max_removed="1")

    assert none_allowed.reason == "too-many-removed"
    assert one_allowed.reason is None


V1: Final = {"v1/index.html": b"a"}
V2: Final = {f"v2/{name}.html": b"b" for name in ("index", "guide", "api")}


def plan_versions(site: Site, links: dict[str, str]) -> None:
    """Let the next export have two versions of the pages, and these links."""
    content = archives.Site(files={"index.html": b"start", **V1, **V2}, links=links)
    site.platform.simulator.plan_export(DOMAIN, ExportPlan(bundle=archives.tar(content)))


@pytest.mark.parametrize(
    ("links", "changed", "removed"),
    [
        ({"latest": "v2"}, "false", []),
        ({"latest": "v1"}, "true", ["latest/api.html", "latest/guide.html"]),
        ({}, "true", ["latest", "latest/api.html", "latest/guide.html", "latest/index.html"]),
    ],
    ids=["the same", "to a version with fewer pages", "dropped"],
)
def test_pages_that_disappear_behind_a_link_to_a_folder_are_removed(
    action: Action, links: dict[str, str], changed: str, removed: list[str]
) -> None:
    site = Site(action, is_published=False)
    plan_versions(site, {"latest": "v2"})
    site.export(first_publication="true")
    site.publish()
    plan_versions(site, links)

    ended = site.export(max_removed="0", min_pages="5")

    assert ended.reason == ("too-many-removed" if removed else None)
    assert ended.outputs["changed"] == changed
    assert site.read_changes()["removed"] == removed
    pages = [path for path in removed if path.endswith(".html")]
    assert ended.result["changes"]["pages"]["removed"] == len(pages)
    plan_versions(site, links)
    too_few = site.export(min_pages="6", site_path="another")
    assert too_few.reason == "too-few-pages", "pages behind a link are not counted twice"


def test_links_that_lead_to_each_other_in_a_circle_are_refused(action: Action) -> None:
    site = Site(action, is_published=False)
    circle = {"v1/next": "../v2", "v2/previous": "../v1"}
    plan_versions(site, circle)

    ended = site.export(first_publication="true")

    assert ended.reason == "invalid-bundle"
    assert "or in a circle, which has no end" in ended.error
    plan_versions(site, circle)
    without_manifest = site.export(manifest_path="", compare_with="", changes_path="")
    assert without_manifest.exit_code == 0


@pytest.mark.parametrize("damage", ["missing", "empty", "cut off", "CRLF", "a web page"])
@pytest.mark.parametrize("several", [False, True])
def test_a_manifest_that_could_not_be_fetched_ends_the_run_before_any_request(
    site: Site, damage: str, several: bool
) -> None:
    file = site.path(f"{DOMAIN}.manifest")
    requests = len(site.platform.simulator.requests)
    whole = file.read_bytes()
    site.path("other.example.com.manifest").write_bytes(whole)
    damaged = {
        "empty": b"",
        "cut off": whole[:-200],
        "CRLF": whole.replace(b"\n", b"\r\n"),
        "a web page": b"<html>\n",
    }
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(damaged[damage])
    domains = f"other.example.com\n{DOMAIN}" if several else DOMAIN

    ended = site.export(domain=domains, max_removed="10%")

    assert ended.end == (1, "invalid-input")
    assert f"`compare-with`: '{DOMAIN}.manifest' " in ended.error
    assert ("line" in ended.error) == (damage not in {"missing", "empty"})
    assert len(site.platform.simulator.requests) == requests


def test_of_two_domains_one_is_stopped_and_the_other_published(site: Site) -> None:
    new = "new.example.com"
    inputs = {"domain": f"{DOMAIN}\n{new}", "first_publication": "true", "max_removed": "0"}

    ended = site.export(SiteChange(removed=6), **inputs)

    assert [row["failureReason"] for row in ended.results] == ["too-many-removed", None]
    assert [row["changes"]["pages"]["added"] for row in ended.results] == [0, HTML_FILES]
    assert {path.name for path in site.path("next").iterdir()} == {new}
    assert "+0 \\~0 \N{MINUS SIGN}6" in ended.summary
    assert "+13 \\~0 \N{MINUS SIGN}0" in ended.summary


def test_the_published_manifest_is_read_once_before_the_export(site: Site) -> None:
    file = site.path(f"{DOMAIN}.manifest")
    site.disappears = [file]

    ended = site.export(max_removed="0")

    assert ended.exit_code == 0
    assert not file.exists()


def test_each_export_of_a_changing_domain_differs_from_the_one_before(action: Action) -> None:
    site = Site(action, is_published=False)
    domain = "changing.example.com"
    site.export(domain=domain, first_publication="true")
    site.publish(domain)

    ended = site.export(domain=domain)

    pages = ended.result["changes"]["pages"]
    assert pages["added"] == 1
    assert pages["textChanged"] == 1
    assert pages["removed"] == 1


def publish_and_export(
    action: Action, old: Mapping[str, bytes], new: Mapping[str, bytes], **inputs: str
) -> Ended:
    """Return an export of new files where old ones are published."""
    site = Site(action, is_published=False)
    site.platform.simulator.plan_export(DOMAIN, ExportPlan(bundle=build_archive({**old}, "tar")))
    assert site.export(first_publication="true").exit_code == 0
    site.publish()
    site.platform.simulator.plan_export(DOMAIN, ExportPlan(bundle=build_archive({**new}, "tar")))
    return site.export(**inputs)


def test_a_planted_script_is_named_among_many_changed_pages_and_scripts_of_a_new_build(
    action: Action,
) -> None:
    build = {f"_next/static/chunks/{number:03}-{{}}.js": b"chunk" for number in range(300)}
    old = {name.format("old"): content for name, content in build.items()}
    new = {name.format("new"): content for name, content in build.items()}

    ended = publish_and_export(
        action,
        {**pages_with("N", 120), **old},
        {**pages_with("N, changed", 120), **new, "assets/loader.js": b"planted"},
        changes_path="",
    )

    fact = "Scripts added: 1 in 'assets/', 300 in '_next/static/'."
    assert fact in ended.log
    summary = ended.summary.replace("\\", "")
    assert fact in summary
    assert "<summary>Added: 301 other files</summary>\n\n- assets/loader.js\n" in summary
    assert "- and 70 more\n" in summary


def pages_with(text: str, count: int = 12) -> dict[str, bytes]:
    """Return pages with this text, in which `N` is the number of the page."""
    return {
        f"page-{number}.html": f"<p>{text.replace('N', str(number))}</p>".encode()
        for number in range(count)
    }


DATE_NOTE: Final = "something in each page probably changes with every export, such as a date"


def test_the_text_of_every_page_may_change_because_of_a_date(action: Action) -> None:
    ended = publish_and_export(action, pages_with("N on Monday"), pages_with("N on Tuesday"))

    assert not ended.warnings
    for text in (ended.log, ended.summary):
        assert DATE_NOTE in text


def test_a_guard_against_manifests_without_pages_ends_the_run_before_any_request(
    site: Site,
) -> None:
    requests = len(site.platform.simulator.requests)
    site.path(f"{DOMAIN}.manifest").write_text(f"# 1 files\n{0:064x}  guide.htm\n")

    ended = site.export(max_removed="10%")

    assert ended.end == (1, "invalid-input")
    assert f"no pages (`.html` files) are listed in '{DOMAIN}.manifest'; remove" in ended.error
    assert len(site.platform.simulator.requests) == requests


def test_of_several_sites_those_that_are_new_are_named_even_if_every_export_fails(
    site: Site,
) -> None:
    site.platform.simulator.script("start_export", *[Fault(status=400)] * 2)
    domains = f"{DOMAIN}\nnew.example.com"

    ended = site.export(domain=domains, first_publication="true")

    named = (
        "First publication (no manifest yet): new.example.com. Compared with a manifest: 1 site."
    )
    assert [row["failureReason"] for row in ended.results] == ["rejected", "rejected"]
    assert named in ended.summary
    before_any_start, _, _ = ended.log.partition("0:00")
    assert f"\n{named}\n" in before_any_start


REDIRECT: Final = '<meta http-equiv="refresh" content="0; url=/N">Moved'


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (
            "Error 500",
            '12 of 12 `.html` files have the same text.\n  Their text begins with "Error 500".',
        ),
        (REDIRECT, '12 of 12 `.html` files have the same text.\n  Their text begins with "Moved".'),
        ("", "12 published pages would lose all text.\n  Without text: 'page-0.html', "),
    ],
    ids=["an error", "redirects", "no text"],
)
def test_a_site_of_nothing_but_one_text_is_warned_of_and_not_explained_away(
    action: Action, text: str, warned: str
) -> None:
    ended = publish_and_export(action, pages_with("Chapter N"), pages_with(text))

    (warning,) = ended.warnings
    assert warned in warning
    assert ended.exit_code == 0
    for shown in (ended.log, ended.summary):
        assert DATE_NOTE not in shown


def test_redirects_that_are_published_already_bring_no_warning(action: Action) -> None:
    redirects = pages_with(REDIRECT)

    ended = publish_and_export(action, redirects, {**redirects, "new.html": b"New"})

    assert ended.exit_code == 0
    assert not ended.warnings


def test_the_warning_also_comes_if_too_many_pages_are_removed(action: Action) -> None:
    ended = publish_and_export(
        action, pages_with("Chapter N"), pages_with("Error", 6), max_removed="1"
    )

    assert ended.end == (1, "too-many-removed")
    (warning,) = ended.warnings
    assert "6 of 6 `.html` files have the same text." in warning


def test_the_text_of_a_page_starts_no_command_and_holds_no_key(action: Action) -> None:
    begin, end = ADMIN_KEY[:9], ADMIN_KEY[9:]  # the tag between them is no text
    text = f"\n::error::stop\n##[error]x {begin}<b>{end}</b>, and more"

    ended = publish_and_export(action, pages_with("Chapter N"), pages_with(text))

    (warning,) = ended.warnings  # `Ended` looks for the key
    assert 'Their text begins with ": :error: :stop # #[error]x ***, and more"' in warning
    assert not ended.errors


def test_names_in_another_unicode_form_are_explained_where_they_count_as_removed(
    action: Action,
) -> None:
    pages = pages_with("Chapter N")

    ended = publish_and_export(
        action,
        {**pages, "caf\u00e9 *a*.html": b"a"},
        {**pages, "cafe\u0301 *a*.html": b"a"},
        max_removed="0",
    )

    assert ended.end == (1, "too-many-removed")
    note = "this name was NFC and is now NFD: 'cafe\u0301 *a*.html'."
    for text in (ended.error, ended.log):
        assert note in text
    assert ended.summary.count(note.replace("*", "\\*")) == 2  # the error and the changes


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (
            b"<p>One and two</p><pre>a:\n  b</pre>",
            b"<div>\n  <p>\n    One\n    and two\n  </p>\n  <pre>a:\n  b</pre>\n</div>\n",
            "changed",
        ),
        (b"<pre>a:\n  b</pre>", b"<pre>a:\nb</pre>", "textChanged"),
        (b"<p>a &amp; b</p>", b"<p>a &#38; b</p>", "changed"),
        (
            b"<title>The <script> element</title><p>One</p>",
            b"<title>The <script> element</title><p>Two</p>",
            "textChanged",
        ),
        (b"<svg><style/></svg><p>One</p>", b"<svg><style/></svg><p>Two</p>", "textChanged"),
    ],
    ids=["indented", "a sample of YAML", "a reference", "a title with a tag", "in a drawing"],
)
def test_a_page_counts_as_changed_in_its_text_only_where_a_reader_sees_it(
    action: Action, old: bytes, new: bytes, kind: str
) -> None:
    ended = publish_and_export(action, {"index.html": old}, {"index.html": new})

    assert ended.result["changes"]["pages"] == {**NONE, kind: 1}

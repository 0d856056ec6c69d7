"""Inputs become settings, or one error that names every wrong one; `tests/wording/inputs.md` has the errors and warnings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import read_key, read_mode, read_plan, unknown_inputs
from docs_platform_action.inputs.settings import INPUTS, AgentSettings, DeliverySettings, ExportSettings, OutputPath, Plan
from tests.keys import ADMIN_KEY

WORKSPACE = Path("/github/workspace")
EXPORT = {"base-url": "https://api.example.com", "admin-key": ADMIN_KEY, "domain": "docs.example.com"}
AGENT = {
    "mode": "agent",
    "base-url": "https://api.example.com",
    "admin-key": ADMIN_KEY,
    "project-id": "prj_1",
    "job-id": "aj_1",
}


def environ(inputs: Mapping[str, str]) -> dict[str, str]:
    return {f"INPUT_{name.upper()}": value for name, value in inputs.items()}


def plan(base: Mapping[str, str], *roots: Path, **changes: str) -> Plan:
    inputs = {**base, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return read_plan(environ(inputs), roots=roots or (WORKSPACE,))


def export(**changes: str) -> ExportSettings:
    settings = plan(EXPORT, **changes).jobs[0]
    assert isinstance(settings, ExportSettings)
    return settings


def agent(**changes: str) -> AgentSettings:
    settings = plan(AGENT, **changes).jobs[0]
    assert isinstance(settings, AgentSettings)
    return settings


def error_of(base: Mapping[str, str], *roots: Path, **changes: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        plan(base, *roots, **changes)
    return caught.value


def refused(base: Mapping[str, str], *roots: Path, **changes: str) -> list[str]:
    """Return the names of the refused inputs, one for each error."""
    error = error_of(base, *roots, **changes)
    return [text.split("`")[1] for text in error.details or [error.summary]]


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Return a workspace and a temporary folder."""
    roots = [tmp_path / "workspace", tmp_path / "temporary"]
    for folder in roots:
        folder.mkdir()
    return roots


class TestDefaults:
    def test_an_export_needs_an_address_a_key_and_a_domain_alone(self) -> None:
        settings, read = export(), plan(EXPORT)

        assert read.base_url == "https://api.example.com"
        assert read.admin_key == ADMIN_KEY
        assert read.outage_tolerance_seconds == 300
        assert read.authorities_pem is None
        assert settings.waiting.timeout_seconds == 3600
        assert settings.waiting.shortest_pause_seconds == 1
        assert settings.waiting.longest_pause_seconds == 30
        assert settings.domain == "docs.example.com"
        assert settings.job_id is None
        assert settings.wait is True
        assert settings.start_options == {}
        assert settings.delivery == DeliverySettings()

    def test_an_agent_job_needs_an_address_a_key_a_project_and_a_job(self) -> None:
        settings = agent()

        assert (settings.project_id, settings.job_id, settings.require_pr) == ("prj_1", "aj_1", False)
        assert settings.waiting.timeout_seconds == 3600

    @pytest.mark.parametrize("nothing", ["", " \t\n "])
    def test_an_empty_input_is_one_that_is_left_out(self, nothing: str) -> None:
        optional = {known.name: nothing for known in INPUTS if known.name not in EXPORT}

        assert plan({**EXPORT, **optional}) == plan(EXPORT)

    def test_every_input_is_trimmed(self) -> None:
        padded = {name: f" \t{value}\n" for name, value in AGENT.items()}

        assert plan(padded) == plan(AGENT)

    @pytest.mark.parametrize("text", ["\ufeffdocs.example.com", " \ufeff docs.example.com\ufeff\n", "\ufeff\n docs.example.com"])
    def test_a_byte_order_mark_is_trimmed_too(self, text: str) -> None:
        assert export(domain=text).domain == "docs.example.com"

    def test_a_key_is_masked_without_it(self) -> None:
        assert read_key(environ({"admin-key": f" \ufeff{ADMIN_KEY}\n"})) == ADMIN_KEY

    def test_the_mode_is_export_unless_said_otherwise(self) -> None:
        assert read_mode({}) == "export"
        assert read_mode({"INPUT_MODE": " agent "}) == "agent"
        assert read_mode({"INPUT_MODE": "Agent"}) is None

    def test_the_key_is_read_before_anything_else_is_known(self) -> None:
        assert read_key({"INPUT_ADMIN-KEY": f" {ADMIN_KEY}\n"}) == ADMIN_KEY
        assert read_key({}) == ""

    def test_settings_do_not_show_the_key(self) -> None:
        assert ADMIN_KEY not in repr(plan(EXPORT))


class TestRefusals:
    def test_all_mistakes_are_reported_together(self) -> None:
        assert refused({}, timeout="soon", wait="maybe") == ["base-url", "admin-key", "domain", "timeout", "wait"]

    @pytest.mark.parametrize("name", [known.name for known in INPUTS if known.name != "mode"])
    def test_with_an_unknown_mode_every_other_mistake_is_reported_too(self, name: str) -> None:
        assert refused({**EXPORT, name: "a\x1bb"}, mode="import") == ["mode", name]

    def test_with_an_unknown_mode_nothing_is_missing_that_one_mode_requires(self) -> None:
        neither = {name: value for name, value in EXPORT.items() if name != "domain"}

        assert refused(neither, mode="Agent", job_id="") == ["mode"]
        assert refused(neither, mode="Agent", admin_key="") == ["mode", "admin-key"]

    @pytest.mark.parametrize(
        ("base", "name", "template"),
        [
            (EXPORT, "mode", "{}"),
            (EXPORT, "domain", "https://{}.example.com/"),
            (EXPORT, "base-url", "https://api.example.com?key={}"),
            (EXPORT, "timeout", "{}"),
            (EXPORT, "ca-bundle", "../{}"),
            (EXPORT, "wait", "x" * 70 + "{}"),
            (EXPORT, "job-id", "{}"),
            (AGENT, "project-id", "{}"),
        ],
    )
    def test_a_key_in_the_wrong_input_is_refused_and_not_shown(self, base: dict[str, str], name: str, template: str) -> None:
        inputs = {**base, name: template.format(ADMIN_KEY)}

        assert refused(inputs) == [name]
        assert ADMIN_KEY[:8] not in error_of(inputs).summary

    @pytest.mark.parametrize("inside", ["\u200b", "\ufeff", "\n", " "])
    def test_nor_is_one_that_was_pasted_with_something_inside(self, inside: str) -> None:
        assert ADMIN_KEY[:8] not in error_of(EXPORT, domain=f"{ADMIN_KEY[:9]}{inside}{ADMIN_KEY[9:]}").summary


class TestMisplacedInputs:
    @pytest.mark.parametrize("base", [EXPORT, AGENT])
    def test_defaults_that_the_runner_fills_in_are_not_warned_of(self, base: dict[str, str]) -> None:
        filled_in = {known.name: known.default for known in INPUTS}

        assert plan({**filled_in, **base}).warnings == ()

    def test_a_malformed_one_is_warned_of_and_not_refused(self) -> None:
        assert len(plan(AGENT, wait="perhaps").warnings) == 1

    def test_empty_start_options_are_not_warned_of(self) -> None:
        assert plan(EXPORT, job_id="se_1", start_options="{}").warnings == ()

    def test_what_has_an_effect_is_not_warned_of(self, roots: list[Path]) -> None:
        inputs = {"bundle_path": "bundle", "site_path": "site", "values_file": "values.yaml", "export_version": "v1"}

        assert plan(EXPORT, *roots, mask_bundle_url="true", **inputs).warnings == ()


class TestUnknownInputs:
    @pytest.mark.parametrize(
        "names",
        [
            [f"INPUT_{known.name.upper()}" for known in INPUTS],
            ["INPUT_ARGS", "INPUT_ENTRYPOINT"],  # which every container action has
            ["PATH", "INPUT_", "input_domian", "MY_INPUT_DOMIAN", "GITHUB_OUTPUT"],
        ],
    )
    def test_nothing_else_is_warned_of(self, names: list[str]) -> None:
        assert unknown_inputs({**dict.fromkeys(names, "a value"), "INPUT_ADMIN-KEY": ADMIN_KEY}) == []

    def test_the_value_is_never_read(self) -> None:
        class Names(dict[str, str]):
            def __getitem__(self, name: str) -> str:
                raise AssertionError(f"{name} was read")

            def get(self, name: str, default: Any = None) -> Any:
                assert name == "INPUT_ADMIN-KEY"
                return super().get(name, default)

        assert len(unknown_inputs(Names({"INPUT_DOMIAN": "docs.example.com", "INPUT_ADMIN-KEY": ADMIN_KEY}))) == 1

    def test_a_key_that_was_pasted_as_a_name_is_hidden(self) -> None:
        (warning,) = unknown_inputs({"INPUT_ADMIN-KEY": ADMIN_KEY, f"INPUT_{ADMIN_KEY.upper()}-X": ""})

        assert ADMIN_KEY.lower() not in warning.lower()

    def test_many_are_counted(self) -> None:
        assert len(unknown_inputs({f"INPUT_X{number:03}": "" for number in range(50)})) == 21


class TestBooleans:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False)],
    )
    def test_yaml_1_2_spellings_are_read(self, text: str, value: bool) -> None:
        assert export(wait=text).wait is value
        assert export(mask_bundle_url=text).delivery.mask_bundle_url is value
        assert agent(require_pr=text).require_pr is value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "soon") for name in ("timeout", "poll-interval", "max-poll-interval", "outage-tolerance")),
        *((name, "yes") for name in ("wait", "mask-bundle-url")),
        *((name, value) for name in ("max-parallel", "min-pages") for value in ("0", "-1", "1.5", "ten", "1e1", "٣", "9" * 5000)),
        *(("max-parallel", "101"), ("min-pages", "000"), ("job-id", "a\x85b"), ("export-version", "v1\nv2")),
        *((name, "/out") for name in ("bundle-path", "site-path", "values-file", "ca-bundle")),
    ],
)
def test_an_invalid_value_is_an_error_of_its_input(roots: list[Path], name: str, value: str) -> None:
    assert refused({**EXPORT, name: value}, *roots) == [name]


def test_the_longest_pause_may_be_the_shortest() -> None:
    waiting = export(poll_interval="10s", max_poll_interval="10s").waiting

    assert waiting.shortest_pause_seconds == waiting.longest_pause_seconds == 10


class TestSeveralDomains:
    SEVERAL = "a.example.com\n\n  b.example.com:8443\nC.example.com\n"

    def test_each_line_is_an_export_that_differs_in_its_domain_alone(self) -> None:
        jobs = plan(EXPORT, domain=self.SEVERAL, start_options='{"version": "v2"}', timeout="5m", wait="false").jobs

        assert [job.domain for job in jobs if isinstance(job, ExportSettings)] == [
            "a.example.com",
            "b.example.com:8443",
            "C.example.com",
        ]
        assert {job.waiting for job in jobs} == {jobs[0].waiting}
        assert [(job.wait, job.start_options) for job in jobs if isinstance(job, ExportSettings)] == [
            (False, {"version": "v2"})
        ] * 3

    def test_ten_run_at_the_same_time_unless_said_otherwise(self) -> None:
        assert plan(EXPORT, domain=self.SEVERAL).max_parallel == 10
        assert [plan(EXPORT, max_parallel=text).max_parallel for text in ("1", "07", "100")] == [1, 7, 100]

    @pytest.mark.parametrize(("text", "number"), [("1", 1), ("400", 400), ("007", 7), ("999999999", 999_999_999)])
    def test_min_pages_holds_for_each(self, text: str, number: int) -> None:
        jobs = plan(EXPORT, domain=self.SEVERAL, min_pages=text).jobs

        assert [job.delivery.min_pages for job in jobs if isinstance(job, ExportSettings)] == [number] * 3


class TestJobId:
    @pytest.mark.parametrize("job_id", ["se_1", "a/b", "..", "%2F", "with space", "ünïcödé", "🙂"])
    def test_any_text_without_control_characters_names_a_job(self, job_id: str) -> None:
        assert export(job_id=job_id).job_id == job_id
        assert agent(job_id=job_id).job_id == job_id

    def test_neither_it_nor_the_project_has_control_characters(self) -> None:
        assert refused(AGENT, job_id="a\nb", project_id="a\x1bb") == ["job-id", "project-id"]

    def test_it_replaces_the_domain(self) -> None:
        settings = export(domain="", job_id="se_1")

        assert (settings.domain, settings.job_id) == (None, "se_1")

    def test_a_domain_beside_it_is_its_label(self) -> None:
        settings = export(job_id="se_1")

        assert (settings.domain, settings.job_id) == ("docs.example.com", "se_1")


class TestPaths:
    @pytest.fixture
    def roots(self, roots: list[Path], authority_pem: bytes) -> list[Path]:
        """Return folders with a certificate in each; one is above both."""
        for folder in [*roots, roots[0].parent]:
            (folder / "ca.pem").write_bytes(authority_pem)
        (roots[0] / "link.pem").symlink_to("../ca.pem")
        (roots[0].parent / "link").symlink_to(roots[0])
        return roots

    @pytest.mark.parametrize(
        "path", ["ca.pem", "x/../ca.pem", "../workspace/ca.pem", "../temporary/ca.pem", "{temporary}/ca.pem"]
    )
    def test_one_inside_the_workspace_or_the_temporary_folder_is_fine(self, roots: list[Path], path: str) -> None:
        assert plan(EXPORT, *roots, ca_bundle=path.format(temporary=roots[1])).authorities_pem

    def test_a_workspace_that_is_itself_a_link_is_fine(self, roots: list[Path]) -> None:
        assert plan(EXPORT, roots[0].parent / "link", ca_bundle="ca.pem").authorities_pem

    @pytest.mark.parametrize("path", ["../ca.pem", "x/../../ca.pem", "../workspace2/ca.pem", "link.pem", "ca\x00.pem"])
    def test_one_that_leads_outside_is_refused(self, roots: list[Path], path: str) -> None:
        assert refused(EXPORT, *roots, ca_bundle=path) == ["ca-bundle"]


class TestDelivery:
    def delivery(self, roots: list[Path], **changes: str) -> DeliverySettings:
        settings = plan(EXPORT, *roots, **changes).jobs[0]
        assert isinstance(settings, ExportSettings)
        return settings.delivery

    def test_the_inputs_say_what_happens_to_the_bundle(self, roots: list[Path]) -> None:
        workspace, temporary = roots

        found = self.delivery(
            roots,
            bundle_path=str(temporary / "bundle.tar.gz"),
            site_path="out/site/",
            values_file=" ./values.yaml\n",
            export_version=" 2024-06-01 ",
        )

        assert found == DeliverySettings(
            bundle=OutputPath(path=temporary / "bundle.tar.gz", root=temporary, name=str(temporary / "bundle.tar.gz")),
            site=OutputPath(path=workspace / "out" / "site", root=workspace, name="out/site"),
            values=OutputPath(path=workspace / "values.yaml", root=workspace, name="values.yaml"),
            version="2024-06-01",
        )

    @pytest.mark.parametrize(("name", "kept"), [("bundle-path", "bundle"), ("site-path", "site"), ("values-file", "values")])
    def test_each_of_them_goes_alone(self, roots: list[Path], name: str, kept: str) -> None:
        found = self.delivery(roots, **{name: "out"})

        targets = {"bundle": found.bundle, "site": found.site, "values": found.values}
        assert {key: target.name for key, target in targets.items() if target is not None} == {kept: "out"}

    def test_an_invalid_path_overlaps_with_no_other(self, roots: list[Path]) -> None:
        (roots[0] / "out").mkdir()

        assert refused(EXPORT, *roots, bundle_path="out", site_path="out") == ["bundle-path"]


class TestPathsOfSeveralDomains:
    def test_each_domain_replaces_the_placeholder(self, roots: list[Path]) -> None:
        jobs = plan(
            EXPORT,
            *roots,
            domain="a.example.com\nb.example.com",
            bundle_path="bundles/{domain}.tar.gz",
            site_path="sites/{domain}/{domain}",
            values_file="{domain}.yaml",
        ).jobs

        assert [
            [target.name for target in (job.delivery.bundle, job.delivery.site, job.delivery.values) if target is not None]
            for job in jobs
            if isinstance(job, ExportSettings)
        ] == [
            ["bundles/a.example.com.tar.gz", "sites/a.example.com/a.example.com", "a.example.com.yaml"],
            ["bundles/b.example.com.tar.gz", "sites/b.example.com/b.example.com", "b.example.com.yaml"],
        ]

    def test_so_does_a_single_one(self, roots: list[Path]) -> None:
        (job,) = plan(EXPORT, *roots, site_path="sites/{domain}").jobs

        assert isinstance(job, ExportSettings)
        assert job.delivery.site is not None
        assert job.delivery.site.name == "sites/docs.example.com"

    @pytest.mark.parametrize("name", ["bundle-path", "site-path", "values-file"])
    def test_several_domains_need_the_placeholder(self, roots: list[Path], name: str) -> None:
        assert refused({**EXPORT, "domain": "a.example.com\nb.example.com", name: "out"}, *roots) == [name]

    def test_an_invalid_domain_is_reported_alone_where_the_path_depends_on_it(self, roots: list[Path]) -> None:
        domains = "https://a.example.com\nb.example.com"

        assert refused(EXPORT, *roots, domain=domains, site_path="../{domain}", values_file="../x") == ["domain", "values-file"]

    def test_an_invalid_domain_hides_no_error_that_does_not_depend_on_it(self, roots: list[Path]) -> None:
        changes = {"domain": "a.example.com\nb..x", "job_id": "se_1", "site_path": "out", "values_file": "{domain}"}

        assert refused(EXPORT, *roots, **changes) == ["domain", "domain", "site-path"]

    @pytest.mark.parametrize(("occupied", "errors"), [("a", 1), ("abcde", 3)])
    def test_only_a_few_errors_of_one_path_are_listed(self, roots: list[Path], occupied: str, errors: int) -> None:
        for letter in occupied:
            (roots[0] / f"{letter}.example.com").touch()

        error = error_of(EXPORT, *roots, domain="\n".join(f"{letter}.example.com" for letter in "abcde"), site_path="{domain}")

        assert error.summary.count(".example.com'") == errors

    def test_paths_of_different_domains_must_not_overlap(self, roots: list[Path]) -> None:
        assert refused(EXPORT, *roots, domain="a\nb\na.b", site_path="{domain}", values_file="b/x{domain}") == ["values-file"]

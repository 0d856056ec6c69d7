"""Inputs become settings, or one error that lists everything that is wrong."""

import re
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


def refusal(base: Mapping[str, str], *roots: Path, **changes: str) -> str:
    """Return the summary and details of the error for these inputs."""
    with pytest.raises(InvalidInput) as caught:
        plan(base, *roots, **changes)
    return "\n".join([caught.value.summary, *caught.value.details])


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
    def test_one_mistake_is_the_message(self) -> None:
        assert refusal(EXPORT, wait="yes") == "Invalid input `wait`: must be true or false, not 'yes'"

    def test_all_mistakes_come_in_one_message(self) -> None:
        message = refusal({}, timeout="soon", wait="maybe")

        first, *facts = message.splitlines()
        assert first == "5 invalid inputs: `base-url`, `admin-key`, `domain`, `timeout`, `wait`"
        assert [fact.partition(":")[0] for fact in facts] == ["`base-url`", "`admin-key`", "`domain`", "`timeout`", "`wait`"]

    def test_an_unknown_mode_is_refused_with_the_two_that_exist(self) -> None:
        message = refusal(EXPORT, mode="import")

        assert message == "Invalid input `mode`: unknown mode 'import'; use `export` or `agent`"

    @pytest.mark.parametrize("name", [known.name for known in INPUTS if known.name != "mode"])
    def test_with_an_unknown_mode_every_other_mistake_is_reported_too(self, name: str) -> None:
        message = refusal({**EXPORT, name: "a\x1bb"}, mode="import")

        assert re.match(f"2 invalid inputs: `mode`, `{name}`\n", message)

    def test_with_an_unknown_mode_nothing_is_missing_that_one_mode_requires(self) -> None:
        neither = {name: value for name, value in EXPORT.items() if name != "domain"}

        assert refusal(neither, mode="Agent", job_id="").startswith("Invalid input `mode`: ")
        assert refusal(neither, mode="Agent", admin_key="").startswith("2 invalid inputs: `mode`, `admin-key`\n")

    @pytest.mark.parametrize(
        ("base", "name", "hint"),
        [
            (EXPORT, "base-url", "missing; set it to the address"),
            (EXPORT, "admin-key", "missing; set it from a secret"),
            (EXPORT, "domain", "missing; mode export requires it, or `job-id`"),
            (AGENT, "project-id", "missing; mode agent requires it"),
            (AGENT, "job-id", "missing; mode agent requires the job"),
        ],
    )
    def test_a_missing_input_is_named_with_where_to_get_it(self, base: dict[str, str], name: str, hint: str) -> None:
        message = refusal({**base, name: ""})

        assert message.startswith(f"Invalid input `{name}`: ")
        assert hint in message

    def test_a_long_value_is_shown_shortened(self) -> None:
        message = refusal(EXPORT, wait="x" * 1000)

        assert len(message) < 200

    def test_text_that_is_not_utf_8_is_refused(self) -> None:
        assert refusal(EXPORT, domain="docs\udcff.example.com") == "Invalid input `domain`: is not valid UTF-8"

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
        message = refusal({**base, name: template.format(ADMIN_KEY)})

        assert f"`{name}`: contains the admin key" in message
        assert ADMIN_KEY[:8] not in message

    @pytest.mark.parametrize("inside", ["\u200b", "\ufeff", "\n", " "])
    def test_nor_is_one_that_was_pasted_with_something_inside(self, inside: str) -> None:
        message = refusal(EXPORT, domain=f"{ADMIN_KEY[:9]}{inside}{ADMIN_KEY[9:]}")

        assert message == "Invalid input `domain`: contains the admin key, which belongs only in `admin-key`"


class TestMisplacedInputs:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("domain", "docs.example.com"),
            ("wait", "false"),
            ("start-options", '{"version": "v2"}'),
            ("bundle-path", "bundle.tar.gz"),
            ("site-path", "../anywhere"),
            ("min-pages", "100"),
            ("values-file", "values.yaml"),
            ("export-version", "v2"),
            ("mask-bundle-url", "true"),
        ],
    )
    def test_an_export_input_is_warned_of_in_mode_agent(self, name: str, value: str) -> None:
        warnings = plan({**AGENT, name: value}).warnings

        assert warnings == (f"Input `{name}` has no effect in mode `agent`; it belongs to mode `export`.",)

    @pytest.mark.parametrize(("name", "value"), [("project-id", "prj_1"), ("require-pr", "true")])
    def test_an_agent_input_is_warned_of_in_mode_export(self, name: str, value: str) -> None:
        warnings = plan({**EXPORT, name: value}).warnings

        assert warnings == (f"Input `{name}` has no effect in mode `export`; it belongs to mode `agent`.",)

    def test_a_project_and_a_job_together_ask_for_mode_agent(self) -> None:
        warnings = plan(EXPORT, project_id="prj_1", job_id="aj_1").warnings

        assert warnings == (
            "Input `project-id` has no effect in mode `export`; it belongs to mode `agent`. Did you mean `mode: agent`?",
        )

    @pytest.mark.parametrize("base", [EXPORT, AGENT])
    def test_defaults_that_the_runner_fills_in_are_not_warned_of(self, base: dict[str, str]) -> None:
        filled_in = {known.name: known.default for known in INPUTS}

        assert plan({**filled_in, **base}).warnings == ()

    def test_even_a_malformed_one_is_warned_of_and_not_refused(self) -> None:
        assert len(plan(AGENT, wait="perhaps").warnings) == 1

    def test_start_options_have_no_effect_on_a_job_that_is_started(self) -> None:
        warnings = plan(EXPORT, job_id="se_1", start_options='{"version": "v2"}').warnings

        assert warnings == ("Input `start-options` has no effect with `job-id`, because no job is started.",)

    def test_empty_start_options_are_not_warned_of(self) -> None:
        assert plan(EXPORT, job_id="se_1", start_options="{}").warnings == ()

    def test_inputs_of_the_other_mode_are_warned_of_first(self) -> None:
        warnings = plan(EXPORT, job_id="se_1", require_pr="true", start_options='{"version": "v2"}', export_version="v1").warnings

        assert [warning.split("`")[1] for warning in warnings] == ["require-pr", "start-options", "export-version"]


class TestUnknownInputs:
    @staticmethod
    def warnings(*names: str) -> list[str]:
        return unknown_inputs({"INPUT_ADMIN-KEY": ADMIN_KEY, **{f"INPUT_{name.upper()}": "a value" for name in names}})

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            *(("site-pth", "site-path"), ("domian", "domain"), ("max_parallel", "max-parallel"), ("Job_ID", "job-id")),
            *(("bundle_pth", "bundle-path"), ("domains", "domain"), ("baseurl", "base-url"), ("api-key", "admin-key")),
            ("maxParallel", "max-parallel"),
        ],
    )
    def test_a_misspelt_one_is_named_with_the_nearest(self, name: str, meant: str) -> None:
        assert self.warnings(name) == [f"`{name.lower()}` is not an input; did you mean `{meant}`?"]

    @pytest.mark.parametrize("name", ["cache", "token", "x", "ünïcode"])
    def test_where_none_is_near_nothing_is_suggested(self, name: str) -> None:
        assert self.warnings(name) == [f"`{name}` is not an input; it has no effect."]

    def test_inputs_that_exist_are_not_warned_of(self) -> None:
        assert self.warnings(*(known.name for known in INPUTS)) == []

    def test_nor_are_the_two_keys_that_every_container_action_has(self) -> None:
        assert self.warnings("args", "entryPoint") == []

    def test_nor_are_other_variables(self) -> None:
        assert (
            unknown_inputs({"PATH": "/bin", "INPUT_": "x", "input_domian": "x", "MY_INPUT_DOMIAN": "x", "GITHUB_OUTPUT": ""})
            == []
        )

    def test_the_value_is_never_read(self) -> None:
        class Names(dict[str, str]):
            def __getitem__(self, name: str) -> str:
                raise AssertionError(f"{name} was read")

            def get(self, name: str, default: Any = None) -> Any:
                assert name == "INPUT_ADMIN-KEY"
                return super().get(name, default)

        assert len(unknown_inputs(Names({"INPUT_DOMIAN": "docs.example.com", "INPUT_ADMIN-KEY": ADMIN_KEY}))) == 1

    def test_a_key_that_was_pasted_as_a_name_is_hidden(self) -> None:
        (warning,) = self.warnings(f"{ADMIN_KEY}-x")

        assert ADMIN_KEY.lower() not in warning.lower()

    def test_a_long_name_is_cut_and_many_are_counted(self) -> None:
        assert len(self.warnings("x" * 1000)[0]) < 200
        many = self.warnings(*(f"x{number:03}" for number in range(50)))
        assert len(many) == 21
        assert many[-2:] == ["`x019` is not an input; it has no effect.", "More names that are not inputs: 30."]


class TestBooleans:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False)],
    )
    def test_yaml_1_2_spellings_are_read(self, text: str, value: bool) -> None:
        assert export(wait=text).wait is value
        assert export(mask_bundle_url=text).delivery.mask_bundle_url is value
        assert agent(require_pr=text).require_pr is value

    def test_whether_the_link_is_masked_is_one_of_them(self) -> None:
        assert refusal(EXPORT, mask_bundle_url="yes") == "Invalid input `mask-bundle-url`: must be true or false, not 'yes'"


class TestDurations:
    @pytest.mark.parametrize("name", ["timeout", "poll-interval", "max-poll-interval", "outage-tolerance"])
    def test_a_malformed_one_is_named_with_the_forms_there_are(self, name: str) -> None:
        message = refusal({**EXPORT, name: "soon"})

        assert message == (
            f"Invalid input `{name}`: 'soon' is not a duration; use a number with a unit, such as 500ms, 30s, 15m or 1h30m"
        )

    def test_the_longest_pause_is_not_below_the_shortest(self) -> None:
        message = refusal(EXPORT, poll_interval="10s", max_poll_interval="9s")

        assert message == "Invalid input `max-poll-interval`: 9s is less than poll-interval, 10s; set it to 10s or more"

    def test_both_are_named_where_one_is_the_default(self) -> None:
        message = refusal(EXPORT, poll_interval="45s")

        assert message == "Invalid input `max-poll-interval`: 30s is less than poll-interval, 45s; set it to 45s or more"

    def test_the_two_may_be_equal(self) -> None:
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

    @pytest.mark.parametrize("text", ["0", "101", "-1", "1.5", "ten", "1e1", "٣", "9" * 5000])
    def test_nothing_but_a_whole_number_in_bounds_is_read(self, text: str) -> None:
        assert "must be a whole number from 1 to 100, not '" in refusal(EXPORT, max_parallel=text)

    @pytest.mark.parametrize(("text", "number"), [("1", 1), ("400", 400), ("007", 7), ("999999999", 999_999_999)])
    def test_min_pages_holds_for_each(self, text: str, number: int) -> None:
        jobs = plan(EXPORT, domain=self.SEVERAL, min_pages=text).jobs

        assert [job.delivery.min_pages for job in jobs if isinstance(job, ExportSettings)] == [number] * 3

    @pytest.mark.parametrize("text", ["0", "000", "-1", "1.5", "ten", "1e1", "٣", "9" * 5000])
    def test_min_pages_is_a_whole_number_above_zero(self, text: str) -> None:
        assert "must be a whole number from 1 to 999,999,999, not '" in refusal(EXPORT, min_pages=text)

    def test_one_job_id_cannot_be_that_of_several(self) -> None:
        message = refusal(EXPORT, domain=self.SEVERAL, job_id="se_1")

        assert message == (
            "Invalid input `domain`: lists 3 domains, but `job-id` is the job of one; set that domain alone, or none"
        )


class TestJobId:
    @pytest.mark.parametrize("job_id", ["se_1", "a/b", "..", "%2F", "with space", "ünïcödé", "🙂"])
    def test_any_text_without_control_characters_names_a_job(self, job_id: str) -> None:
        assert export(job_id=job_id).job_id == job_id
        assert agent(job_id=job_id).job_id == job_id

    @pytest.mark.parametrize("job_id", ["a\nb", "a\x00b", "a\x85b", "a\x1bb"])
    def test_control_characters_are_refused(self, job_id: str) -> None:
        assert refusal(EXPORT, job_id=job_id) == "Invalid input `job-id`: must be one line without control characters"
        assert "`project-id`" in refusal(AGENT, project_id=job_id)

    def test_it_replaces_the_domain(self) -> None:
        settings = export(domain="", job_id="se_1")

        assert (settings.domain, settings.job_id) == (None, "se_1")

    def test_a_domain_beside_it_is_its_label(self) -> None:
        settings = export(job_id="se_1")

        assert (settings.domain, settings.job_id) == ("docs.example.com", "se_1")

    def test_not_waiting_for_a_job_that_is_started_makes_no_sense(self) -> None:
        message = refusal(EXPORT, job_id="se_1", wait="false")

        assert message.startswith("Invalid input `wait`: ")
        assert "job-id" in message


class TestPaths:
    @pytest.fixture
    def roots(self, tmp_path: Path, authority_pem: bytes) -> list[Path]:
        """Return a workspace and a temporary folder, each with a certificate; a third one is outside of both."""
        roots = [tmp_path / "workspace", tmp_path / "temporary"]
        for folder in roots:
            folder.mkdir()
        for folder in [*roots, tmp_path]:
            (folder / "ca.pem").write_bytes(authority_pem)
        return roots

    @pytest.mark.parametrize("path", ["ca.pem", "./ca.pem", "x/../ca.pem", "../workspace/ca.pem", "../temporary/ca.pem"])
    def test_one_inside_the_workspace_or_the_temporary_folder_is_fine(self, roots: list[Path], path: str) -> None:
        assert plan(EXPORT, *roots, ca_bundle=path).authorities_pem

    def test_so_is_an_absolute_one(self, roots: list[Path]) -> None:
        assert plan(EXPORT, *roots, ca_bundle=str(roots[1] / "ca.pem")).authorities_pem

    @pytest.mark.parametrize(
        "path", ["../ca.pem", "/etc/ssl/certs/ca-certificates.crt", "x/../../ca.pem", "../workspace2/ca.pem"]
    )
    def test_one_that_leads_outside_is_refused(self, roots: list[Path], path: str) -> None:
        assert "is outside the workspace" in refusal(EXPORT, *roots, ca_bundle=path)

    def test_so_is_a_link_that_leads_outside(self, roots: list[Path]) -> None:
        (roots[0] / "link.pem").symlink_to(roots[0].parent / "ca.pem")

        assert "is outside the workspace" in refusal(EXPORT, *roots, ca_bundle="link.pem")

    def test_a_workspace_that_is_itself_a_link_is_fine(self, roots: list[Path]) -> None:
        link = roots[0].parent / "link"
        link.symlink_to(roots[0])

        assert plan(EXPORT, link, ca_bundle="ca.pem").authorities_pem

    def test_links_in_a_circle_are_refused(self, roots: list[Path]) -> None:
        (roots[0] / "a.pem").symlink_to(roots[0] / "b.pem")
        (roots[0] / "b.pem").symlink_to(roots[0] / "a.pem")

        assert "`ca-bundle`" in refusal(EXPORT, *roots, ca_bundle="a.pem")

    @pytest.mark.parametrize("path", ["ca\x00.pem", "ca.pem\nother.pem"])
    def test_control_characters_are_refused(self, roots: list[Path], path: str) -> None:
        assert "contains a control character" in refusal(EXPORT, *roots, ca_bundle=path)


class TestDelivery:
    @pytest.fixture
    def roots(self, tmp_path: Path) -> list[Path]:
        """Return a workspace and a temporary folder."""
        roots = [tmp_path / "workspace", tmp_path / "temporary"]
        for folder in roots:
            folder.mkdir()
        return roots

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
            scratch=temporary,
        )

    @pytest.mark.parametrize(("name", "kept"), [("bundle-path", "bundle"), ("site-path", "site"), ("values-file", "values")])
    def test_each_of_them_goes_alone(self, roots: list[Path], name: str, kept: str) -> None:
        found = self.delivery(roots, **{name: "out"})

        targets = {"bundle": found.bundle, "site": found.site, "values": found.values}
        assert {key: target.name for key, target in targets.items() if target is not None} == {kept: "out"}

    def test_an_archive_that_is_not_kept_goes_into_the_temporary_folder(self, roots: list[Path]) -> None:
        assert self.delivery(roots).scratch == roots[1]

    def test_but_not_where_there_is_none(self, roots: list[Path]) -> None:
        assert self.delivery(roots[:1]).scratch is None

    @pytest.mark.parametrize("reason", ["missing", "read-only"])
    def test_nor_where_it_cannot_be_written_to(self, roots: list[Path], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if reason == "missing":
            roots[1].rmdir()
        else:  # root, who runs the container, may write to every folder
            monkeypatch.setattr("docs_platform_action.inputs.reader.is_usable", lambda folder: folder != roots[1])

        assert self.delivery(roots).scratch is None

    def test_a_version_of_more_than_one_line_is_refused(self, roots: list[Path]) -> None:
        assert refusal(EXPORT, *roots, values_file="values.yaml", export_version="v1\nv2") == (
            "Invalid input `export-version`: must be one line without control characters"
        )

    @pytest.mark.parametrize("name", ["bundle-path", "site-path", "values-file"])
    def test_a_path_that_would_be_lost_with_the_container_is_refused(self, roots: list[Path], name: str) -> None:
        assert refusal({**EXPORT, name: "/out"}, *roots) == (
            f"Invalid input `{name}`: '/out' is outside the workspace, so it is not shared with the container; "
            "use a path inside the workspace"
        )

    def test_all_mistakes_in_them_come_in_one_message(self, roots: list[Path]) -> None:
        (roots[0] / "folder").mkdir()

        message = refusal(
            EXPORT,
            *roots,
            bundle_path="folder",
            site_path="../site",
            values_file="a\x00",
            export_version="\x1b",
            mask_bundle_url="perhaps",
        )

        assert message.splitlines() == [
            "5 invalid inputs: `bundle-path`, `site-path`, `values-file`, `export-version`, `mask-bundle-url`",
            "`bundle-path`: 'folder' is a folder; use the path of a file.",
            (
                "`site-path`: '../site' is outside the workspace, so it is not shared with the container; "
                "use a path inside the workspace."
            ),
            "`values-file`: contains a control character.",
            "`export-version`: must be one line without control characters.",
            "`mask-bundle-url`: must be true or false, not 'perhaps'.",
        ]

    def test_overlapping_paths_are_refused(self, roots: list[Path]) -> None:
        message = refusal(EXPORT, *roots, bundle_path="site/bundle", site_path="site", values_file="site/values.yaml")

        assert message.splitlines() == [
            "2 invalid inputs: `site-path`, `values-file`",
            "`site-path`: 'site' overlaps with bundle-path, 'site/bundle'; use separate paths.",
            "`values-file`: 'site/values.yaml' overlaps with site-path, 'site'; use separate paths.",
        ]

    def test_an_invalid_path_overlaps_with_no_other(self, roots: list[Path]) -> None:
        (roots[0] / "out").mkdir()

        message = refusal(EXPORT, *roots, bundle_path="out", site_path="out")

        assert message == "Invalid input `bundle-path`: 'out' is a folder; use the path of a file"

    def test_without_waiting_nothing_is_delivered(self, roots: list[Path]) -> None:
        warnings = plan(
            EXPORT,
            *roots,
            wait="false",
            bundle_path="bundle",
            site_path="site",
            min_pages="100",
            values_file="values.yaml",
            export_version="v1",
        ).warnings

        assert warnings == tuple(
            f"Input `{name}` has no effect with `wait: false`; set it in the step that attaches with `job-id`."
            for name in ("bundle-path", "site-path", "min-pages", "values-file")
        )

    def test_a_version_goes_into_the_values_file_alone(self, roots: list[Path]) -> None:
        assert plan(EXPORT, *roots, site_path="site", export_version="v1").warnings == (
            "Input `export-version` has no effect without `values-file`.",
        )

    def test_what_has_an_effect_is_not_warned_of(self, roots: list[Path]) -> None:
        inputs = {"bundle_path": "bundle", "site_path": "site", "values_file": "values.yaml", "export_version": "v1"}

        assert plan(EXPORT, *roots, mask_bundle_url="true", **inputs).warnings == ()


class TestPathsOfSeveralDomains:
    @pytest.fixture
    def roots(self, tmp_path: Path) -> list[Path]:
        made = [tmp_path / "workspace", tmp_path / "temporary"]
        for root in made:
            root.mkdir()
        return made

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

    @pytest.mark.parametrize("name", ["bundle_path", "site_path", "values_file"])
    def test_several_domains_need_the_placeholder(self, roots: list[Path], name: str) -> None:
        message = refusal(EXPORT, *roots, domain="a.example.com\nb.example.com", **{name: "out"})

        assert message.endswith("must contain {domain}, such as out/{domain}, so that each domain gets its own path")

    def test_a_job_without_a_domain_has_nothing_to_replace_it_with(self, roots: list[Path]) -> None:
        message = refusal(EXPORT, *roots, domain="", job_id="se_1", site_path="sites/{domain}")

        assert "contains {domain}, but `domain` is not set" in message

    def test_an_invalid_domain_is_reported_alone_where_the_path_depends_on_it(self, roots: list[Path]) -> None:
        message = refusal(
            EXPORT, *roots, domain="https://a.example.com\nb.example.com", site_path="../{domain}", values_file="../x"
        )

        assert [line.split(":")[0] for line in message.splitlines()[1:]] == ["`domain`", "`values-file`"]

    def test_an_invalid_domain_hides_no_error_that_does_not_depend_on_it(self, roots: list[Path]) -> None:
        message = refusal(EXPORT, *roots, domain="a.example.com\nb..x", job_id="se_1", site_path="out", values_file="{domain}")

        assert [line.split(":")[0] for line in message.splitlines()[1:]] == ["`domain`", "`domain`", "`site-path`"]
        assert "lists 2 domains, but `job-id` is the job of one" in message
        assert "`site-path`: must contain {domain}" in message

    def test_only_a_few_errors_of_one_path_are_listed(self, roots: list[Path]) -> None:
        domains = [f"{letter}.example.com" for letter in "abcde"]
        for domain in domains:
            (roots[0] / domain).write_text("")

        message = refusal(EXPORT, *roots, domain="\n".join(domains), site_path="{domain}")

        assert message.count("is a file; use a folder") == 3
        assert message.endswith("; and 2 more")

    def test_a_few_errors_are_listed_without_a_count(self, roots: list[Path]) -> None:
        (roots[0] / "a.example.com").write_text("")

        message = refusal(EXPORT, *roots, domain="a.example.com\nb.example.com", site_path="{domain}")

        assert message == "Invalid input `site-path`: 'a.example.com' is a file; use a folder that is missing or empty"

    def test_paths_of_different_domains_must_not_overlap(self, roots: list[Path]) -> None:
        message = refusal(EXPORT, *roots, domain="a\nb\na.b", site_path="{domain}", values_file="b/x{domain}")

        assert message.startswith("Invalid input `values-file`: 'b/x")
        assert "' overlaps with site-path, 'b'; use separate paths" in message

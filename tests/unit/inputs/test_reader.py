"""Inputs become settings, or one error that names every wrong one; `tests/wording/inputs.md` has the errors and warnings."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import Reader
from docs_platform_action.inputs.settings import DeliverySettings, JobSettings, Mode, OutputPath, Settings
from docs_platform_action.inputs.table import DEFAULTS, TARGETS
from docs_platform_action.text import MAX_JOINED_ERRORS
from tests.keys import ADMIN_KEY

WORKSPACE = Path("/github/workspace")
EXPORT = {"base-url": "https://api.example.com", "admin-key": ADMIN_KEY, "domain": "docs.example.com"}
COLLECT = {"mode": "collect", "base-url": "https://api.example.com", "admin-key": ADMIN_KEY, "job-id": "se_1"}
AGENT = {**COLLECT, "mode": "agent", "project-id": "prj_1", "job-id": "aj_1"}


def reader_of(inputs: Mapping[str, str], *, in_workflow: bool = True) -> Reader:
    return Reader({f"INPUT_{name.upper()}": value for name, value in inputs.items()}, in_workflow=in_workflow)


def outside(inputs: Mapping[str, str]) -> Reader:
    """Return the reader of a run outside a workflow."""
    return reader_of(inputs, in_workflow=False)


def changed(base: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    return {**base, **{name.replace("_", "-"): value for name, value in changes.items()}}


def settings(base: Mapping[str, str], *roots: Path, **changes: str) -> Settings:
    return reader_of(changed(base, changes)).read(roots=roots or (WORKSPACE,))


def job(base: Mapping[str, str], *roots: Path, **changes: str) -> JobSettings:
    (only,) = settings(base, *roots, **changes).jobs
    return only


def warnings(base: Mapping[str, str], *roots: Path, **changes: str) -> list[str]:
    reader = reader_of(changed(base, changes))
    reader.read(roots=roots or (WORKSPACE,))
    return reader.warnings


def error_of(reader: Reader, *roots: Path) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        reader.read(roots=roots or (WORKSPACE,))
    return caught.value


def refused_by(reader: Reader, *roots: Path) -> list[str]:
    """Return the names of the refused inputs, one for each error."""
    error = error_of(reader, *roots)
    return [text.split("`")[1] for text in error.details or [error.summary]]


def refused(base: Mapping[str, str], *roots: Path, **changes: str) -> list[str]:
    return refused_by(reader_of(changed(base, changes)), *roots)


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Return a workspace and a temporary folder."""
    roots = [tmp_path / "workspace", tmp_path / "temporary"]
    for folder in roots:
        folder.mkdir()
    return roots


class TestDefaults:
    def test_an_export_needs_an_address_a_key_and_a_domain_alone(self) -> None:
        read = settings(EXPORT)
        (export,) = read.jobs

        assert read.base_url == "https://api.example.com"
        assert read.admin_key == ADMIN_KEY
        assert read.outage_tolerance_seconds == 300
        assert read.ca_bundle is None
        assert export.mode is Mode.EXPORT
        assert export.waiting.timeout_seconds == 3600
        assert export.waiting.poll_interval_seconds == 1
        assert export.waiting.max_poll_interval_seconds == 30
        assert export.domain == "docs.example.com"
        assert export.wait is True
        assert export.start_options is None
        assert export.delivery == DeliverySettings()

    def test_one_to_collect_needs_an_address_a_key_and_a_job_alone(self) -> None:
        collected = job(COLLECT)

        assert (collected.mode, collected.job_id, collected.domain) == (Mode.COLLECT, "se_1", None)
        assert collected.wait is True
        assert collected.delivery == DeliverySettings()

    def test_an_agent_job_needs_an_address_a_key_a_project_and_a_job(self) -> None:
        agent = job(AGENT)

        assert (agent.mode, agent.project_id, agent.job_id, agent.require_pr) == (Mode.AGENT, "prj_1", "aj_1", False)
        assert agent.waiting.timeout_seconds == 3600

    def test_marks_alone_are_no_domain(self) -> None:
        assert refused(EXPORT, domain="\ufeff\n\ufeff\n\ufeff") == ["domain"]

    @pytest.mark.parametrize("nothing", ["", " \t\n "])
    def test_an_empty_input_is_one_that_is_left_out(self, nothing: str) -> None:
        optional = {name: nothing for name in DEFAULTS if name not in EXPORT}

        assert settings({**EXPORT, **optional}) == settings(EXPORT)

    def test_every_input_is_trimmed(self) -> None:
        padded = {name: f" \t{value}\n" for name, value in AGENT.items()}

        assert settings(padded) == settings(AGENT)

    @pytest.mark.parametrize("text", ["\ufeffdocs.example.com", " \ufeff docs.example.com\ufeff\n", "\ufeff\n docs.example.com"])
    def test_a_byte_order_mark_is_trimmed_too(self, text: str) -> None:
        assert job(EXPORT, domain=text).domain == "docs.example.com"

    def test_settings_do_not_show_the_key(self) -> None:
        assert ADMIN_KEY not in repr(settings(EXPORT))


class TestBeforeTheRest:
    """What is known before anything is checked: even the first error is masked with it."""

    @pytest.mark.parametrize(
        ("inputs", "mode"), [({}, "export"), ({"mode": " agent "}, "agent"), ({"mode": "Agent"}, None), ({"mode": "x"}, None)]
    )
    def test_the_mode_is_export_unless_another_one_is_set(self, inputs: dict[str, str], mode: str | None) -> None:
        assert reader_of(inputs).mode == mode

    @pytest.mark.parametrize("in_workflow", [True, False])
    @pytest.mark.parametrize(
        ("variables", "keys"),
        [
            ({}, []),
            ({"INPUT_ADMIN-KEY": " \n"}, []),
            ({"INPUT_ADMIN-KEY": f" \ufeff{ADMIN_KEY}\n"}, [ADMIN_KEY]),
            ({"INPUT_ADMIN_KEY": f"{ADMIN_KEY}\n"}, [ADMIN_KEY]),
            ({"INPUT_ADMIN-KEY": ADMIN_KEY, "INPUT_ADMIN_KEY": "another-key"}, [ADMIN_KEY, "another-key"]),
        ],
    )
    def test_both_forms_of_the_key_are_known(self, variables: dict[str, str], keys: list[str], in_workflow: bool) -> None:
        assert Reader(variables, in_workflow=in_workflow).keys == keys

    def test_every_key_that_is_used_is_among_the_known_ones(self) -> None:
        inputs = {"INPUT_BASE_URL": "https://api.example.com", "INPUT_DOMAIN": "docs.example.com"}
        reader = Reader({**inputs, "INPUT_admin_key": ADMIN_KEY}, in_workflow=False)

        try:
            read = reader.read(roots=[WORKSPACE])
        except InvalidInput:
            return

        assert reader.keys == [read.admin_key]


class TestRefusals:
    def test_all_mistakes_are_reported_together(self) -> None:
        assert refused({}, timeout="soon", wait="maybe") == ["base-url", "admin-key", "domain", "timeout", "wait"]

    @pytest.mark.parametrize("name", [name for name in DEFAULTS if name != "mode"])
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
            (COLLECT, "job-id", "{}"),
            (AGENT, "project-id", "{}"),
        ],
    )
    def test_a_key_in_the_wrong_input_is_refused_and_not_shown(self, base: dict[str, str], name: str, template: str) -> None:
        inputs = {**base, name: template.format(ADMIN_KEY)}

        assert refused(inputs) == [name]
        assert ADMIN_KEY[:8] not in error_of(reader_of(inputs)).summary

    @pytest.mark.parametrize("base", [EXPORT, COLLECT])
    def test_a_version_needs_a_values_file(self, base: dict[str, str]) -> None:
        assert refused(base, export_version="v1") == ["export-version"]

    def test_a_version_that_has_no_effect_anyway_needs_none(self) -> None:
        assert job(EXPORT, export_version="v1", wait="false").delivery.export_version == "v1"

    def test_an_invalid_values_file_does_not_make_the_version_invalid(self) -> None:
        assert refused(EXPORT, export_version="v1", values_file="../x") == ["values-file"]


class TestMisplacedInputs:
    @pytest.mark.parametrize("base", [EXPORT, COLLECT, AGENT])
    def test_defaults_that_the_runner_fills_in_are_not_warned_of(self, base: dict[str, str]) -> None:
        assert warnings({**DEFAULTS, **base}) == []

    @pytest.mark.parametrize(
        ("base", "name", "value"),
        [
            (AGENT, "wait", "perhaps"),
            (AGENT, "domain", "https://"),
            (AGENT, "site-path", "~/site"),
            (AGENT, "export-version", "v1"),
            (COLLECT, "wait", "false"),
            (COLLECT, "start-options", "{}"),
            (COLLECT, "max-parallel", "5"),
            (COLLECT, "project-id", "prj_1"),
            (COLLECT, "require-pr", "true"),
            (EXPORT, "project-id", "a\x1bb"),
        ],
    )
    def test_one_of_another_mode_is_warned_of_however_malformed(self, base: dict[str, str], name: str, value: str) -> None:
        (warning,) = warnings({**base, name: value})

        assert f"`{name}`" in warning
        assert settings({**base, name: value}) == settings(base)

    @pytest.mark.parametrize("base", [EXPORT, COLLECT])
    def test_what_has_an_effect_is_not_warned_of(self, roots: list[Path], base: dict[str, str]) -> None:
        inputs = {"bundle_path": "bundle", "site_path": "site", "values_file": "values.yaml", "export_version": "v1"}

        assert warnings(base, *roots, mask_bundle_url="true", min_pages="1", **inputs) == []

    def test_without_waiting_each_input_about_delivery_is_warned_of(self, roots: list[Path]) -> None:
        inputs = {"bundle-path": "b", "site-path": "s", "min-pages": "1", "values-file": "v", "export-version": "v1"}

        found = warnings({**EXPORT, **inputs, "mask-bundle-url": "true"}, *roots, wait="false")

        assert [warning.split("`")[1] for warning in found] == [*inputs, "mask-bundle-url"]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("min_pages", "min-pages"),
            ("site-pth", "site-path"),
            ("mdoe", "mode"),  # a swap is one edit
            ("site-pa", "site-path"),
            ("mask_bundle_url", "mask-bundle-url"),
            ("domian", "domain"),
            ("jobid", "job-id"),
            ("wai", "wait"),
            ("requirepr", "require-pr"),
        ],
    )
    def test_a_misspelled_one_is_refused_with_the_nearest(self, name: str, nearest: str) -> None:
        base = COLLECT if nearest == "domain" else EXPORT
        error = error_of(reader_of({**base, name: "a value"}))

        assert error.summary.startswith(f"Invalid input `{nearest}`: ")
        assert f"`{name}`" in error.summary
        assert "a value" not in error.summary

    @pytest.mark.parametrize("value", ["", "60m"])
    def test_one_that_has_its_default_may_be_what_was_meant(self, value: str) -> None:
        assert refused({**EXPORT, "timeout": value, "timout": "5m"}) == ["timeout"]

    @pytest.mark.parametrize(
        ("name", "inputs"),
        [
            ("cache", {}),
            ("wits", {}),  # two edits from `wait`, which are half of that name
            ("dómáíns", {}),
            ("domian", {}),  # the next ones are close to an input that is set
            ("min_pages", {"min-pages": "1"}),
            ("job_id", {"mode": "collect", "job-id": "se_1"}),
            ("args", {}),
            ("mask_bundle_urls", {}),  # three edits
        ],
    )
    def test_any_other_brings_a_warning(self, name: str, inputs: dict[str, str]) -> None:
        (warning,) = warnings({**EXPORT, **inputs, name: "a value"})

        assert f"`{name}`" in warning
        assert "a value" not in warning

    def test_all_of_them_bring_one_warning_even_if_the_inputs_are_refused(self) -> None:
        reader = reader_of({**EXPORT, "timeout": "soon", "zebra": "", "cache": "x"})

        assert refused_by(reader) == ["timeout"]
        (warning,) = reader.warnings
        assert warning.index("`cache`") < warning.index("`zebra`")

    def test_no_other_variable_is_one(self) -> None:
        reader = Reader(
            {"PATH": "x", "input_domian": "x", "MY_INPUT_DOMIAN": "x", "INPUTDOMIAN": "x", "GITHUB_OUTPUT": "x"}, in_workflow=True
        )

        assert reader.warnings == []
        assert refused_by(reader) == ["base-url", "admin-key", "domain"]

    @pytest.mark.parametrize("read", [reader_of, outside])
    @pytest.mark.parametrize("name", [f"{ADMIN_KEY}-x", f"x{ADMIN_KEY}", "x" * 70 + ADMIN_KEY])
    def test_a_key_that_was_pasted_as_one_is_hidden(self, read: Callable[[Mapping[str, str]], Reader], name: str) -> None:
        (warning,) = read({**EXPORT, name: ""}).warnings

        assert ADMIN_KEY.lower()[:8] not in warning.lower()

    def test_a_long_one_is_shortened(self) -> None:
        (warning,) = warnings({**EXPORT, "x" * 10_000: ""})

        assert len(warning) < 200


class TestOutsideAWorkflow:
    def test_names_may_have_underscores(self) -> None:
        inputs = {**COLLECT, "max-poll-interval": "20s", "min-pages": "7"}

        read = outside({name.replace("-", "_"): value for name, value in inputs.items()})

        assert read.read(roots=[WORKSPACE]) == settings(inputs)
        assert read.warnings == []

    def test_hyphens_stay_possible(self) -> None:
        assert outside(COLLECT).read(roots=[WORKSPACE]) == settings(COLLECT)

    def test_inside_one_an_underscore_is_a_mistake(self) -> None:
        assert refused({**EXPORT, "min_pages": "7"}) == ["min-pages"]
        misspelled = {name.replace("-", "_"): value for name, value in AGENT.items()}
        assert refused(misspelled) == ["admin-key", "base-url", "job-id", "project-id"]  # and not as missing, too

    @pytest.mark.parametrize(
        "inputs",
        [
            {"job_id": "se_2"},
            {"admin_key": "another-key"},
            {"base_url": "https://other.example.com", "admin-key": ADMIN_KEY},
        ],
    )
    def test_two_values_of_one_input_are_refused(self, inputs: dict[str, str]) -> None:
        (name, *_) = inputs
        error = error_of(outside({**COLLECT, **inputs}))

        assert error.summary.startswith(f"Invalid input `{name.replace('_', '-')}`: ")
        assert "another-key" not in error.summary

    @pytest.mark.parametrize("second", ["se_1", " se_1\n", "", "  "])
    def test_the_same_value_twice_or_an_empty_one_is_fine(self, second: str) -> None:
        assert outside({**COLLECT, "job_id": second}).read(roots=[WORKSPACE]).jobs[0].job_id == "se_1"
        assert outside({**COLLECT, "job-id": second, "job_id": "se_1"}).read(roots=[WORKSPACE]).jobs[0].job_id == "se_1"

    def test_either_form_of_the_key_is_refused_elsewhere_and_not_shown(self) -> None:
        error = error_of(outside({**EXPORT, "admin_key": "another-secret-key", "domain": "another-secret-key.example.com"}))

        assert [text.split("`")[1] for text in error.details] == ["admin-key", "domain"]
        assert "another-secret-key" not in "".join(error.details)

    def test_a_misspelled_name_is_refused_there_too(self) -> None:
        assert refused_by(outside({**EXPORT, "min_page": "7"})) == ["min-pages"]


class TestBooleans:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False)],
    )
    def test_yaml_1_2_spellings_are_read(self, text: str, value: bool) -> None:
        assert job(EXPORT, wait=text).wait is value
        assert job(EXPORT, mask_bundle_url=text).delivery.mask_bundle_url is value
        assert job(AGENT, require_pr=text).require_pr is value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "soon") for name in ("timeout", "poll-interval", "max-poll-interval", "outage-tolerance")),
        *((name, "yes") for name in ("wait", "mask-bundle-url")),
        *((name, value) for name in ("max-parallel", "min-pages") for value in ("0", "-1", "1.5", "ten", "1e1", "٣", "9" * 5000)),
        *(("max-parallel", "101"), ("min-pages", "000"), ("export-version", "v1\nv2")),
        *((name, path) for name in (*TARGETS, "ca-bundle") for path in ("/out", "$RUNNER_TEMP/out", ".\\out", "a\x1bb")),
    ],
)
def test_an_invalid_value_is_an_error_of_its_input(roots: list[Path], name: str, value: str) -> None:
    needed = {"values-file": "values.yaml"} if name == "export-version" else {}

    assert refused({**EXPORT, **needed, name: value}, *roots) == [name]


def test_the_longest_pause_may_be_the_shortest() -> None:
    waiting = job(EXPORT, poll_interval="10s", max_poll_interval="10s").waiting

    assert waiting.poll_interval_seconds == waiting.max_poll_interval_seconds == 10


@pytest.mark.parametrize("changes", [{"poll_interval": "31s"}, {"max_poll_interval": "999ms"}])
def test_the_longest_pause_must_not_be_less(changes: dict[str, str]) -> None:
    assert refused(EXPORT, **changes) == ["max-poll-interval"]


class TestSeveralDomains:
    SEVERAL: Final = "a.example.com\n\n  b.example.com:8443\nC.example.com\n"

    def test_each_line_is_an_export_that_differs_in_its_domain_alone(self) -> None:
        jobs = settings(EXPORT, domain=self.SEVERAL, start_options='{"version": "v2"}', timeout="5m", wait="false").jobs

        assert [job.domain for job in jobs] == ["a.example.com", "b.example.com:8443", "C.example.com"]
        assert {job.waiting for job in jobs} == {jobs[0].waiting}
        assert [(job.mode, job.wait, job.start_options) for job in jobs] == [(Mode.EXPORT, False, {"version": "v2"})] * 3

    def test_ten_run_at_the_same_time_by_default(self) -> None:
        assert settings(EXPORT, domain=self.SEVERAL).max_parallel == 10
        assert [settings(EXPORT, max_parallel=text).max_parallel for text in ("1", "07", "100")] == [1, 7, 100]

    @pytest.mark.parametrize(("text", "number"), [("1", 1), ("400", 400), ("007", 7), ("999999999", 999_999_999)])
    def test_min_pages_holds_for_each(self, text: str, number: int) -> None:
        jobs = settings(EXPORT, domain=self.SEVERAL, min_pages=text).jobs

        assert [job.delivery.min_pages for job in jobs] == [number] * 3


class TestJobId:
    @pytest.mark.parametrize("job_id", ["se_1", "a/b", "..", "%2F", "with space", "ünïcödé", "🙂"])
    @pytest.mark.parametrize("base", [COLLECT, AGENT])
    def test_any_text_without_control_characters_names_a_job(self, base: dict[str, str], job_id: str) -> None:
        assert job(base, job_id=job_id).job_id == job_id

    def test_neither_it_nor_the_project_has_control_characters(self) -> None:
        assert refused(AGENT, job_id="a\nb", project_id="a\x1bb") == ["job-id", "project-id"]

    @pytest.mark.parametrize("base", [COLLECT, AGENT])
    @pytest.mark.parametrize("nothing", ["", " \n"])
    def test_an_empty_one_is_missing_and_may_be_an_empty_output(self, base: dict[str, str], nothing: str) -> None:
        assert "output" in error_of(reader_of({**base, "job-id": nothing})).summary

    @pytest.mark.parametrize("job_id", ["se_1", "a\nb"])
    def test_in_mode_export_it_is_refused_so_that_no_export_is_started(self, job_id: str) -> None:
        summary = error_of(reader_of({**EXPORT, "job-id": job_id})).summary

        assert summary.startswith("Invalid input `job-id`: ")
        assert "mode: collect" in summary
        assert "mode: agent" not in summary

    def test_with_a_project_the_question_is_whether_it_is_an_agents(self) -> None:
        assert "mode: agent" in error_of(reader_of({**EXPORT, "job-id": "aj_1", "project-id": "prj_1"})).summary

    def test_a_domain_beside_it_is_its_label_and_part_of_paths(self, roots: list[Path]) -> None:
        collected = job(COLLECT, *roots, domain="docs.example.com", site_path="sites/{domain}")

        assert (collected.domain, collected.job_id) == ("docs.example.com", "se_1")
        assert collected.delivery.site_path is not None
        assert collected.delivery.site_path.name == "sites/docs.example.com"

    @pytest.mark.parametrize("name", TARGETS)
    def test_without_a_domain_no_path_may_contain_it(self, roots: list[Path], name: str) -> None:
        assert refused({**COLLECT, name: "{domain}.out"}, *roots) == [name]
        assert job({**COLLECT, name: "out"}, *roots).job_id == "se_1"

    @pytest.mark.parametrize("site_path", ["out", "{domain}"])
    def test_it_is_the_job_of_one_domain_at_most(self, roots: list[Path], site_path: str) -> None:
        assert refused(COLLECT, *roots, domain="a.example.com\nb.example.com", site_path=site_path) == ["domain"]


class TestCertificates:
    @pytest.fixture
    def roots(self, roots: list[Path], authority_pem: bytes) -> list[Path]:
        """Return folders with a certificate in each; one is above both."""
        for folder in [*roots, roots[0].parent]:
            (folder / "ca.pem").write_bytes(authority_pem)
        (roots[0] / "link.pem").symlink_to("../ca.pem")
        (roots[0].parent / "link").symlink_to(roots[0])
        return roots

    @pytest.mark.parametrize("base", [EXPORT, COLLECT, AGENT])
    @pytest.mark.parametrize("path", ["ca.pem", "{temporary}/ca.pem"])
    def test_those_of_a_file_inside_the_folders_are_read(self, roots: list[Path], base: dict[str, str], path: str) -> None:
        found = settings(base, *roots, ca_bundle=path.format(temporary=roots[1])).ca_bundle

        assert found is not None
        assert "BEGIN CERTIFICATE" in found

    def test_a_workspace_that_is_itself_a_link_is_fine(self, roots: list[Path]) -> None:
        assert settings(EXPORT, roots[0].parent / "link", ca_bundle="ca.pem").ca_bundle

    @pytest.mark.parametrize("path", ["../ca.pem", "link.pem", "{domain}/ca.pem"])
    def test_any_other_path_is_refused(self, roots: list[Path], path: str) -> None:
        assert refused(EXPORT, *roots, ca_bundle=path) == ["ca-bundle"]


class TestDelivery:
    @pytest.mark.parametrize("base", [EXPORT, COLLECT])
    def test_the_inputs_say_what_happens_to_the_bundle(self, roots: list[Path], base: dict[str, str]) -> None:
        workspace, temporary = roots

        read = job(
            base,
            *roots,
            bundle_path=str(temporary / "bundle.tar.gz"),
            site_path="out/site/",
            values_file=" ./values.yaml\n",
            export_version=" 2024-06-01 ",
            min_pages="3",
            mask_bundle_url="true",
        )

        assert read.delivery == DeliverySettings(
            bundle_path=OutputPath(path=temporary / "bundle.tar.gz", root=temporary, name=str(temporary / "bundle.tar.gz")),
            site_path=OutputPath(path=workspace / "out" / "site", root=workspace, name="out/site"),
            values_file=OutputPath(path=workspace / "values.yaml", root=workspace, name="values.yaml"),
            export_version="2024-06-01",
            min_pages=3,
            mask_bundle_url=True,
        )

    @pytest.mark.parametrize("name", TARGETS)
    def test_each_of_the_paths_goes_alone(self, roots: list[Path], name: str) -> None:
        found = job(EXPORT, *roots, **{name: "out"}).delivery

        targets = {"bundle-path": found.bundle_path, "site-path": found.site_path, "values-file": found.values_file}
        assert {key: target.name for key, target in targets.items() if target is not None} == {name: "out"}

    def test_an_invalid_path_overlaps_with_no_other(self, roots: list[Path]) -> None:
        (roots[0] / "out").mkdir()

        assert refused(EXPORT, *roots, bundle_path="out", site_path="out") == ["bundle-path"]

    @pytest.mark.parametrize(
        ("file", "names"),
        [
            ("out/v.env", ["values-file"]),
            ("out-link/v.env", ["values-file"]),
            ("out/x/../v.env", ["values-file"]),
            ("out", ["values-file"]),
            ("site/b.env", ["OUTPUT_ENV_FILE"]),
            *((file, []) for file in ("outputs.env", "site.env", "out/site/../other.env", "link.env")),
        ],
    )
    def test_the_file_of_outputs_must_not_overlap(self, roots: list[Path], file: str, names: list[str]) -> None:
        workspace = roots[0]
        (workspace / "out").mkdir()
        (workspace / "out-link").symlink_to("out")
        (workspace / "link.env").symlink_to("out/v.env")  # is replaced
        reader = outside({**EXPORT, "site-path": "site", "values-file": "out/v.env"})

        try:
            reader.read(roots=roots, env_file=workspace / file)
            found = []
        except InvalidInput as error:
            found = [text.split("`")[1] for text in error.details or [error.summary]]

        assert found == names


class TestPathsOfSeveralDomains:
    def test_each_domain_replaces_the_placeholder(self, roots: list[Path]) -> None:
        jobs = settings(
            EXPORT,
            *roots,
            domain="a.example.com\nb.example.com",
            bundle_path="bundles/{domain}.tar.gz",
            site_path="sites/{domain}/{domain}",
            values_file="{domain}.yaml",
        ).jobs

        deliveries = [job.delivery for job in jobs]
        paths = [(delivery.bundle_path, delivery.site_path, delivery.values_file) for delivery in deliveries]
        assert [[path.name for path in each if path is not None] for each in paths] == [
            ["bundles/a.example.com.tar.gz", "sites/a.example.com/a.example.com", "a.example.com.yaml"],
            ["bundles/b.example.com.tar.gz", "sites/b.example.com/b.example.com", "b.example.com.yaml"],
        ]

    def test_so_does_a_single_one(self, roots: list[Path]) -> None:
        target = job(EXPORT, *roots, site_path="sites/{domain}").delivery.site_path

        assert target is not None
        assert target.name == "sites/docs.example.com"

    @pytest.mark.parametrize("name", TARGETS)
    def test_several_domains_need_the_placeholder(self, roots: list[Path], name: str) -> None:
        assert refused({**EXPORT, "domain": "a.example.com\nb.example.com", name: "out"}, *roots) == [name]

    def test_an_invalid_domain_is_reported_alone_where_the_path_depends_on_it(self, roots: list[Path]) -> None:
        domains = "https://a.example.com\nb.example.com"

        assert refused(EXPORT, *roots, domain=domains, site_path="../{domain}", values_file="../x") == ["domain", "values-file"]

    @pytest.mark.parametrize(("count", "listed"), [(1, 1), (MAX_JOINED_ERRORS + 2, MAX_JOINED_ERRORS)])
    def test_only_some_errors_of_one_path_are_listed(self, roots: list[Path], count: int, listed: int) -> None:
        for number in range(count):
            (roots[0] / f"d{number}.example.com").touch()
        reader = reader_of({**EXPORT, "domain": "\n".join(f"d{n}.example.com" for n in range(count)), "site-path": "{domain}"})

        assert error_of(reader, *roots).summary.count(".example.com'") == listed

    def test_paths_of_different_domains_must_not_overlap(self, roots: list[Path]) -> None:
        assert refused(EXPORT, *roots, domain="a\nb\na.b", site_path="{domain}", values_file="b/x{domain}") == ["values-file"]

    def test_nor_those_of_one_input_that_links_make_the_same(self, roots: list[Path]) -> None:
        (roots[0] / "a").symlink_to("b")

        assert refused(EXPORT, *roots, domain="a\nb", site_path="{domain}/site") == ["site-path"]

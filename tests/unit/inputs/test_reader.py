"""Inputs become settings, or one error that names every wrong one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trustme

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import Reader
from docs_platform_action.inputs.settings import (
    AgentSettings,
    CollectSettings,
    CommitSettings,
    DeliverySettings,
    ExportSettings,
    PlatformSettings,
    PublicationSettings,
    SiteSettings,
    UnpackSettings,
    WaitSettings,
)
from docs_platform_action.inputs.table import COMPARE_WITH, DEFAULTS, PATHS, Input
from docs_platform_action.main import MODES
from docs_platform_action.models import FileDigests, Manifest, MaxRemoved, OutputPath
from tests.keys import ADMIN_KEY

Settings = ExportSettings | CollectSettings | UnpackSettings | AgentSettings

EXPORT: Final = {
    "base-url": "https://api.example.com",
    "admin-key": ADMIN_KEY,
    "domain": "docs.example.com",
}
COLLECT: Final = {
    "mode": "collect",
    "base-url": "https://api.example.com",
    "admin-key": ADMIN_KEY,
    "job-id": "se_1",
}
PROJECT: Final = {"base-url": "https://api.example.com", "admin-key": ADMIN_KEY, "project-id": "65"}
PROJECTS: Final = {**PROJECT, "project-id": "a.example.com: 65\nb.example.com: 66"}
AGENT: Final = {**COLLECT, "mode": "agent", "project-id": "prj_1"}
SEVERAL: Final = "a.example.com\nb.example.com"
PUBLISHED: Final = ("a.example.com", "b.example.com", "docs.example.com")  # with a manifest each
DOMAIN: Final = "docs.example.com"
PLAN: Final = {**EXPORT, "site-path": "sites/{domain}", "compare-with": "published/{domain}"}
EACH: Final = {"manifest-path": "{domain}.manifest", "changes-path": "{domain}.json"}
PLAN_ALONE: Final = {
    "manifest-path": "m",
    "first-publication": "true",
    "changes-path": "c",
    "max-removed": "0",
}
COMMIT: Final = {
    "commit": "ab" * 20,
    "github-token": "ghs_t0ken",
    "deployment-creator": "docs-platform[bot]",
}
RUNNER: Final = {
    "GITHUB_API_URL": "https://github.example.com/api/v3",
    "GITHUB_REPOSITORY": "octo/docs",
}
UNPACK: Final = {
    "mode": "unpack",
    "bundle-path": "b",
    "bundle-sha256": "AB" * 32,
    "site-path": "s",
}
PLATFORM: Final = PlatformSettings(
    base_url="https://api.example.com",
    admin_key=ADMIN_KEY,
    outage_tolerance_seconds=300,
)
WAITING: Final = WaitSettings(
    timeout_seconds=3600,
    poll_interval_seconds=1,
    max_poll_interval_seconds=30,
)


@pytest.fixture(autouse=True)
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a workspace, in which the test runs, and a temporary folder."""
    roots = [tmp_path / "workspace", tmp_path / "temporary"]
    for folder in roots:
        folder.mkdir()
    monkeypatch.chdir(roots[0])
    Path("published").mkdir()
    publish(*PUBLISHED)
    return roots


def publish(*domains: str, file: str = "index.html") -> None:
    """Write the published manifest of each domain, which lists one file."""
    for number, domain in enumerate(domains):
        Path("published", domain).write_text(f"# 1 files\n{number:064x}  {file}\n")


def variables(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with which the runner passes inputs."""
    return {f"INPUT_{name.upper()}": value for name, value in inputs.items()}


def reader_of(inputs: Mapping[str, str], *, in_workflow: bool = True) -> Reader:
    return Reader(variables(inputs), in_workflow=in_workflow)


def read_settings(reader: Reader, roots: Sequence[Path] = ()) -> Settings:
    inputs = reader.read(roots=roots or [Path.cwd()])
    read: Settings = MODES[inputs.mode].read(inputs)
    return read


def settings(inputs: Mapping[str, str], *, in_workflow: bool = True) -> Settings:
    return read_settings(reader_of(inputs, in_workflow=in_workflow))


def settings_without_a_commit(runner: Mapping[str, str]) -> ExportSettings:
    inputs = {**EXPORT, **COMMIT, "commit": ""}
    read = read_settings(Reader({**runner} | variables(inputs), in_workflow=True))
    assert isinstance(read, ExportSettings)
    return read


def export_settings(inputs: Mapping[str, str]) -> ExportSettings:
    read = settings(inputs)
    assert isinstance(read, ExportSettings)
    return read


def export_of(
    *, wait: bool = True, domain: str | None = None, project_id: str | None = None
) -> ExportSettings:
    """Return the settings of an export for which nothing else is set."""
    return ExportSettings(
        platform=PLATFORM,
        sites=(SiteSettings(domain=domain, project_id=project_id),),
        start_timeout_seconds=4500,
        start_options={},
        wait=wait,
        waiting=WAITING,
        max_parallel=10,
        commit=None,
    )


def collect_of(*, domain: str | None = None, project_id: str | None = None) -> CollectSettings:
    """Return the settings for collecting an export for which nothing else is set."""
    site = SiteSettings(domain=domain, project_id=project_id)
    return CollectSettings(platform=PLATFORM, job_id="se_1", site=site, waiting=WAITING)


def agent_of(project_id: str) -> AgentSettings:
    """Return the settings of an agent job for which nothing else is set."""
    return AgentSettings(
        platform=PLATFORM,
        project_id=project_id,
        job_id="se_1",
        waiting=WAITING,
        require_pr=False,
    )


def warned_of(inputs: Mapping[str, str]) -> list[str]:
    """Return the first name in each warning of inputs that are not refused."""
    reader = reader_of(inputs)
    reader.read(roots=[Path.cwd()])
    return [warning.split("`")[1] for warning in reader.warnings]


def errors_of(reader: Reader, env_file: Path | None = None) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        reader.read(roots=[Path.cwd()], env_file=env_file)
    texts = [*caught.value.details] or [caught.value.summary]
    assert ADMIN_KEY[:8] not in "".join(texts)
    return texts


def refused(
    inputs: Mapping[str, str], *, in_workflow: bool = True, env_file: Path | None = None
) -> list[str]:
    """Return the names of the refused inputs, one for each error."""
    return [
        text.split("`")[1]
        for text in errors_of(reader_of(inputs, in_workflow=in_workflow), env_file)
    ]


class TestSettings:
    @pytest.mark.parametrize(
        ("inputs", "expected"),
        [
            (EXPORT, export_of(domain="docs.example.com")),
            ({**EXPORT, "wait": "false"}, export_of(domain="docs.example.com", wait=False)),
            (PROJECT, export_of(project_id="65")),
            ({**PROJECT, "domain": "a.de"}, export_of(project_id="65", domain="a.de")),
            ({**PROJECT, "project-id": "A: 65"}, export_of(project_id="65", domain="A")),
            (COLLECT, collect_of()),
            ({**COLLECT, "domain": "a.de"}, collect_of(domain="a.de")),
            ({**COLLECT, "project-id": "A: 65"}, collect_of(project_id="65", domain="A")),
            (AGENT, agent_of("prj_1")),
            ({**AGENT, "project-id": "acme.docs, 'x'"}, agent_of("acme.docs, 'x'")),
        ],
    )
    def test_what_a_mode_requires_is_enough(
        self,
        inputs: dict[str, str],
        expected: Settings,
    ) -> None:
        nothing = {name: " \n" for name in DEFAULTS if name not in inputs}

        read = settings(inputs)

        assert read == expected
        assert read == settings({**DEFAULTS, **inputs})
        assert read == settings({**nothing, **inputs})
        assert ADMIN_KEY not in repr(read)
        assert warned_of({**DEFAULTS, **inputs}) == []

    def test_a_bundle_is_unpacked_without_a_platform(self) -> None:
        Path("b").touch()
        workspace = Path.cwd()

        read = settings({**UNPACK, "domain": "a.de", "min-pages": "2"})

        assert read == UnpackSettings(
            domain="a.de",
            bundle_path=OutputPath(path=workspace / "b", root=workspace, name="b"),
            bundle_sha256="ab" * 32,
            site_path=OutputPath(path=workspace / "s", root=workspace, name="s"),
            publication=PublicationSettings(min_pages=2),
        )

    def test_an_agent_job_may_need_a_pull_request(self) -> None:
        read = settings({**AGENT, "require-pr": "true"})

        assert isinstance(read, AgentSettings)
        assert read.require_pr

    def test_each_input_sets_what_it_is_named_after(self, roots: list[Path]) -> None:
        workspace, temporary = roots
        pem = trustme.CA().cert_pem.bytes().decode()
        (workspace / "ca.pem").write_text(pem)
        inputs = {
            **EXPORT,
            "start-timeout": "90m",
            "timeout": "5m",
            "poll-interval": "20s",
            "max-poll-interval": "20s",
            "outage-tolerance": "7s",
            "start-options": '{"a": 1}',
            "max-parallel": "3",
            "bundle-path": f"{temporary}/b",
            "site-path": "out/{domain}/",
            "min-pages": "3",
            "values-file": " ./v.yaml\n",
            "export-version": "2024-06-01",
            "mask-bundle-url": "true",
            "ca-bundle": "ca.pem",
        }

        reader = reader_of(inputs)
        read = read_settings(reader, roots)

        site = "out/docs.example.com"
        delivery = DeliverySettings(
            bundle_path=OutputPath(
                path=temporary / "b",
                root=temporary,
                name=f"{temporary}/b",
            ),
            site_path=OutputPath(path=workspace / site, root=workspace, name=site),
            publication=PublicationSettings(min_pages=3),
            values_file=OutputPath(path=workspace / "v.yaml", root=workspace, name="v.yaml"),
            export_version="2024-06-01",
            mask_bundle_url=True,
        )
        assert read == ExportSettings(
            platform=replace(PLATFORM, outage_tolerance_seconds=7, ca_bundle=f"{pem}\n"),
            sites=(SiteSettings(domain="docs.example.com", delivery=delivery),),
            start_timeout_seconds=5400,
            start_options={"a": 1},
            wait=True,
            waiting=WaitSettings(
                timeout_seconds=300,
                poll_interval_seconds=20,
                max_poll_interval_seconds=20,
            ),
            max_parallel=3,
            commit=None,
        )
        assert reader.warnings == []

    def test_a_plan_is_read_with_the_published_manifest_of_each_domain(self) -> None:
        inputs = {**PLAN, **EACH, "domain": SEVERAL, "max-removed": "10%"}

        sites = export_settings(inputs).sites

        assert len(sites) == 2
        for number, site in enumerate(sites):
            domain = PUBLISHED[number]
            found = site.delivery.publication
            files = {b"index.html": FileDigests(number.to_bytes(32), None)}
            assert found.compare_with == Manifest(files=files)
            assert found.max_removed == MaxRemoved(amount=10, is_percentage=True)
            targets = (found.manifest_path, found.changes_path)
            names = [target.name for target in targets if target is not None]
            assert names == [f"{domain}.manifest", f"{domain}.json"]
            assert "index.html" not in repr(site)

    def test_at_the_first_publication_of_one_domain_the_others_are_compared(self) -> None:
        old_and_new = f"{PUBLISHED[0]}\nnew.example.com"
        first = {**PLAN, "first-publication": "true"}

        sites = export_settings({**first, "domain": old_and_new}).sites

        compared = [site.delivery.publication.compare_with for site in sites]
        published = Manifest(files={b"index.html": FileDigests(bytes(32), None)})
        assert compared == [published, Manifest()]
        assert [site.delivery.publication.is_first for site in sites] == [False, True]
        assert refused({**PLAN, "domain": old_and_new}) == ["compare-with"]
        assert refused({**first, "domain": "\n".join(PUBLISHED)}) == ["first-publication"]

    def test_without_waiting_no_manifest_is_read(self) -> None:
        inputs = {
            **EXPORT,
            "wait": "false",
            "site-path": "s",
            "compare-with": "missing",
            "max-removed": "0",
        }

        (site,) = export_settings(inputs).sites

        assert site.delivery.publication.compare_with is None
        assert not site.delivery.publication.is_first
        assert warned_of(inputs) == ["site-path", "compare-with", "max-removed"]

    def test_a_commit_is_read_with_what_the_runner_names(self) -> None:
        inputs = {
            **EXPORT,
            **COMMIT,
            "commit": "AB" * 20,
            "deployment-environment": "docs",
            "commit-timeout": "5m",
        }

        read = read_settings(Reader(RUNNER | variables(inputs), in_workflow=True))

        assert isinstance(read, ExportSettings)
        assert read.commit == CommitSettings(
            commit="ab" * 20,
            commit_timeout_seconds=300,
            github_token="ghs_t0ken",
            deployment_creator="docs-platform[bot]",
            deployment_environment="docs",
            github_api_url="https://github.example.com/api/v3",
            github_server_url="https://github.com",
            github_repository="octo/docs",
        )
        assert "ghs_t0ken" not in repr(read)

    @pytest.mark.parametrize("in_workflow", [True, False])
    def test_without_a_commit_nothing_about_it_is_needed(self, in_workflow: bool) -> None:
        inputs = {**EXPORT, **COMMIT, "commit": ""}

        read = read_settings(Reader(variables(inputs), in_workflow=in_workflow))

        assert isinstance(read, ExportSettings)
        assert read.commit is None

    @pytest.mark.parametrize(
        ("left_out", "in_workflow", "names"),
        [
            ("github-token", True, ["github-token"]),
            ("deployment-creator", True, ["deployment-creator"]),
            ("GITHUB_API_URL", True, ["commit"]),
            ("GITHUB_REPOSITORY", True, ["commit"]),
            ("github-token", False, ["commit"]),
            ("nothing", False, ["commit"]),
        ],
    )
    def test_a_commit_needs_the_other_inputs_and_a_workflow(
        self,
        left_out: str,
        in_workflow: bool,
        names: list[str],
    ) -> None:
        given = {name: value for name, value in COMMIT.items() if name != left_out}
        runner = {name: value for name, value in RUNNER.items() if name != left_out}
        environ = runner | variables({**EXPORT, **given})

        errors = errors_of(Reader(environ, in_workflow=in_workflow))

        assert [text.split("`")[1] for text in errors] == names

    @pytest.mark.parametrize(
        "sites",
        [
            {"domain": SEVERAL},
            {"domain": "", "project-id": PROJECTS["project-id"]},
        ],
    )
    def test_a_commit_is_for_one_site(self, sites: dict[str, str]) -> None:
        environ = RUNNER | variables({**EXPORT, **COMMIT, **sites})

        (error,) = errors_of(Reader(environ, in_workflow=True))

        assert error.startswith("Invalid input `commit`: needs exactly one site, but there are 2")
        assert "do not tell one site from another" in error
        assert "matrix" in error
        assert "each site needs an environment of its own on GitHub, or" in error

    @pytest.mark.parametrize(
        ("address", "used"),
        [
            ("https://api.github.com", "https://api.github.com"),
            ("https://github.example.com/api/v3/", "https://github.example.com/api/v3"),
            ("http://127.0.0.1:8082", "http://127.0.0.1:8082"),
            ("http://localhost", "http://localhost"),
        ],
    )
    def test_the_address_of_githubs_api_is_used(self, address: str, used: str) -> None:
        environ = {**RUNNER, "GITHUB_API_URL": address} | variables({**EXPORT, **COMMIT})

        read = read_settings(Reader(environ, in_workflow=True))

        assert isinstance(read, ExportSettings)
        assert read.commit is not None
        assert read.commit.github_api_url == used

    @pytest.mark.parametrize(
        ("address", "error"),
        [
            ("", "works only in a workflow"),
            ("http://github.example.com", "GITHUB_API_URL uses http, so the token would be sent"),
            ("https://user:pass@api.github.com", "GITHUB_API_URL contains a user name"),
            ("https://api.github.com?x=1", "GITHUB_API_URL contains a user name, query"),
            ("api.github.com", "GITHUB_API_URL is not a valid https address"),
            ("ftp://api.github.com", "such as https://api.github.com"),
            ("https://api github.com", "GITHUB_API_URL contains white space"),
        ],
    )
    def test_no_token_is_sent_to_an_address_that_is_not_safe(
        self, address: str, error: str
    ) -> None:
        runner = {**RUNNER, "GITHUB_API_URL": address}

        (found,) = errors_of(Reader(runner | variables({**EXPORT, **COMMIT}), in_workflow=True))

        assert found.startswith("Invalid input `commit`: ")
        assert error in found
        assert "pass" not in found
        assert settings_without_a_commit(runner).commit is None


class TestBeforeTheRest:
    """What is known before anything is checked: even the first error is masked with it."""

    @pytest.mark.parametrize(
        ("text", "mode"), [("", "export"), (" agent ", "agent"), ("Agent", None)]
    )
    def test_the_mode_is_export_unless_another_one_is_set(
        self, text: str, mode: str | None
    ) -> None:
        assert reader_of({"mode": text}).mode == mode

    @pytest.mark.parametrize("in_workflow", [True, False])
    def test_both_forms_of_the_key_and_the_token_are_known(self, in_workflow: bool) -> None:
        assert reader_of({"admin-key": " \n"}, in_workflow=in_workflow).secrets == []
        given = {
            "admin-key": " \ufeffa\n",
            "admin_key": "b\n",
            "github-token": "c",
            "github_token": "d ",
        }
        assert reader_of(given, in_workflow=in_workflow).secrets == ["a", "b", "c", "d"]


class TestRefused:
    @pytest.mark.parametrize(
        ("inputs", "names"),
        [
            ({}, ["base-url", "admin-key", "domain"]),
            ({"mode": "collect"}, ["base-url", "admin-key", "job-id"]),
            ({"mode": "agent"}, ["base-url", "admin-key", "project-id", "job-id"]),
            ({"mode": "unpack"}, ["bundle-path", "bundle-sha256", "site-path"]),
            ({**EXPORT, "timeout": "soon", "wait": "maybe"}, ["timeout", "wait"]),
            (
                {**EXPORT, "wait": "maybe", "changes-path": "c", "site-path": "published"},
                ["wait", "changes-path", "site-path"],
            ),
            (
                {**EXPORT, "wait": "maybe", "site-path": "s", "compare-with": "missing"},
                ["wait", "compare-with"],
            ),
            # one whose name is misspelled is not missing as well
            (
                {name.replace("-", "_"): value for name, value in AGENT.items()},
                ["admin-key", "base-url", "job-id", "project-id"],
            ),
            # with an unknown mode, every input counts, but none is missing that one mode requires
            ({**AGENT, "mode": "Agent", "job-id": "", "min-pages": "no"}, ["mode", "min-pages"]),
            (
                {**AGENT, "mode": "Agent", "admin-key": "", "require-pr": "no"},
                ["mode", "require-pr"],
            ),
            ({**EXPORT, "poll-interval": "31s"}, ["max-poll-interval"]),
            ({**EXPORT, "job-id": "se_1"}, ["job-id"]),
            ({**COLLECT, "domain": SEVERAL, "site-path": "{domain}"}, ["domain"]),
            ({**COLLECT, "site-path": "{domain}"}, ["site-path"]),
            ({**EXPORT, "export-version": "v1"}, ["export-version"]),
            ({**COLLECT, "export-version": "v1"}, ["export-version"]),
            ({**EXPORT, "export-version": "v1", "values-file": "../x"}, ["values-file"]),
            *(({**EXPORT, name: value}, [name]) for name, value in PLAN_ALONE.items()),
            ({**EXPORT, "site-path": "site", "compare-with": "missing"}, ["compare-with"]),
            ({**PLAN, "first-publication": "no"}, ["first-publication"]),
            ({**PLAN, "first-publication": "true"}, ["first-publication"]),
            ({**PLAN, "manifest-path": "published/docs.example.com"}, ["manifest-path"]),
            ({**PLAN, "changes-path": "sites/docs.example.com/x"}, ["changes-path"]),
            ({**PLAN, "bundle-path": "published/docs.example.com"}, ["compare-with"]),
            (
                {
                    **EXPORT,
                    "domain": SEVERAL,
                    "bundle-path": "{domain}",
                    "site-path": "b.example.com/x-{domain}",
                },
                ["site-path"],
            ),
            (
                {
                    **EXPORT,
                    "domain": "https://a.de",
                    "site-path": "../{domain}",
                    "values-file": "../x",
                },
                ["domain", "values-file"],
            ),
            ({**EXPORT, "ca-bundle": "missing.pem"}, ["ca-bundle"]),
            # by project: two lists, two names for one site, one job for several, and a number of
            # pages that nobody reports
            ({**PROJECTS, "domain": "a.example.com"}, ["domain"]),
            ({**PROJECT, "domain": SEVERAL}, ["domain"]),
            ({**PROJECT, "project-id": "a.example.com: 65", "domain": "a.example.com"}, ["domain"]),
            ({**COLLECT, "project-id": "a.example.com: 65\nb.example.com: 66"}, ["project-id"]),
            ({**AGENT, "project-id": "a.example.com: 65\nb.example.com: 66"}, ["project-id"]),
            ({**AGENT, "project-id": "a.example.com: 65"}, ["project-id"]),
            *(
                ({**inputs, "project-id": "65", "min-pages": "1"}, ["min-pages"])
                for inputs in (PROJECT, COLLECT)
            ),
            ({**PROJECT, "site-path": "{domain}"}, ["site-path"]),
            ({**PROJECTS, "site-path": "site"}, ["site-path"]),
            ({**PROJECT, "project-id": "a.example.com", "site-path": "{domain}"}, ["project-id"]),
            (
                {**PROJECT, "project-id": "a.example.com", "min-pages": "1"},
                ["project-id", "min-pages"],
            ),
            ({**COLLECT, "project-id": "a.example.com"}, ["project-id"]),
            (
                {**PROJECTS, "project-id": "65\n66", "domain": "a.example.com"},
                ["project-id", "domain"],
            ),
            # a key in the wrong input
            ({**EXPORT, "domain": f"https://{ADMIN_KEY}.example.com/"}, ["domain"]),
            ({**EXPORT, "timeout": ADMIN_KEY, "wait": "x" * 70 + ADMIN_KEY}, ["timeout", "wait"]),
            ({**COLLECT, "job-id": ADMIN_KEY}, ["job-id"]),
        ],
    )
    def test_all_mistakes_are_reported_together_and_once(
        self, inputs: dict[str, str], names: list[str]
    ) -> None:
        assert refused(inputs) == names

    @pytest.mark.parametrize("row", [*PATHS, COMPARE_WITH], ids=lambda row: row.name)
    def test_the_paths_of_several_sites_need_their_names(self, row: Input[str]) -> None:
        inputs = {**PLAN, **EACH, "domain": SEVERAL}

        assert refused({**inputs, row.name: "out"}) == [row.name]

    @pytest.mark.parametrize("name", [name for name in DEFAULTS if name != "mode"])
    def test_an_invalid_value_is_an_error_of_its_input_even_if_the_mode_is_unknown(
        self, name: str
    ) -> None:
        assert refused({**EXPORT, "mode": "import", name: "a\x1bb"}) == ["mode", name]

    @pytest.mark.parametrize(
        ("file", "name"),
        [("out/x/../v", "values-file"), ("site/b", "OUTPUT_ENV_FILE")],
    )
    def test_the_file_of_outputs_must_not_overlap(
        self, roots: list[Path], file: str, name: str
    ) -> None:
        Path("out").mkdir()
        inputs = {**EXPORT, "site-path": "site", "values-file": "out/v"}

        assert refused(inputs, env_file=roots[0] / file) == [name]

    def test_a_link_at_the_file_of_outputs_is_replaced_and_does_not_overlap(
        self, roots: list[Path]
    ) -> None:
        Path("out").mkdir()
        Path("link").symlink_to("out/v")
        reader = reader_of({**EXPORT, "values-file": "out/v"})

        inputs = reader.read(roots=roots, env_file=roots[0] / "link")

        assert inputs.mode == "export"

    def test_an_archive_to_unpack_must_be_there(self) -> None:
        assert refused(UNPACK) == ["bundle-path"]

    @pytest.mark.parametrize(
        ("inputs", "name", "hint"),
        [
            ({"mode": "agent", "base-url": "https://a.de"}, "admin-key", "A secret is empty if"),
            ({"mode": "collect", "base-url": "https://a.de"}, "job-id", "may be empty"),
            ({**EXPORT, "domain": ""}, "domain", "set `project-id` instead"),
            ({**EXPORT, "base-url": ""}, "base-url", "mode `export` requires it"),
            ({**EXPORT, "job-id": "se_1"}, "job-id", "`mode: collect`"),
            ({**PROJECT, "job-id": "se_1"}, "job-id", "did you mean `mode: agent`?"),
        ],
    )
    def test_what_to_write_instead_depends_on_the_other_inputs(
        self, inputs: dict[str, str], name: str, hint: str
    ) -> None:
        (text,) = [text for text in errors_of(reader_of(inputs)) if f"`{name}`: " in text]

        assert hint in text
        assert ("mode: agent" in text) == ("mode: agent" in hint)

    @pytest.mark.parametrize("inputs", [{**EXPORT, "admin-key": ""}, {**COLLECT, "job-id": ""}])
    def test_outside_a_workflow_none_of_its_secrets_and_outputs_is_the_cause(
        self, inputs: dict[str, str]
    ) -> None:
        (text,) = errors_of(reader_of(inputs, in_workflow=False))

        assert text.endswith(" requires it")

    @pytest.mark.parametrize(
        ("inputs", "names"),
        [
            ({**PLAN, "compare-with": "", "compare_wiht": "m", **EACH}, ["compare-with"]),
            ({**EXPORT, "site_paht": "s", "manifest-path": "m"}, ["site-path"]),
            ({**PROJECT, "site_paht": "s", "min-pages": "5"}, ["site-path"]),
            ({**UNPACK, "site-path": "", "manifest-path": "m"}, ["site-path"]),
            ({**EXPORT, "domain": "", "project_idd": "65"}, ["project-id"]),
        ],
    )
    def test_what_only_follows_from_another_mistake_is_not_reported(
        self, inputs: dict[str, str], names: list[str]
    ) -> None:
        Path("b").touch()

        assert refused(inputs) == names

    @pytest.mark.parametrize(
        ("without_pages", "inputs", "named"),
        [
            ([DOMAIN], {}, f"'published/{DOMAIN}'; "),
            ([DOMAIN], {"domain": f"{DOMAIN}\n{SEVERAL}"}, f"'published/{DOMAIN}'; "),
            (
                PUBLISHED,
                {"domain": f"{SEVERAL}\nnew.example.com", "first-publication": "true"},
                "'published/a.example.com', 'published/b.example.com'; ",
            ),
        ],
    )
    def test_a_guard_of_pages_names_the_manifests_without_pages(
        self, without_pages: Sequence[str], inputs: dict[str, str], named: str
    ) -> None:
        publish(*without_pages, file="app.js")
        given = {**PLAN, **inputs}

        (text,) = errors_of(reader_of({**given, "max-removed": "5%"}))

        guarded = "`max-removed`: would protect nothing: no pages (`.html` files) are listed in"
        assert f"{guarded} {named}remove `max-removed`, or fetch " in text
        assert reader_of(given).read(roots=[Path.cwd()]).published is not None

    @pytest.mark.parametrize(
        ("inputs", "names"),
        [
            ({"max-removed": "0", "timeout": "soon"}, ["timeout", "max-removed"]),
            (
                {"max-removed": "0", "domain": f"{DOMAIN}\nnew.example.com"},
                ["compare-with", "max-removed"],
            ),
            (
                {"max-removed": "0", "first-publication": "true"},
                ["max-removed", "first-publication"],
            ),
            ({"max-removed": "none"}, ["max-removed"]),
        ],
    )
    def test_a_guard_of_nothing_is_reported_with_the_other_mistakes(
        self, inputs: dict[str, str], names: list[str]
    ) -> None:
        publish(DOMAIN, file="app.js")

        assert refused({**PLAN, **inputs}) == names

    @pytest.mark.parametrize("file", ["index.html", "guide/INDEX.Html"])
    def test_one_page_in_the_manifest_is_enough_for_a_guard(self, file: str) -> None:
        publish(DOMAIN, file=file)

        (site,) = export_settings({**PLAN, "max-removed": "0"}).sites

        assert site.delivery.publication.compare_with is not None

    def test_a_token_whose_name_is_misspelled_is_not_missing(self) -> None:
        given = {**EXPORT, **COMMIT, "github-token": "", "github_tokn": "ghs_t0ken"}

        (text,) = errors_of(Reader(RUNNER | variables(given), in_workflow=True))

        assert "did you mean `github-token`?" in text


class TestWarnings:
    @pytest.mark.parametrize(
        ("base", "inputs"),
        [
            (
                AGENT,
                {
                    "domain": "https://",
                    "wait": "perhaps",
                    "site-path": "~/x",
                    "export-version": "v1",
                },
            ),
            (
                COLLECT,
                {"wait": "false", "start-options": "{}", "max-parallel": "5", "require-pr": "true"},
            ),
            (EXPORT, {"require-pr": "a\x1bb"}),
        ],
    )
    def test_inputs_of_another_mode_have_no_effect_however_malformed(
        self, base: dict[str, str], inputs: dict[str, str]
    ) -> None:
        assert warned_of({**base, **inputs}) == [*inputs]
        assert settings({**base, **inputs}) == settings(base)

    @pytest.mark.parametrize("base", [EXPORT, PROJECT, COLLECT, UNPACK, AGENT])
    def test_inputs_that_every_step_of_a_workflow_may_have_bring_none(
        self, base: dict[str, str]
    ) -> None:
        inputs = {**COMMIT, "commit": "", "deployment-environment": "docs"}
        platform = {"base-url": "https://api.example.com", "admin-key": ADMIN_KEY}
        Path("b").touch()

        assert warned_of({**base, **platform, **inputs}) == []

    @pytest.mark.parametrize("base", [COLLECT, UNPACK, AGENT])
    def test_a_commit_brings_them_in_the_other_modes(self, base: dict[str, str]) -> None:
        inputs = {**COMMIT, "deployment-environment": "docs", "commit-timeout": "5m"}
        Path("b").touch()

        assert warned_of({**base, **inputs}) == [*inputs]
        assert warned_of({**base, "commit-timeout": "5m"}) == ["commit-timeout"]

    def test_without_waiting_inputs_about_delivery_have_none(self) -> None:
        assert warned_of({**PROJECT, "wait": "false", "min-pages": "1"}) == ["min-pages"]
        paths = {"bundle-path": "b", "site-path": "s", "min-pages": "1"}
        inputs = {
            **paths,
            "export-version": "v1",
            "mask-bundle-url": "true",
        }  # the version without a file

        assert warned_of({**EXPORT, **inputs, "wait": "false"}) == [*inputs]


class TestNames:
    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("min_pages", "min-pages"),
            ("mdoe", "mode"),
            ("site-pa", "site-path"),
            ("jobid", "job-id"),
            ("timout", "timeout"),
        ],
    )
    def test_a_misspelled_one_is_refused_with_the_one_that_is_meant(
        self, name: str, meant: str
    ) -> None:
        (summary,) = errors_of(reader_of({**DEFAULTS, **EXPORT, name: "a value"}))

        assert summary.startswith(f"Invalid input `{meant}`: `{name}` ")
        assert "a value" not in summary

    @pytest.mark.parametrize("name", ["cache", "domian", "wits", "mask_bundle_urls"])
    def test_any_other_or_one_beside_what_it_may_mean_brings_a_warning(self, name: str) -> None:
        assert warned_of({**EXPORT, name: "a value"}) == [name]

    @pytest.mark.parametrize("variable", ["INPUT_", "INPUT_cache", "Input_CACHE", "CACHE"])
    def test_other_variables_are_not_inputs(self, variable: str) -> None:
        reader = Reader({**variables(EXPORT), variable: "a value"}, in_workflow=True)

        reader.read(roots=[Path.cwd()])

        assert reader.warnings == []


class TestOutsideAWorkflow:
    def test_names_may_have_underscores_or_hyphens(self) -> None:
        underscores = {name.replace("-", "_"): value for name, value in AGENT.items()}

        assert (
            settings(underscores, in_workflow=False)
            == settings(AGENT, in_workflow=False)
            == settings(AGENT)
        )

    @pytest.mark.parametrize(
        ("inputs", "names"),
        [
            ({"job_id": "se_2"}, ["job-id"]),
            (
                {"admin_key": "another-key", "domain": "another-key.example.com"},
                ["admin-key", "domain"],
            ),
            ({"min_page": "7"}, ["min-pages"]),
        ],
    )
    def test_two_values_and_misspelled_names_are_refused(
        self, inputs: dict[str, str], names: list[str]
    ) -> None:
        assert refused({**COLLECT, **inputs}, in_workflow=False) == names

    @pytest.mark.parametrize("second", [" se_1\n", "", "  "])
    def test_the_same_value_twice_or_an_empty_one_is_fine(self, second: str) -> None:
        for one, other in (("job-id", "job_id"), ("job_id", "job-id")):
            assert settings({**COLLECT, one: "se_1", other: second}, in_workflow=False) == settings(
                COLLECT
            )

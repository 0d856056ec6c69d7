"""Foreign text is shown literally in the summary, without secrets, and breaks nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidInput, Unauthorized
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob
from docs_platform_action.report.summary import summary_of
from docs_platform_action.text import clean
from tests.keys import ADMIN_KEY
from tests.page.gfm import Element, page_of
from tests.page.samples import failed, good, hostile, view
from tests.unit.report.pages import page, parsed
from tests.unit.report.test_console import Log

HOSTILE = st.one_of(
    st.text(min_size=1),
    st.text("|<>[]()`*_\n&:#-~$@!^=+\\ '\"", min_size=1, max_size=12),
    st.sampled_from(
        ["</summary></details><script>", "```\n```mermaid\ngantt", "https://e.example www.e.example", "`timeout`", "a`b c`d"]
    ),
)


def top_level(page: Element) -> list[Element]:
    """Return the elements that are in no other one."""
    return [child for child in page.children if isinstance(child, Element)]


@pytest.mark.parametrize("text", ["Remove `/v1` from `base-url`.", "Collect it with `job-id: se_1`, or raise `timeout`."])
def test_code_in_our_own_sentences_stays_code(text: str) -> None:
    shown = view().show_prose(text, about=Job(mode="export"))

    assert "\\`" not in shown
    assert shown.count("`") == text.count("`")


class TestForeignText:
    OURS = frozenset({"h3", "blockquote", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"})

    @given(HOSTILE, st.booleans())
    def test_it_breaks_nothing_on_the_page_of_one_job(self, text: str, ends_well: bool) -> None:
        summary = parsed(hostile(text, ends_well=ends_well))

        assert summary.tags() <= self.OURS
        (table,) = summary.tables()
        assert {len(row) for row in table} == {2}
        assert len(table) <= 12
        assert len(summary.all("h3")) == len(summary.all("pre")) == 1
        assert [kind for kind, _ in summary.alerts()] == ([] if ends_well else ["CAUTION"])
        assert len(summary.all("strong")) == (0 if ends_well else 3)
        assert [child.tag for child in top_level(summary)] == ["h3", *([] if ends_well else ["blockquote"]), "table", "pre"]

    @given(HOSTILE)
    def test_it_breaks_nothing_on_the_page_of_several(self, text: str) -> None:
        summary = parsed(hostile(text, ends_well=True), hostile(text, ends_well=False))

        assert summary.tags() <= {*self.OURS, "details", "summary", "b"}
        overview, *details = summary.tables()
        assert [len(row) for row in overview] == [6, 6, 6]
        assert [{len(row) for row in table} for table in details] == [{2}, {2}]
        assert len(summary.all("h3")) == len(summary.diagrams()) == len(summary.alerts()) == 1
        assert len(summary.all("details")) == len(summary.all("summary")) == 2
        assert [child.tag for child in top_level(summary)] == ["h3", "blockquote", "p", "table", "pre", "details", "details"]

    @given(HOSTILE)
    def test_it_breaks_nothing_where_many_failed_alike(self, text: str) -> None:
        summary = parsed(*(hostile(text, ends_well=False) for _ in range(3)))

        assert summary.tags() <= {*self.OURS, "details", "summary", "b"}
        assert [len(row) for row in summary.tables()[0]] == [4, 4, 4, 4]
        assert len(summary.all("h3")) == len(summary.diagrams()) == 1
        ((kind, text),) = summary.alerts()
        assert kind == "CAUTION"
        assert ": All 3 domains: " in text
        assert [child.tag for child in top_level(summary)] == ["h3", "blockquote", "p", "table", "pre"]

    @given(HOSTILE)
    def test_it_leaves_no_alert_with_a_list(self, text: str) -> None:
        error = InvalidInput(f"2 invalid inputs: {text}", details=(f"`domain`: '{text}'.", text), remedy=text)

        summary = page_of(page(Job(mode=None, failure=error), seconds=0))

        assert summary.tags() <= {*self.OURS, "ul", "li"}
        assert [child.tag for child in top_level(summary)] == ["h3", "blockquote"]
        assert [kind for kind, _ in summary.alerts()] == ["CAUTION"]
        assert len(summary.all("li")) == 2

    @given(HOSTILE)
    def test_the_value_of_an_input_is_not_code(self, text: str) -> None:
        summary = parsed(Job(mode=None, failure=InvalidInput(f"Invalid input `domain`: '{text}' is wrong")))

        assert summary.tags() <= self.OURS
        assert [element.text for element in summary.all("code")] == ["domain", "invalid-input"]

    @given(st.text("|<>[]()*_&#-~$!^=+\\' ab", min_size=1, max_size=12).filter(str.strip))
    def test_it_is_shown_as_it_is(self, text: str) -> None:
        shown = " ".join(clean(text).split())

        summary = parsed(hostile(text, ends_well=True), hostile(text, ends_well=False))

        names = [row[0] for row in summary.tables()[0][1:]] + [
            element.text.rpartition(":")[0] for element in summary.all("summary")
        ]
        assert {" ".join(name.split()) for name in names} == {shown}

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("give it `timeout`", "give it `timeout`"),
            ("give it `mode: collect, job-id: se_1`", "give it `mode: collect, job-id: se_1`"),
            ("give it `job-id: se|1`", "give it \\`job-id: se\\|1\\`"),
            ("give it `a", "give it \\`a"),
            ("a\\`b`", "a\\\\`b`"),
        ],
    )
    def test_only_plain_words_of_a_remedy_are_code(self, text: str, shown: str) -> None:
        summary = page(failed(failure=Unauthorized("no", cause="", remedy=text)))

        assert f":** {shown}\n" in summary

    def test_what_a_server_said_is_never_code(self) -> None:
        summary = parsed(failed(failure=Unauthorized("a `b`", details=("said `c`",)), status="running"))

        assert [element.text for element in summary.all("code")] == [
            *("admin-key", "mode: collect, job-id: se_2", "unauthorized"),
            *summary.diagrams(),
        ]

    @given(st.text("|<>[]()`*_&:#-/?ab", max_size=12))
    def test_a_link_leads_where_it_says(self, tail: str) -> None:
        job = Job(mode="agent", project_id="prj", job_id="aj")
        job.update_agent(AgentJob(status="completed", pr_link=f"https://git.example.com/{tail}"))

        (link,) = parsed(job).all("a")

        assert str(link.attributes["href"]).startswith("https://git.example.com/")

    def test_a_secret_is_taken_out_before_it_is_escaped_or_cut(self) -> None:
        log = Log()
        log.console.mask([ADMIN_KEY])
        key_at_the_cut = f"{'x' * 55} {ADMIN_KEY}"

        summary = summary_of(
            [good(status=f"x {ADMIN_KEY}"), good(ADMIN_KEY, job_id=ADMIN_KEY, status=key_at_the_cut)],
            view(log.console),
            duration_seconds=1,
        )

        assert "| done (x \\*\\*\\*) |" in summary
        assert "<summary>***: done</summary>" in summary
        assert ADMIN_KEY[:4] not in summary

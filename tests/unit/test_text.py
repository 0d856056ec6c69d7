"""Foreign text is made harmless. `tests/wording/runs.md` has numbers, sizes and times."""

import re
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs_platform_action.text import MAX_FOREIGN_TEXT_LENGTH, clean, link_target, markdown, without_query
from tests.page.gfm import page_of

nasty = st.one_of(
    st.text(),
    st.text("#[]:\r\n\u2028\u200b\x1b \\ab", max_size=12),
    st.lists(
        st.sampled_from(
            ["::", ":", "##[", "#", "[", "error", "set-env", "]", "\r", "\n", "\x85", "\u2028", "\u200b", "\u202e", " "]
        ),
        max_size=10,
    ).map("".join),
)


def runner_commands(log: str) -> list[str]:
    """Return the commands that the runner would find in a log.

    Source: actions/runner, ActionCommand.cs: `::name …::` at the start of a line, behind white space too; `##[name …]` anywhere.
    """
    lines = re.split(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]", log)
    return [line for line in lines if re.match(r"\s*::.*?::", line) or "##[" in line]


class TestClean:
    @pytest.mark.parametrize(
        ("text", "cleaned"),
        [
            ("plain text, ünïcödé 🙂", "plain text, ünïcödé 🙂"),
            ("two\nlines", "two lines"),
            ("::error::boo", ": :error: :boo"),
            (":::x", ": : :x"),
            (":\ufe0f:error:\u034f:x", ": :error: :x"),
            ("#\u3164#\U000e0100[error]x", "# #[error]x"),
            ("a\u115f\u1160\u17b4\u17b5\u180b\u180f\ufe00\uffa0\U000e01efb", "ab"),
            ("##[error]boo", "# #[error]boo"),
            ("###[x", "## #[x"),
            ("#\u200b#[x", "# #[x"),
            (":\u200b:x", ": :x"),
            ("\x1b[31mred", "[31mred"),
            ("\u202egnp.exe", "gnp.exe"),
            ("a\x00b", "ab"),
            ("lone \ud800", "lone \N{REPLACEMENT CHARACTER}"),
            ("trailing \n", "trailing"),
            ("#1 and #[x] and a:b", "#1 and #[x] and a:b"),
        ],
    )
    def test_it_shows_the_text_without_its_teeth(self, text: str, cleaned: str) -> None:
        assert clean(text) == cleaned

    @pytest.mark.parametrize(("before", "kept"), [("", MAX_FOREIGN_TEXT_LENGTH), (" ", 900), ("\n", MAX_FOREIGN_TEXT_LENGTH)])
    def test_a_long_text_is_cut_at_a_space_if_one_is_near_and_shows_that_it_is(self, before: str, kept: int) -> None:
        cleaned = clean("x" * 900 + before + "x" * MAX_FOREIGN_TEXT_LENGTH)

        assert cleaned.endswith("x…")
        assert len(cleaned) == kept + 1

    def test_a_text_of_the_maximum_length_is_whole(self) -> None:
        assert clean("x" * MAX_FOREIGN_TEXT_LENGTH) == "x" * MAX_FOREIGN_TEXT_LENGTH

    @given(nasty)
    @example("##\n[error]")
    @example("#\n#[error]")
    def test_no_command_can_begin(self, text: str) -> None:
        assert runner_commands(clean(text)) == []
        assert runner_commands(f"  The API said: {clean(text)}") == []

    @given(nasty)
    def test_it_is_one_visible_line(self, text: str) -> None:
        cleaned = clean(text)

        assert len(cleaned.splitlines()) <= 1
        assert not {unicodedata.category(character) for character in cleaned} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

    @given(nasty)
    def test_cleaning_again_changes_nothing(self, text: str) -> None:
        assert clean(clean(text)) == clean(text)


GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
"""GitHub's Markdown without its bare links, which `AUTOLINK` finds."""

AUTOLINK = re.compile(r"(?i)(?<![a-z])(https?|ftp)://|(?<!\w)www\.")


def shown(tokens: list[Token]) -> str:
    """Return the text of inline Markdown, which may be strong as a whole and hold empty comments, but nothing else."""
    tokens = [token for token in tokens if (token.type, token.content) != ("html_inline", "<!-- -->")]
    kinds = [token.type for token in tokens if token.content or token.nesting]
    if kinds[:1] == ["strong_open"] and kinds[-1] == "strong_close":
        kinds = kinds[1:-1]
    assert {*kinds} <= {"text", "text_special"}
    return "".join(token.content for token in tokens)


def spaced(text: str) -> str:
    """Collapse white space, as a browser does."""
    return " ".join(text.split())


MARKUP = [
    *("**", "_", "`", "~~", "---", "===", "```", "|", "\\\\", "-", "1.", "#", ">", "+", "*", "[ ]", "[x](http://a)", "![x](y)"),
    *("<b>", "<http://a>", "&amp;", "&#42;", ":tada:", "$x$", "[^1]", "https://a.example", "http://", "www.a.example"),
    *("mailto:a", "a@b.example"),
]

marked = st.one_of(
    nasty,
    st.text("*_`~[]()<>!|\\#+-=.>&;:/ab1 \t\n", max_size=16),
    st.lists(
        st.sampled_from(MARKUP),
        max_size=6,
    ).map(" ".join),
)


class TestMarkdown:
    @given(st.text(st.sampled_from("ab1.+-_@: /"), max_size=20))
    @example("mail@evil.example")
    @example("a_@b.c x+@y.z a@-b.c mailto:x@y.zz xmpp:a@b.c/d")
    def test_an_email_address_is_not_a_link(self, text: str) -> None:
        page = page_of(f"| x |\n| - |\n| {markdown(text)} |\n")

        assert page.all("a") == []
        assert spaced(page.tables()[0][1][0]) == spaced(clean(text))

    @given(marked)
    def test_a_line_shows_the_text_literally(self, text: str) -> None:
        blocks = GITHUB.parse(f"- {markdown(text)}")

        inline = [block for block in blocks if block.type == "inline"]
        assert [block.type for block in blocks if block.type != "inline"] == (
            ["bullet_list_open", "list_item_open", "paragraph_open", "paragraph_close", "list_item_close", "bullet_list_close"]
            if inline
            else ["bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"]
        )
        assert spaced("".join(shown(block.children or []) for block in inline)) == spaced(clean(text))

    @given(marked)
    def test_a_cell_shows_the_text_literally(self, text: str) -> None:
        blocks = GITHUB.parse(f"| | |\n| --- | --- |\n| Job | {markdown(text)} |\n| Status | x |\n")

        cells = [shown(block.children or []) for block in blocks if block.type == "inline"]
        assert [spaced(cell) for cell in cells] == ["", "", "Job", spaced(clean(text)), "Status", "x"]

    @given(marked)
    def test_a_heading_and_a_title_show_it_literally(self, text: str) -> None:
        heading, title = GITHUB.parse(f"### {markdown(text)}: done"), GITHUB.parse(f"**Title {markdown(text)}.**")

        assert spaced(shown(heading[1].children or [])) == spaced(f"{clean(text)}: done")
        assert spaced(shown(title[1].children or [])) == spaced(f"Title {clean(text)}.")

    @given(marked)
    def test_no_bare_link_begins(self, text: str) -> None:
        assert not AUTOLINK.search(markdown(text).replace("\\\\", ""))


class TestLinks:
    @pytest.mark.parametrize(
        "url",
        [
            "https://git.example.com/docs/pull/7",
            "https://git.example.com/a(b)c?x=1&y=[2]#z",
            "https://git.example.com/a>b<c`d|e\\f\"g'h",
            "https://git.example.com/?a=1&copy;=2&amp;b",
            "https://git.example.com/ü/🙂",
        ],
    )
    def test_a_target_leads_where_the_address_does(self, url: str) -> None:
        (table,) = [
            block
            for block in GITHUB.parse(f"| a |\n| --- |\n| [x](<{link_target(url)}>) |\n")
            if block.type == "inline" and block.content != "a"
        ]

        link = (table.children or [])[0]
        assert link.type == "link_open"
        assert unquote(str(link.attrs["href"])) == unquote(url)

    @pytest.mark.parametrize(
        ("url", "open_part"),
        [
            ("https://storage.example.com/a/b.tar.gz?X-Signature=abc", "storage.example.com/a/b.tar.gz"),
            ("https://user:pa55word@storage.example.com:8443/a#b", "storage.example.com:8443/a"),
            ("https://storage.example.com", "storage.example.com"),
        ],
    )
    def test_a_link_is_shown_without_what_opens_it(self, url: str, open_part: str) -> None:
        assert without_query(url) == open_part

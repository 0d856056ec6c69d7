"""A job summary's Markdown becomes HTML as on GitHub, with alerts and without harmful elements."""

import pytest

from admin_api_simulator.github_markdown import body_html, page_html


@pytest.mark.parametrize("name", ["note", "tip", "important", "warning", "caution"])
def test_makes_an_alert_of_a_quotation_that_begins_with_its_name(name: str) -> None:
    assert body_html(f"> [!{name.upper()}]\n> **What happened**\n>\n> A & B.\n\nAfter.") == (
        f'<div class="markdown-alert markdown-alert-{name}">\n<p class="markdown-alert-title">{name.title()}</p>\n'
        "<p><strong>What happened</strong></p>\n<p>A &amp; B.</p>\n</div>\n<p>After.</p>\n"
    )


@pytest.mark.parametrize(
    "markdown",
    [
        "> An example:\n> [!CAUTION]\n> Text.",
        "> [!CAUTION] Text.",
        "> [!DANGER]\n> Text.",
        "> `[!CAUTION]`\n> Text.",
        "> First.\n>\n> [!CAUTION]\n> Text.",
        "- > [!CAUTION]\n  > Text.",
        "> > [!CAUTION]\n> > Text.",
        "<details>\n\n> [!CAUTION]\n> Text.\n\n</details>",
        "[!CAUTION]\nText.",
    ],
)
def test_makes_an_alert_of_nothing_else(markdown: str) -> None:
    assert "markdown-alert" not in body_html(markdown)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        (
            "| job | status |\n| --- | ---: |\n| `se_1` | **completed** |\n",
            (
                '<table>\n<thead>\n<tr>\n<th>job</th>\n<th align="right">status</th>\n</tr>\n</thead>\n'
                '<tbody>\n<tr>\n<td><code>se_1</code></td>\n<td align="right"><strong>completed</strong></td>\n</tr>\n'
                "</tbody>\n</table>\n"
            ),
        ),
        (
            "> [!NOTE]\n> The API said:\n> > invalid token\n\n> quoted",
            (
                '<div class="markdown-alert markdown-alert-note">\n<p class="markdown-alert-title">Note</p>\n'
                "<p>The API said:</p>\n<blockquote>\n<p>invalid token</p>\n</blockquote>\n</div>\n"
                "<blockquote>\n<p>quoted</p>\n</blockquote>\n"
            ),
        ),
        (
            "<details><summary><b>docs.example.com</b></summary>\n\nText.\n\n</details>\n",
            "<details><summary><b>docs.example.com</b></summary>\n<p>Text.</p>\n</details>\n",
        ),
        ("```mermaid\ngantt\n  a :b, 0, 1\n```\n", '<pre lang="mermaid"><code>gantt\n  a :b, 0, 1\n</code></pre>\n'),
        (
            '[run](https://github.com/acme/docs?a=1&b="2")',
            '<p><a href="https://github.com/acme/docs?a=1&amp;b=%222%22">run</a></p>\n',
        ),
        # removed, because a summary does not use it
        ("a <script>alert(1)</script>", "<p>a &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
        ('a <img src="x" onerror="alert(1)"> b', "<p>a  b</p>\n"),
        ('<details ontoggle="alert(1)" open>x</details>', '<details open="">x</details>\n'),
        ('<b style="position:fixed">x</b>', "<p><b>x</b></p>\n"),
        ("[a](javascript:alert(1))", "<p><a>a</a></p>\n"),
        ("[a](data:text/html,x)", "<p><a>a</a></p>\n"),
        ('<a href="http://[">a</a>', "<p><a>a</a></p>\n"),
        ('<b href="https://example.com/">a</b>', "<p><b>a</b></p>\n"),
        ("a<!-- -->b", "<p>ab</p>\n"),
        ("&lt;script&gt;", "<p>&lt;script&gt;</p>\n"),
        # balanced
        ("<details><summary>a", "<details><summary>a\n</summary></details>"),
        ("<details><b>a</details>\n\nb", "<details><b>a</b></details>\n<p>b</p>\n"),
        ("</details>\n\na", "\n<p>a</p>\n"),
    ],
)
def test_markdown_becomes_html_without_harmful_elements(markdown: str, html: str) -> None:
    assert body_html(markdown) == html


def test_a_page_shows_each_section_in_a_box() -> None:
    page = page_html("Job <summaries>", {"A & B": "*one*", "C": "two"})

    assert "<title>Job &lt;summaries&gt;</title>" in page
    assert page.count('<section class="box">') == 2
    assert '<header>A &amp; B</header>\n<article class="markdown-body">\n<p><em>one</em></p>\n</article>' in page
    assert '<header>C</header>\n<article class="markdown-body">\n<p>two</p>\n</article>' in page


def test_a_page_loads_nothing_and_follows_the_system_s_color_scheme() -> None:
    page = page_html("Title", {"Heading": "text"})

    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "@media (prefers-color-scheme: dark)" in page

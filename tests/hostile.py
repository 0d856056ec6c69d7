"""Hostile texts: commands for GitHub's runner, terminal escapes, invisible text, Markdown, YAML."""

import re

COMMANDS = [
    "::error::stolen",
    "  ::set-output name=jobId::stolen",
    "::stop-commands::token",
    "##[set-env name=PATH;]stolen",
    "text ##[error]stolen",
    "####[debug]stolen",
    "#\u200b#[warning]stolen",
    "\r::error::stolen",
    "a\n::error::stolen",
    "a\r\n::add-mask::e",
    "a\v::error::stolen",
    "a\f::error::stolen",
    "a\x1c::error::stolen",
    "a\x85::error::stolen",
    "a\u2028::error::stolen",
    "a\u2029##[error]stolen",
    ":\u200b:error::stolen",
    ":\ufeff:error::stolen",
    ":::error::stolen",
]
TERMINAL = [
    "\x1b[31mred\x1b[0m",
    "\x9b31mred",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\x07\x08\x7f\x00",
]
HIDDEN = [
    "\u202eevil\u202c",
    "\u2066evil\u2069",
    "zero\u200bwidth\u200d",
    "\ufeffmark",
    "tag\U000e0041",
    "\ud800",
]
MARKDOWN = [
    "# title",
    "**bold** _it_ ~~gone~~ `code`",
    "[link](https://evil.example)",
    "![image](https://evil.example/x.png)",
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "https://evil.example www.evil.example mail@evil.example",
    "<https://evil.example>",
    "a | b | c",
    "```mermaid\ngraph TD\n```",
    "&lt;b&gt; &amp; &#35;",
    "- item",
    "1. item",
    "> quote",
    "$$\\frac{1}{2}$$ $x$",
    "@octocat #1 org/repo#1",
    "\\| \\\\| \\",
    "a\n\n***\n\n| x |\n| - |",
    "[ref]: https://evil.example",
    "    code",
    "<!-- gone -->",
    "==marked== ^up^",
]
HARMFUL = COMMANDS + TERMINAL + HIDDEN + MARKDOWN

UNSEEN = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Invisible characters in a log or on a page, except the line feed."""

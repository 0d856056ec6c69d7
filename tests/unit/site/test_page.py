"""What a reader sees of a page, and how long it takes to find out."""

import hashlib
from typing import Final

import pytest

from docs_platform_action.site.page import text_digest


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<p>Start</p>", b"Start"),
        (b"a \t\r\n\v\f b\n", b"a b "),
        (b"<p>a</p>\n\n  <p>b</p>", b"a b"),
        (b"a<!-- build 1 -->b<!-->c<!--->d<!-- x --!>e<!-- - -- > -->f<!-- no end", b"abcdef"),
        (
            (
                b"<SCRIPT src=x>var a = '<p>';</script >a<style>b</style>c"
                b"<template><p>d</p></template>e<noscript>f</noscript>"
            ),
            b"ace",
        ),
        (b"a<scripts>b</scripts><style-guide>c</style-guide>", b"abc"),
        (b"a<script>b</scripty></script>c", b"ac"),
        (b"a<script>no end", b"a"),
        (b"<!doctype html><html lang='en'><?php x ?><br/>a", b"a"),
        (b"1 < 2 and 3 > 2 <3", b"1 < 2 and 3 > 2 <3"),
        (b"a<p title='no end", b"a"),
        (b'<div class="[&>svg]:p-4" data-build="1">a</div><p title = \'x>y\' hidden>b</p>', b"ab"),
        (b"<p title=it's>a</p><p title=that's data-x=>b</p>", b"ab"),
        (b'<div data-tpl="<b><script>">a</div>b', b"ab"),
        (b"&lt;p&gt;", b"&lt;p&gt;"),
        (b"", b""),
    ],
)
def test_the_text_of_a_page_is_what_a_reader_sees(page: bytes, text: bytes) -> None:
    assert text_digest(page) == hashlib.sha256(text).digest()


HOSTILE: Final = (
    *(b"<script", b"<script>", b"</script", b"<!--", b"<!-- -", b"<", b"<a ", b"</"),
    *(b" ", b"a  ", b"=", b"='", b'<a x="', b'<a x="">'),
)


@pytest.mark.timeout(60)  # in quadratic time, each takes hours
@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_pages_take_linear_time(part: bytes) -> None:
    for start in (b"", b"<script>", b"<!--", b"<a "):
        text_digest(start + part * 1_000_000)

"""What a reader sees of a page, and how long it takes to find out."""

import hashlib
from typing import Final

import pytest

from docs_platform_action.site.page import text_digest, text_of


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"", b""),
        (b"<p>Start</p>", b"Start"),
        (b"a<!-- build 1 -->b<!-->c<!--->d<!-- x --!>e<!-- - -- > -->f<!-- no end", b"abcdef"),
        (
            (
                b"<SCRIPT src=x>var a = '<p>';</script >a<style>b</style>c"
                b"<template><p>d</p></template>e<noscript>f</noscript>"
            ),
            b"ace",
        ),
        (b"a <<!-- b -->/> c", b"a </> c"),
        (b"a <", b"a <"),
        (b"a << b", b"a << b"),
        (b"a<scripts>b</scripts><style-guide>c</style-guide>", b"abc"),
        (b"a<script>b</scripty></script>c", b"ac"),
        (b"a<script>no end", b"a"),
        (b"<!doctype html><html lang='en'><?php x ?><br/>a", b"a"),
        (b"1 < 2 and 3 > 2 <3", b"1 < 2 and 3 > 2 <3"),
        (b"a<p title='no end", b"a"),
        (b'<div class="[&>svg]:p-4" data-build="1">a</div><p title = \'x>y\' hidden>b</p>', b"ab"),
        (b"<p title=it's>a</p><p title=that's data-x=>b</p>", b"ab"),
        (b'<div data-tpl="<b><script>">a</div>b', b"ab"),
    ],
)
def test_comments_tags_and_hidden_elements_are_no_text(page: bytes, text: bytes) -> None:
    assert text_of(page) == text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"a \t\r\n\f b\n", b"a b"),
        (b"a \v b\x1c", b"a \v b\x1c"),  # not white space in HTML
        (b"\n<p>\n  a\n</p>\n\n  <p> b </p>\n", b"ab"),
        (b"a <b>b</b> c", b"abc"),
        (b"a <!-- x --> b<!-- x --> c <!-- x --><p>", b"a b c"),
        (b"<p><!-- x --> a", b"a"),
        (b"a <script></script> b", b"ab"),
        (b" a <pre class='x'>\n  b: \n    <i> c</i>\n</pre> d", b"a\n  b: \n     c\nd"),
        (b"<PRE> a <!-- x --> </PRE> b", b" a  b"),
        (b"<pre>a  <pre>b  </pre>c  </pre>d  </pre>e", b"a  b  c  de"),
        (b"<pre> a", b" a"),
        (b"<prefix> a</prefix>", b"a"),
    ],
)
def test_white_space_is_kept_where_a_reader_sees_it(page: bytes, text: bytes) -> None:
    assert text_of(page) == text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"&lt;p&gt; &amp;amp; &#65;&#x42;&copy", "<p> &amp; AB\xa9".encode()),
        (b"a&nbsp; &#32;b", "a\xa0  b".encode()),
        (b"<pre>&#10; &quot;</pre>", b'\n "'),
        (b"\xff&ouml;&xyz;", b"\xff\xc3\xb6&xyz;"),
        (b"&#1114112;&#xD800;" + b"&#" + b"9" * 5000 + b";", "\ufffd\ufffd\ufffd".encode()),
    ],
    ids=["usual", "spaces", "in pre", "another encoding", "beyond Unicode"],
)
def test_a_character_reference_counts_as_its_character(page: bytes, text: bytes) -> None:
    assert text_of(page) == text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<title>The <script> element</title>a", b"The <script> elementa"),
        (b"<title>The <!-- b --> &lt; </title> a", b"The <!-- b --> <a"),
        (b"<textarea><p> a\n</p></textarea>b", b"<p> a </p>b"),
        (b"<pre><textarea> <p>  </textarea></pre>", b" <p>  "),
        (b"<title/>a<b>b</title>c", b"a<b>bc"),
        (b"<title>a</titles></title>b", b"a</titles>b"),
        (b"<svg><style/></svg>a", b"a"),
        (b"<svg><script x='>'/><title/><text>a</text></svg>b", b"ab"),
        (b"<math><style />a<svg><script/>b</svg>c", b"abc"),
        (b"<svg><style>a</style><style/>b</svg>", b"b"),
        (b"<svg><title>a <b> c</title><style/><pre> d </pre></svg>", b"a <b> c d "),
        (b"<svg/><style/>a</style>b", b"b"),
        (b"<svg></svg><style/>a</style>b", b"b"),
    ],
)
def test_raw_elements_are_read_as_browsers_read_them(page: bytes, text: bytes) -> None:
    assert text_of(page) == text


SAME: Final = b"<p>a &amp; b</p><pre>  x: 1\n</pre>"


@pytest.mark.parametrize(
    ("page", "is_same"),
    [
        (SAME + b"\n", True),
        (b"\n  <p>\n    a &amp;\n    b\n  </p>\n  <pre>  x: 1\n</pre>", True),
        (b"<p>a &#38; b<pre>  x: 1\n</pre>", True),
        (b"<p id=1>a &amp; b</p><!-- 2 --><pre>  x: 1\n</pre><script>2</script>", True),
        (SAME.replace(b"  x", b" x"), False),
        (SAME.replace(b" b", b"b"), False),
    ],
    ids=["a line break", "indented", "minified", "a build ID", "a sample of YAML", "a space"],
)
def test_pages_that_read_the_same_have_the_same_digest(page: bytes, is_same: bool) -> None:
    assert text_digest(SAME) == hashlib.sha256(b"a & b  x: 1\n").digest()
    assert (text_digest(page) == text_digest(SAME)) == is_same


HOSTILE: Final = (
    *(b"<script", b"<script>", b"</script", b"<!--", b"<!-- -", b"<", b"<a ", b"</"),
    *(b" ", b"a  ", b"=", b"='", b'<a x="', b'<a x="">', b"&#9", b"9", b"&a"),
    *(b"<svg>", b"<svg><style/>", b"<svg></svg>", b"<title><", b"<pre>", b"</pre> ", b"<style/>"),
)


@pytest.mark.timeout(60)  # in quadratic time, each takes hours
@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_pages_take_linear_time(part: bytes) -> None:
    for start in (b"", b"<script>", b"<!--", b"<a ", b"<svg>", b"<svg><style/>", b"<title>", b"&#"):
        text_of(start + part * 100_000)

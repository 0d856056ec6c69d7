"""The settings of docs/hosting.md: each address is answered as the page's table says.

Two servers have settings there, and CloudFront a function, which Node and njs run here.
"""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from docs.pages import ROOT, blocks_of
from tests.engine import LABEL, docker

HOST = "docs.example.com"
PAGE = (ROOT / "docs" / "hosting.md").read_text("utf-8")
SERVERS = {
    "nginx": "nginx -g 'daemon off;'",
    "Apache": (
        "a2enmod -q headers rewrite; "
        'echo "Listen $ADDRESS" > /etc/apache2/ports.conf; '
        "apache2ctl -DFOREGROUND"
    ),
}
NO_CACHE = "no-cache"
FOR_EVER = "public, max-age=31536000, immutable"
SITE = (
    "index.html",
    "404.html",
    "guide.html",
    "guide/setup.html",
    "api/index.html",
    "faq.html",
    "faq/index.html",
    "v1.2.html",
    "größe/a b+c.html",
    "robots.txt",
    "_next/static/app-1f2e.js",
    "notes.html.txt",
    ".git/config",
    ".well-known/security.txt",
    "icons/logo.svg",
    "100%.html",
)
ANSWERS = {
    "/": "index.html",
    "/index.html": "index.html",
    "/guide": "guide.html",
    "/guide.html": "guide.html",
    "/guide?a=1": "guide.html",
    "/guide/": "-> /guide",
    "/guide/?a=1&b=/2/": "-> /guide?a=1&b=/2/",
    "/guide/setup": "guide/setup.html",
    "/guide/setup/": "-> /guide/setup",
    "/api": "api/index.html",
    "/api/": "api/index.html",
    "/faq": "faq.html",
    "/faq/": "faq/index.html",
    "/v1.2": "v1.2.html",
    "/v1.2/": "-> /v1.2",
    "/gr%C3%B6%C3%9Fe/a%20b%2Bc": "größe/a b+c.html",
    "/gr%C3%B6%C3%9Fe/a%20b%2Bc/": "-> /gr%C3%B6%C3%9Fe/a%20b+c",
    "/icons/logo.svg": "icons/logo.svg",
    "/.well-known/security.txt": ".well-known/security.txt",
    "/.git/config": "404.html",
    "/robots.txt": "robots.txt",
    "/_next/static/app-1f2e.js": "_next/static/app-1f2e.js",
    "/missing": "404.html",
    "/missing/": "404.html",
    "/notes": "404.html",
    "/gr%C3%B6%C3%9Fe": "404.html",
    "/gr%C3%B6%C3%9Fe/": "404.html",
    "/_next/static/gone.js": "404.html",
    "/_next/static/": "404.html",
    "//example.org/": "404.html",
    "/%5Cexample.org/": "404.html",
    "/x%0d%0aSet-Cookie:%20a=b/": "404.html",
    "/%2f%2fexample.org/": "404.html",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name in SITE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    tmp_path.chmod(0o755)  # the servers' own users read it
    return tmp_path


@pytest.fixture
def server(request: pytest.FixtureRequest, site: Path, examples_image: str) -> Iterator[str]:
    """Serve the site with the settings of the page, and return the server's address."""
    name = request.param
    (settings,) = blocks_of(PAGE, f"## {name}", name.lower())
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    settings = settings.replace("listen 80;", f"listen 127.0.0.1:{port};")
    settings = settings.replace("*:80>", f"*:{port}>")
    folder = f"/etc/{name.replace('Apache', 'apache2')}/sites-enabled"
    run = f'rm -f {folder}/*; printf %s "$SETTINGS" > {folder}/docs.conf; {SERVERS[name]}'
    options = ["--detach", "--network=host", f"--label={LABEL}"]
    options += [f"--volume={site}:/srv/docs/site:ro"]
    options += [f"--env=ADDRESS=127.0.0.1:{port}", f"--env=SETTINGS={settings}"]
    container = docker("run", *options, examples_image, "sh", "-ec", run).strip()
    try:
        wait_until_open(port, container)
        yield f"http://127.0.0.1:{port}"
    finally:
        docker("rm", "--force", container)


def wait_until_open(port: int, container: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        running = docker("inspect", "--format", "{{.State.Running}}", container).strip()
        assert running == "true", docker("logs", container)
        assert time.monotonic() < deadline, "the server does not listen"
        time.sleep(0.05)


def test_the_example_has_the_settings_of_the_page() -> None:
    (settings,) = blocks_of(PAGE, "## nginx", "nginx")
    locations = settings.partition("root /srv/docs/site;\n")[2].removesuffix("}\n")
    example = (ROOT / "examples" / "serve-with-nginx.yml").read_text("utf-8")

    assert locations.replace(" ", "").strip() in example.replace(" ", "")


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_server_answers_each_address_of_a_site(server: str) -> None:
    answers = {address: request_as_it_stands(server, address) for address in ANSWERS}

    found = {address: checked_answer(answer) for address, answer in answers.items()}
    assert found == ANSWERS
    caching = {address: answer.headers.get("Cache-Control") for address, answer in answers.items()}
    assert caching["/guide"] == NO_CACHE
    assert caching["/api/"] == NO_CACHE
    assert caching["/robots.txt"] == NO_CACHE
    assert caching["/_next/static/app-1f2e.js"] == FOR_EVER


def request_as_it_stands(server: str, address: str) -> requests.Response:
    """Request an address without any change to it."""
    request = requests.Request("GET", server, headers={"Host": HOST}).prepare()
    request.url = f"{server}{address}"
    answer = requests.Session().send(request, allow_redirects=False, timeout=10)
    answer.encoding = "utf-8"
    return answer


def checked_answer(answer: requests.Response) -> str:
    """Return the file of an answer, or the address of a redirect, after a check of its status."""
    assert "Set-Cookie" not in answer.headers
    location = answer.headers.get("Location")
    if location:
        target = urlsplit(location)
        assert answer.status_code == 301, answer.url
        assert (target.hostname or HOST) == HOST, answer.url
        redirect = f"-> {target.path}?{target.query}".removesuffix("?")
        return redirect.replace("%c3%b6%c3%9f", "%C3%B6%C3%9F")
    expected_status = 404 if answer.text == "404.html" else 200
    assert answer.status_code == expected_status, answer.url
    return answer.text


FUNCTION = {
    "/": "/index.html",
    "/index.html": "/index.html",
    "/guide": "/guide.html",
    "/guide.html": "/guide.html",
    "/guide/": "-> /guide",
    "/guide//": "-> /guide",
    "/guide/setup/": "-> /guide/setup",
    "/v1.2": "/v1.2.html",
    "/v1.2/": "-> /v1.2",
    "/gr%C3%B6%C3%9Fe/a%20b": "/gr%C3%B6%C3%9Fe/a%20b.html",
    "/a.b/page": "/a.b/page.html",
    "/robots.txt": "/robots.txt",
    "/.well-known/security.txt": "/.well-known/security.txt",
    "/.well-known/apple-app-site-association": "/.well-known/apple-app-site-association",
    "/_next/static/app-1f2e.js": "/_next/static/app-1f2e.js",
    "/font.woff2": "/font.woff2",
    "//example.org/": "-> //example.org",
    "/\\example.org/": "-> /\\example.org",
}
QUERY = {
    "a": {"value": "1"},
    "b": {"value": "2", "multiValue": [{"value": "2"}, {"value": "%2F"}]},
    "c": {"value": ""},
}


# njs, like CloudFront, knows ECMAScript 5.1 and a part of what came later
@pytest.mark.parametrize("engine", ["node", "njs"])
def test_the_function_asks_the_bucket_for_the_file_of_each_address(
    engine: str, examples_image: str, tmp_path: Path
) -> None:
    (code,) = blocks_of(PAGE, "## S3 with CloudFront", "js")
    headers = {"host": {"value": HOST}}
    asked = [{"request": {"uri": uri, "headers": headers, "querystring": {}}} for uri in FUNCTION]
    asked.append({"request": {"uri": "/guide/", "headers": headers, "querystring": QUERY}})
    call = f"console.log(JSON.stringify({json.dumps(asked)}.map(handler)))"
    (tmp_path / "program.js").write_text(f"{code}\n{call}")
    options = ["--rm", "--network=host", f"--volume={tmp_path}:/x"]

    answers = json.loads(docker("run", *options, examples_image, engine, "/x/program.js"))

    found = []
    for answer in answers:
        if answer.get("uri"):
            found.append(answer["uri"])
        else:
            found.append(f"-> {answer['headers']['location']['value']}")
    with_query = found.pop()
    # always a whole address: one that starts with `//` or `/\` would lead to another host
    assert [text.replace(f"-> https://{HOST}", "-> ") for text in found] == [*FUNCTION.values()]
    assert with_query == f"-> https://{HOST}/guide?a=1&b=2&b=%2F&c="
    redirects = [answer for answer in answers if "headers" in answer and "statusCode" in answer]
    assert {redirect["statusCode"] for redirect in redirects} == {301}

"""Makes the pictures of job summaries, and the SHA-256 of what they show: `make pictures`.

Each summary comes from a run of the action (`runs.py`). GitHub's Markdown parser, Mermaid and
Chromium draw it as on GitHub.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from admin_api_simulator.github_markdown import STYLESHEET, box_html
from docs.pictures.runs import SCENES, digest_line, summary_of

if TYPE_CHECKING:
    from PIL.Image import Image

HERE: Final = Path(__file__).parent
DIGESTS: Final = HERE / "summaries.sha256"
MERMAID: Final = HERE.parents[1] / "tests/node_modules/mermaid/dist/mermaid.min.js"

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
WIDTH: Final = 920
MAX_HEIGHT: Final = 3000
SCALE: Final = 2
MARGIN: Final = 4
COLORS: Final = 128
MAX_SECONDS: Final = 120

SCHEMES: Final[Mapping[str, int]] = {"light": 1, "dark": 0}
"""Color schemes, and their numbers in Chromium (blink::mojom::PreferredColorScheme)."""

PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title></title>
<style>
{style}
main {{ max-width: none; padding: {margin}px; }}
pre[lang="mermaid"] {{ padding: 0; background: none; text-align: center; }}
</style>
<main>
{box}
</main>
<script src="{mermaid}"></script>
<script>
// as on GitHub
const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "default";
mermaid.initialize({{ startOnLoad: false, theme }});
for (const code of document.querySelectorAll('pre[lang="mermaid"] > code')) {{
  code.replaceWith(code.textContent);
}}
mermaid.run({{ querySelector: 'pre[lang="mermaid"]' }}).then(() => (document.title = "{drawn}"));
</script>
"""

DRAWN: Final = "All diagrams are drawn"


def main() -> None:
    """Write the pictures, and the digests of their summaries."""
    browser = installed_browser()
    for name, scene in SCENES.items():
        box = box_html("export summary", summary_of(scene))
        for scheme in SCHEMES:
            file = HERE / f"{name}-{scheme}.png"
            draw(box, scheme, browser, file)
            sys.stdout.write(f"{file.name}: {file.stat().st_size / 1000:.0f} kB\n")
    # last, so that the tests fail as long as a picture shows an older summary
    digests = "".join(digest_line(name) for name in SCENES)
    DIGESTS.write_text(digests, encoding="utf-8")


def installed_browser() -> str:
    """Return the path of the browser. Exits if there is none."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise SystemExit(
        "Chromium is missing, which draws the pictures. "
        "On Debian and Ubuntu install the package `chromium`."
    )


def draw(box: str, scheme: str, browser: str, file: Path) -> None:
    """Draw a job summary, which is HTML, in a color scheme, as a PNG file."""
    style = STYLESHEET.read_text(encoding="utf-8")
    page = PAGE.format(style=style, margin=MARGIN, box=box, mermaid=MERMAID.as_uri(), drawn=DRAWN)
    with tempfile.TemporaryDirectory(prefix="picture-") as temporary:
        folder = Path(temporary)
        html = folder / "page.html"
        html.write_text(page, encoding="utf-8")
        png = folder / "page.png"
        options = [
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--screenshot={png}",
        ]
        try:
            done = run_browser(browser, options, html.as_uri())
        except subprocess.TimeoutExpired:
            raise SystemExit(
                f"{Path(browser).name} could not draw {file.name} within {MAX_SECONDS} s"
            ) from None
        if f"<title>{DRAWN}</title>" not in done.stdout or not png.exists():
            raise SystemExit(f"{Path(browser).name} could not draw {file.name}:\n{done.stderr}")
        save_picture(png, file)


def run_browser(
    browser: str, options: list[str], address: str
) -> "subprocess.CompletedProcess[str]":
    """Show a page, and print its DOM. Raises TimeoutExpired."""
    command = [
        browser,
        "--headless",
        "--hide-scrollbars",
        f"--force-device-scale-factor={SCALE}",
        f"--window-size={WIDTH},{MAX_HEIGHT}",
        "--virtual-time-budget=10000",
        "--dump-dom",
        *options,
    ]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # Chromium refuses to run as root with its sandbox
    return subprocess.run(  # noqa: S603  # the browser, with our own options
        [*command, address],
        # Mermaid shows times in the time zone of the machine
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )


def save_picture(screenshot_file: Path, file: Path) -> None:
    """Crop a screenshot, and save it with few colors."""
    from PIL import Image  # only `make pictures` installs it, and the tests do without

    with Image.open(screenshot_file) as screenshot:
        picture = cropped(screenshot.convert("RGB"))
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(file, optimize=True)


def cropped(picture: "Image") -> "Image":
    """Return the picture without the empty space below the content."""
    from PIL import Image, ImageChops  # the same

    background = picture.getpixel((0, picture.height - 1))
    empty = Image.new("RGB", picture.size, background)
    box = ImageChops.difference(picture, empty).getbbox()
    bottom = box[3] if box is not None else 0
    if not 0 < bottom < picture.height:
        raise SystemExit(
            f"The summary does not fit into {MAX_HEIGHT} pixels, or nothing of it was drawn."
        )
    return picture.crop((0, 0, picture.width, bottom + SCALE * MARGIN))


if __name__ == "__main__":
    main()

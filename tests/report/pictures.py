# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/report.md: pages of tare report in headless Chromium.

usage: pictures.py FOLDER    with faults.html, encoder.html, resnet.html and digits.html

The pages are those of tests/data/faults (--backend qnnpack --qconfig qnnpack), of a sentence encoder, of a ResNet and of
data/digits, each with --backend and --calibrate. Look at the pictures before they are committed.
"""
import pathlib
import sys

from browser import Browser

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "report"
WORST = "[...document.querySelectorAll('#graph-tools button')].find((b) => b.textContent === 'Worst').click()"
# picture -> page, section to scroll to, theme, width, height, a script before
LIST = {
    "verdict-light": ("faults", None, "light", 1280, 700, None),
    "graph-dark": ("encoder", "graph", "dark", 1280, 860, WORST),
    "histograms-light": ("faults", "tensors", "light", 1280, 860, None),
    "roofline-dark": ("resnet", "roofline", "dark", 1280, 930, None),
    "memory-light": ("digits", "memory", "light", 1280, 760, None),
    "phone-light": ("faults", None, "light", 360, 780, None),
    "phone-dark": ("encoder", "graph", "dark", 360, 780, WORST),
}


def take(browser, folder, name):
    page_name, section, theme, width, height, script = LIST[name]
    page = browser.open(folder / f"{page_name}.html", width=width, height=height, theme=theme, is_phone=width < 600)
    if script:
        page.run(script)
    if section:
        page.run(f"document.getElementById('{section}').scrollIntoView()")
    page.frame()
    page.screenshot(PICTURES / f"{name}.png")
    if page.complaints:
        sys.exit(f"{name}: {page.complaints}")
    print(name, f"opened in {page.open_ms:.0f} ms")


def main(folder):
    with Browser() as browser:
        for name in LIST:
            take(browser, folder, name)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

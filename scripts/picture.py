"""Draw a terminal's text as an SVG: farbench demo | picture.py docs/demo.svg 'farbench demo'.

It draws the last table and what follows; fonts are the reader's own, so nothing is fetched.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path

LINE, CHARACTER, MARGIN, BAR = 18.0, 8.1, 16.0, 34.0
COLOURS = {"ground": "#11151c", "text": "#d8dee9", "faint": "#7b8796", "bar": "#1b212b"}
FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def last_table(text: str, most: int = 40) -> list[str]:
    """Cut the end of the output that holds its last table, at most `most` lines."""
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    heads = [i for i, line in enumerate(lines) if line.lower().split()[:1] == ["device"]]
    start = heads[-1] if heads else 0
    return lines[start:][:most]


def draw(lines: list[str], title: str) -> str:
    """Return the SVG of the lines under a title bar."""
    width = 2 * MARGIN + CHARACTER * max(len(title) + 8, *map(len, lines))
    height = BAR + 2 * MARGIN + LINE * len(lines)
    rows = [
        f'<text x="{MARGIN:.0f}" y="{BAR + MARGIN + LINE * (i + 0.75):.1f}" '
        f'textLength="{CHARACTER * len(line):.1f}" lengthAdjust="spacingAndGlyphs" '
        f'fill="{COLOURS["faint"] if i == 0 else COLOURS["text"]}">'
        f"{html.escape(line)}</text>"
        for i, line in enumerate(lines)
        if line
    ]
    dots = "".join(
        f'<circle cx="{20 + 18 * i}" cy="{BAR / 2:.0f}" r="5" fill="{COLOURS["faint"]}"/>'
        for i in range(3)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'font-family="{FONT}" font-size="13.5" xml:space="preserve">',
            f'<rect width="100%" height="100%" rx="8" fill="{COLOURS["ground"]}"/>',
            f'<rect width="100%" height="{BAR:.0f}" rx="8" fill="{COLOURS["bar"]}"/>',
            dots,
            f'<text x="82" y="{BAR / 2 + 5:.0f}" fill="{COLOURS["text"]}">'
            f"{html.escape(title)}</text>",
            *rows,
            "</svg>",
            "",
        ]
    )


def main() -> None:
    """Read the text from standard input and write the picture."""
    if len(sys.argv) != 3:
        sys.exit("usage: picture.py TARGET.svg TITLE < text")
    lines = last_table(sys.stdin.read())
    if not lines:
        sys.exit("picture.py: there is no text to draw")
    Path(sys.argv[1]).write_text(draw(lines, sys.argv[2]), encoding="utf-8")


if __name__ == "__main__":
    main()

"""The small picture on a fuse: calls and errors over the window, as one SVG image."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import Final

from fuseboard_dashboard import theme
from fuseboard_dashboard.language import t

HEIGHT: Final = 30
_STEP: Final = 8
_BAR: Final = 6


def sparkline(calls: Sequence[float], errors: Sequence[float]) -> str:
    """Draw a bar per bucket, its faulty part on top; a bucket without calls is a dot below.

    Args:
        calls: Calls per bucket, oldest first.
        errors: Errors per bucket; each at most the bucket's calls.

    Returns:
        An image element: the page's sanitiser removes SVG elements but keeps images. Any error
        is at least two units high, so that one among thousands shows.
    """
    highest = max(calls, default=0.0)
    good, bad, none = [], [], []
    for place, (total, failed) in enumerate(zip(calls, errors, strict=True)):
        x = place * _STEP
        if total <= 0 or highest <= 0:
            none.append(_rect(x, HEIGHT - 1.5, 1.5))
            continue
        height = max(2.0, (HEIGHT - 4) * total / highest)
        red = 0.0 if failed <= 0 else min(height, max(2.0, height * failed / total))
        if height > red:
            good.append(_rect(x, HEIGHT - (height - red), height - red))
        if red:
            bad.append(_rect(x, HEIGHT - height, red))
    paths = "".join(
        f'<path fill="{colour}" fill-opacity="{opacity}" d="{"".join(parts)}"/>'
        for colour, opacity, parts in (
            (theme.CALLS_COLOUR, 0.6, good),
            (theme.ERROR_COLOUR, 1, bad),
            (theme.GREY, 0.6, none),
        )
        if parts
    )
    width = max(len(calls), 1) * _STEP
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'preserveAspectRatio="none">{paths}</svg>'
    )
    words = escape(t("calls and errors over time"), quote=True)
    return f'<img class="fb-spark" alt="{words}" src="{image(svg)}">'


def image(svg: str) -> str:
    """Return an SVG document as the address of an image."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def _rect(x: float, y: float, height: float) -> str:
    return f"M{x:g} {y:.4g}h{_BAR}v{height:.4g}h-{_BAR}z"

"""The waterfall of a trace as markup: a line per row, its time as bars on one scale.

A call's line opens to its story without asking the server. What lies outside the scale is drawn at
its edge; what is too short to be seen is three pixels wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fuseboard.conventions import UNKNOWN_REGION, ErrorClass, Outcome
from fuseboard_dashboard import story, theme
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.markup import badge, esc, name, shorten
from fuseboard_dashboard.scales import Scale
from fuseboard_dashboard.waterfall import CALL, CHANGE, Row, has_failed, is_faulty, waits

_DEEPEST: Final = 12
"""Rows that lie deeper are indented no further."""


def waterfall(
    rows: Sequence[Row], scale: Scale, inside: Callable[[Row], str], opened: str | None
) -> str:
    """Return the waterfall.

    Args:
        rows: In the order of their tree.
        scale: The time it covers.
        inside: Returns the trusted markup that a call's line opens to.
        opened: Span id of the call that is open from the start.
    """
    lines = []
    for row in rows:
        if row.kind == CALL:
            is_open = opened is not None and row.data.span_id == opened
            opened = None if is_open else opened
            lines.append(_call(row, scale, inside(row), is_open))
        else:
            lines.append(_line(row, scale))
    head = f'<div class="fb-fall-head"><span></span>{_ticks(scale)}<span></span></div>'
    grid = f"--g:{100 * scale.step() / scale.length.total_seconds():.4f}%"
    return (
        f'<div class="fb fb-fall" data-testid="fb-waterfall" style="{grid}">'
        f"{head}{''.join(lines)}</div>"
    )


def _ticks(scale: Scale) -> str:
    marks = "".join(
        f'<span style="left:{place:.2f}%">{esc(theme.seconds(seconds))}</span>'
        for seconds, place in scale.ticks()
        if place < 97  # a label there would stand over the edge
    )
    return f'<div class="fb-ticks">{marks}</div>'


def _call(row: Row, scale: Scale, inside: str, is_open: bool) -> str:
    call = row.data
    hooks = "".join(
        f' data-{key}="{esc(value if value is not None else "")}"'
        for key, value in (
            ("span", call.span_id), ("tool", call.tool), ("region", call.region),
            ("outcome", call.outcome), ("class", call.error_class), ("attempts", call.attempts),
            ("args-hash", call.args_hash),
        )
    )  # fmt: skip
    return (
        f'<details class="fb-fall-row is-call" data-testid="fb-call"{hooks}'
        f"{' open' if is_open else ''}><summary>{_what(row)}"
        f'<span class="fb-lane">{call_bars(row, scale)}</span>{_length(row)}</summary>'
        f'<div class="fb-story">{inside}</div></details>'
    )


def _what(row: Row) -> str:
    call = row.data
    mark = theme.mark(theme.OUTCOME_MARKS, call.outcome)
    place = "" if call.region == UNKNOWN_REGION else call.region
    region = f' <span class="fb-quiet">{esc(place)}</span>'
    marks = []
    if call.outcome != Outcome.OK:
        marks.append(badge(mark))
    if call.error_class is not None or call.outcome in (Outcome.ERROR, Outcome.REJECTED):
        known = call.error_class or ErrorClass.UNCLASSIFIED
        marks.append(badge(theme.mark(theme.CLASS_MARKS, known)))
    if call.attempts > 1:
        words = n("{count} attempt", "{count} attempts", int(call.attempts))
        marks.append(f'<span class="fb-chip" title="{esc(words)}">{int(call.attempts)}×</span>')
    symbol = f'<span class="fb-symbol" style="color:{mark.colour}">{esc(mark.symbol)}</span>'
    return (
        f'<span class="fb-what" style="--d:{min(row.depth, _DEEPEST)}">{symbol}'
        f"{name(shorten(call.tool, 40))}{region}<span>{''.join(marks)}</span></span>"
    )


def _length(row: Row) -> str:
    length = theme.seconds((row.end - row.start).total_seconds())
    return f'<span class="fb-len">{esc(length)}</span>'


def call_bars(row: Row, scale: Scale) -> str:
    """Return a call's bars: its whole time as a line, attempts on it, waits between them.

    Args:
        row: The call.
        scale: Where its moments lie.
    """
    mark = theme.mark(theme.OUTCOME_MARKS, row.data.outcome)
    parts = [_bar("fb-track", scale.bar(row.start, row.end), mark.colour)]
    for attempt, start, end in waits(row):
        words = t("Waited {wait} before attempt {number}",
                  wait=theme.seconds(attempt.delay_seconds), number=attempt.number)  # fmt: skip
        parts.append(_bar("fb-wait", scale.bar(start, end), theme.GREY, words))
    is_single = len(row.attempts) == 1
    parts += [_attempt(attempt, scale, is_single=is_single) for attempt in row.attempts]
    if not row.attempts:
        kind = "fb-bar is-faulty" if is_faulty(row) else "fb-bar is-untried"
        words = t("No attempt was made") if row.data.attempts == 0 else mark.label
        parts.append(_bar(kind, scale.bar(row.start, row.end), mark.colour, words))
    return "".join(parts)


def _attempt(attempt: Any, scale: Scale, *, is_single: bool) -> str:
    colour, kind = theme.OUTCOME_MARKS[Outcome.OK].colour, "fb-bar"
    length = theme.seconds(attempt.duration_seconds)
    words = t("Attempt {number}: {length}", number=attempt.number, length=length)
    if has_failed(attempt):
        known = attempt.error_class or ErrorClass.UNCLASSIFIED
        colour, kind = theme.mark(theme.CLASS_MARKS, known).colour, "fb-bar is-faulty"
        words = f"{words}, {story.fault_words(attempt)}"
    text = "" if is_single else str(attempt.number)
    return _bar(kind, scale.bar(attempt.start, attempt.end), colour, words, text)


def _bar(
    kind: str, place: tuple[float, float], colour: str, words: str = "", text: str = ""
) -> str:
    left, width = place
    title = f' title="{esc(words[:300])}"' if words else ""
    return (
        f'<i class="{kind}" style="left:min({left:.3f}%,100% - 3px);width:{width:.3f}%;'
        f'--c:{colour}"{title}>{esc(text)}</i>'
    )


def _line(row: Row, scale: Scale) -> str:
    """Return the line of what opens to nothing: a span around calls, or a breaker's change."""
    left, width = scale.bar(row.start, row.end)
    if row.kind == CHANGE:
        mark = theme.mark(theme.STATE_MARKS, row.data.to_state)
        words = story.change(row.data)
        place = (left, 0.0)
        bar = _bar("fb-moment", place, mark.colour, words, mark.symbol)
        what = f'<span class="fb-symbol" style="color:{mark.colour}">{esc(mark.symbol)}</span>'
        what += f'<span class="fb-name" title="{esc(words[:500])}">{esc(_moved(row.data))}</span>'
        length, hook = '<span class="fb-len"></span>', "fb-change-row"
    else:
        bar = _bar("fb-around", (left, width), theme.GREY, str(row.data.name))
        what, length, hook = _around(row.data), _length(row), "fb-span"
    depth = min(row.depth, _DEEPEST)
    return (
        f'<div class="fb-fall-row is-{esc(row.kind)}" data-testid="{hook}">'
        f'<span class="fb-what" style="--d:{depth}">{what}</span>'
        f'<span class="fb-lane">{bar}</span>{length}</div>'
    )


def _moved(change: Any) -> str:
    old, new = (theme.mark(theme.STATE_MARKS, state).label
                for state in (change.from_state, change.to_state))  # fmt: skip
    return f"{old} → {new} · {shorten(str(change.breaker), 60)}"


def _around(span: Any) -> str:
    failed = span.status == "ERROR"
    symbol = theme.OUTCOME_MARKS[Outcome.ERROR].symbol if failed else "◇"
    tokens = ""
    if span.input_tokens is not None or span.output_tokens is not None:
        words = t("{read} tokens in, {written} out", read=theme.count(span.input_tokens),
                  written=theme.count(span.output_tokens))  # fmt: skip
        tokens = f'<span class="fb-chip">{esc(words)}</span>'
    return f'<span class="fb-symbol">{symbol}</span>{name(shorten(span.name, 48))}{tokens}'


def legend(rows: Iterable[Row]) -> str:
    """Return what the bars mean, only those that are drawn.

    Args:
        rows: What is drawn.
    """
    drawn = list(rows)
    attempts = [attempt for row in drawn for attempt in row.attempts]
    parts = []
    if any(not has_failed(attempt) for attempt in attempts):
        parts.append(_key("fb-bar", theme.OUTCOME_MARKS[Outcome.OK].colour, t("attempt succeeded")))
    classes = {a.error_class or ErrorClass.UNCLASSIFIED for a in attempts if has_failed(a)}
    for value, mark in theme.CLASS_MARKS.items():
        if value in classes:
            words = t("attempt failed, {label}", label=mark.label)
            parts.append(_key("fb-bar is-faulty", mark.colour, words))
    if any(attempt.delay_seconds > 0 for attempt in attempts):
        parts.append(_key("fb-wait", theme.GREY, t("waited (back-off)")))
    if any(row.kind == CALL and not row.attempts for row in drawn):
        parts.append(_key("fb-bar is-untried", theme.GREY, t("no attempt")))
    if any(row.kind not in (CALL, CHANGE) for row in drawn):
        parts.append(_key("fb-around", theme.GREY, t("span around calls: agent, model, request")))
    return f'<div class="fb fb-fall-key">{"".join(parts)}</div>'


def _key(kind: str, colour: str, words: str) -> str:
    return f'<span><i class="{kind}" style="--c:{colour}"></i>{esc(words)}</span>'

"""The panel that tells what each breaker did, with the ways to the calls behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fuseboard.classification.sdk_errors import CIRCUIT_OPEN
from fuseboard.conventions import BreakerState
from fuseboard_dashboard import markup, theme, traces
from fuseboard_dashboard.blast import Blast, sentence, time
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View

MOST: Final = 100


def draw(view: View, blasts: list[Blast]) -> str:
    """Return the table of breakers, the most damaging first, as markup.

    Args:
        view: For the window, times and links.
        blasts: Of ``blast.blasts``.
    """
    headers = (
        (t("Breaker, and what it did"), False), (t("Time open"), True), (t("Opened"), True),
        (t("Rejected"), True), (t("Degraded"), True), (t("Sessions"), True), (t("Agents"), True),
        (t("Last probe"), False), (t("Next probe"), False),
    )  # fmt: skip
    return markup.table(headers, [_row(view, one) for one in blasts[:MOST]])


def _row(view: View, one: Blast) -> list[str]:
    # What a breaker did is counted whatever classes are chosen: so must be what a number leads to.
    own = replace(view.filters.narrowed(tool=one.tool, region=one.region), classes=())
    mark = theme.mark(theme.STATE_MARKS, one.state)
    named = f"{markup.link(markup.name(one.breaker), own.link('tool'))} {markup.badge(mark)}"
    words = markup.esc(sentence(one, view.window.length))
    frame = f'<div class="fb-blast" style="--c:{mark.colour}" {_hooks(one)}>'
    return [
        f"{frame}<div>{named}</div><p>{words}{_newest(view, one)}</p></div>",
        markup.esc(time(one.open_seconds)) if one.open_seconds else _none("0 s"),
        _opened(one),
        _number(one.rejected, own.link("errors")),
        _number(one.degraded, own.link("degradation", [("classifier", CIRCUIT_OPEN)])),
        _number(one.sessions),
        f'<span title="{markup.esc(one.agent_names)}">{_number(one.agents)}</span>',
        _last(view, one),
        _next(view, one),
    ]


def _newest(view: View, one: Blast) -> str:
    """Return the way to the newest call that was turned away."""
    if one.trace_id is None or one.last_turned_away is None:
        return ""
    words = markup.esc(t("the newest {time} ago", time=view.ago(one.last_turned_away)))
    return f" · {_traced(view, words, one.trace_id, one.last_turned_away)}"


def _traced(view: View, inner: str, trace_id: str, moment: datetime) -> str:
    return markup.link(inner, traces.link(view.filters, trace_id, moment))


def _none(words: str) -> str:
    return f'<span class="fb-mute">{markup.esc(words)}</span>'


def _number(value: float, href: str = "") -> str:
    if not value:
        return _none("0")
    shown = markup.esc(theme.count(value))
    return markup.link(shown, href) if href else shown


def _opened(one: Blast) -> str:
    if not one.periods:
        return _none("0")
    title = t("Times it left the closed state; again: within a minute after it had closed")
    again = f" ({t('{number} again', number=one.reopened)})" if one.reopened else ""
    return f'<span title="{markup.esc(title)}">{one.periods}{markup.esc(again)}</span>'


def _last(view: View, one: Blast) -> str:
    if one.last_probe is None:
        return _none(theme.NOTHING)
    mark = theme.mark(theme.OUTCOME_MARKS, one.probe_outcome)
    words = t("{time} ago", time=view.ago(one.last_probe))
    shown = f"{markup.badge(mark)} {markup.esc(words)}"
    if one.probe_trace_id is None:
        return shown
    return _traced(view, shown, one.probe_trace_id, one.last_probe)


def _next(view: View, one: Blast) -> str:
    words, title = next_probe(one, view.window.until)
    if one.due is not None and one.due.replace(tzinfo=UTC) > view.window.until:
        title += f" ({view.clock(one.due)})"
    return f'<span title="{markup.esc(title)}">{markup.esc(words)}</span>'


def next_probe(one: Blast, now: datetime) -> tuple[str, str]:
    """Return when a breaker lets a call through again, and how that is known.

    Args:
        one: The breaker.
        now: End of the window.
    """
    if one.state == BreakerState.ISOLATED:
        return t("by hand"), t("Held open by hand: it does not probe by itself.")
    if one.state == BreakerState.HALF_OPEN:
        return t("now"), t("Half-open: it lets single calls through.")
    if one.state != BreakerState.OPEN:
        return theme.NOTHING, t("Not open.")
    if one.due is None:
        return t("not known"), t("No call was turned away yet that was told when.")
    left = one.due.replace(tzinfo=UTC) - now
    told = t("Told to the call that was turned away last, by its process.")
    if left.total_seconds() <= 0:
        return t("with the next call"), told
    return t("in {time}", time=theme.span(left)), told


def _hooks(one: Blast) -> str:
    values = {
        "breaker": one.breaker, "state": one.state, "open-seconds": repr(one.open_seconds),
        "periods": one.periods, "reopened": one.reopened, "rejected": one.rejected,
        "degraded": one.degraded, "sessions": one.sessions, "agents": one.agents,
        "probes": one.probes,
    }  # fmt: skip
    pairs = " ".join(f'data-{key}="{markup.esc(value)}"' for key, value in values.items())
    return f'data-testid="fb-blast" {pairs}'

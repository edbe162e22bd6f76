"""HTML that pages are made of. Names come from outside: everything passes :func:`esc` here.

Hooks for tests and scripts, stable like an API:

* ``data-testid="fb-stat"`` with ``data-stat`` (``calls``, ``error-ratio``, …) and ``data-value``
  (the unrounded number, empty where there is none) on every headline number;
* ``data-testid="fb-fuse"`` with ``data-tool``, ``data-region``, ``data-state`` (of the breaker;
  empty without one), ``data-level``, ``data-alerts`` (names of those that fire, by blanks) and
  ``data-calls``, ``data-errors``, ``data-judged``, ``data-input-faults``, ``data-retried``,
  ``data-attempted``, ``data-degraded``, ``data-p99`` on every fuse of the board;
* ``data-testid="fb-cell"`` with ``data-class``, ``data-tool``, ``data-region``, ``data-value`` in
  the matrix of errors;
* ``data-testid="fb-window"`` with ``data-since`` and ``data-until`` (RFC 3339): the window that
  all numbers of the page are about, (since, until] over the end of calls;
* ``data-testid="fb-alert"`` with ``data-alert``, ``data-state``, ``data-severity``,
  ``data-muted``;
* ``data-testid="fb-mute"`` with ``data-id``, ``data-alert``, ``data-tool``, ``data-region`` and
  ``data-ends`` on every mute, ``fb-mute-done`` and ``fb-mute-problem`` on what came of a click,
  ``fb-mutes-unknown`` where they can't be read;
* ``data-testid="fb-change"`` with ``data-measure`` (``errors``, ``retries``, ``slow``), the values
  that its calls share (``data-tool``, ``data-region``, ``data-args-hash``, ``data-error-class``,
  ``data-agent``, ``data-service``, ``data-upstream``), ``data-rate``, ``data-before``,
  ``data-events`` and ``data-share`` on every line of what changed;
* ``data-testid="fb-budget"`` with ``data-tool``, ``data-kind`` (``availability``, ``latency``,
  ``correctness``), ``data-state`` (``fast``, ``gone``, ``slow``, ``fine``, ``few``),
  ``data-target``, ``data-total``, ``data-bad`` and ``data-left`` on every row of budgets;
* ``data-testid="fb-layer"`` with ``data-layer`` and ``data-value`` on the calls that failed in it;
* ``data-testid="fb-standing"`` with ``data-rule``, ``data-tool``, ``data-region``, ``data-value``,
  ``data-threshold`` and ``data-true`` on every series of an alert rule;
* ``data-testid="fb-blast"`` with ``data-breaker``, ``data-state``, ``data-open-seconds``,
  ``data-periods``, ``data-reopened``, ``data-rejected``, ``data-degraded``, ``data-sessions``,
  ``data-agents`` and ``data-probes`` on every breaker that did something in the window;
* ``data-testid="fb-answer-cell"`` with ``data-kind`` (of ``theme.ANSWER_MARKS``), ``data-tool``,
  ``data-region``, ``data-value`` in the matrix of degradation;
* ``data-testid="fb-node"`` with ``data-column`` (``caller``, ``tool``, ``upstream``), ``data-name``
  (empty for others and for what is not told), ``data-folded``, ``data-level``, ``data-calls``,
  ``data-errors`` on every node of the dependencies, ``fb-fate`` with ``data-upstream``,
  ``data-region``, ``data-together``, ``data-failing`` on every sentence on a shared fate;
* ``data-testid="fb-entry"`` with ``data-kind`` (``change``, ``alert``, ``mute``, ``breaker``,
  ``first``, ``last``, ``degraded``, ``dip``, ``process``), ``data-time`` (RFC 3339),
  ``data-count`` on every entry of an incident's timeline;
* ``data-testid="fb-unguarded"`` with ``data-tool`` on tools that no policy of ours guards;
* ``data-testid="fb-trace"`` with ``data-trace``, ``fb-waterfall``, and on its lines ``fb-call``
  (``data-span``, ``data-tool``, ``data-region``, ``data-outcome``, ``data-class``,
  ``data-attempts``, ``data-args-hash``), ``fb-span`` and ``fb-change-row``; ``fb-story`` in a call;
  ``fb-trace-unknown``, ``fb-trace-malformed`` and ``fb-no-traces`` where there is none;
* ``data-testid="fb-visitor"`` in the sidebar: who is logged in;
* ``data-testid="fb-session"`` with ``data-session``, ``data-calls``, ``data-faults`` and
  ``data-repeats`` on every line of the sessions; ``fb-session-head`` (``data-session``) and
  ``fb-circle`` (``data-tool``, ``data-args-hash``, ``data-calls``, ``data-longest``) on one of
  them; ``fb-no-sessions`` and ``fb-session-unknown`` where there is none;
* ``data-testid="fb-reading"`` in a page's head while the store takes over a second;
* ``data-testid="fb-problem"`` where a panel could not be drawn, ``fb-first-run`` and
  ``fb-no-match`` on the empty states, ``fb-notice`` on ignored URL parameters, ``fb-narrowed``
  where a page parameter narrows a part of the page, ``fb-bounded`` where the window was cut to
  what can be counted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from fuseboard_dashboard import theme
from fuseboard_dashboard.language import t

SHOWN_LENGTH: Final = 80
"""Characters of a foreign name in running text; the whole name is in the tooltip."""

_LOGO: Final = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="{theme.SLATE}">'
    f'<rect x="2" y="2" width="20" height="20" rx="3.4" fill="none" stroke="{theme.SLATE}" '
    'stroke-width="1.8"/><path d="M7.4 6h1.2v12H7.4zM15.4 6h1.2v12h-1.2z" opacity=".45"/>'
    '<rect x="5.7" y="6.8" width="4.6" height="5.2" rx="1"/>'
    f'<rect x="13.7" y="12" width="4.6" height="5.2" rx="1" fill="{theme.ORANGE}"/></svg>'
)


def esc(value: object) -> str:
    """Escape any text for HTML content and attributes; control characters are dropped."""
    text = str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return escape(text, quote=True)


def shorten(text: str, limit: int = SHOWN_LENGTH) -> str:
    """Cut a text in the middle, so that names with equal heads stay apart."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}…{text[-(limit - head - 1) :]}"


def name(text: object) -> str:
    """Return a foreign name that is cut by the layout, whole in its tooltip."""
    whole = str(text)
    shown = shorten(whole) if whole.strip() else repr(whole)  # a blank could not be seen or clicked
    return f'<span class="fb-name" title="{esc(whole[:500])}">{esc(shown)}</span>'


def link(inner: str, href: str) -> str:
    """Wrap trusted markup into a link; ``href`` is escaped here."""
    return f'<a href="{esc(href)}" target="_self">{inner}</a>'


def stylesheet() -> str:
    """Return the style element: the theme's colours as variables, then the sheet."""
    colours = {
        "live": theme.GREEN,
        "focus": theme.BLUE,
        "bad": theme.ERROR_COLOUR,
        "warn": theme.RETRY_COLOUR,
    }
    colours["on-primary"] = f"light-dark({theme.ink(theme.SLATE)}, {theme.ink(theme.DARK_PRIMARY)})"
    variables = "".join(f"--fb-{key}:{value};" for key, value in colours.items())
    sheet = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"<style>:root{{{variables}}}{sheet}</style>"


def brand() -> str:
    """Return the product's mark."""
    source = f"data:image/svg+xml;base64,{b64encode(_LOGO.encode()).decode()}"
    return f'<div class="fb fb-brand"><img alt="" src="{source}"><span>fuseboard</span></div>'


def visitor(words: str, who: str) -> str:
    """Return who is logged in; ``who`` comes from outside."""
    return (
        f'<div class="fb fb-visitor" data-testid="fb-visitor"><span class="fb-quiet">{esc(words)}'
        f"</span> {name(who)}</div>"
    )


def language_of_page(tag: str) -> str:
    """Return the element that tells the browser the page's language; Streamlit always says en.

    Args:
        tag: One of ours.
    """
    return f'<script>document.documentElement.lang = "{esc(tag)}"</script>'


def badge(mark: theme.Mark, text: str | None = None, *, loud: bool = False) -> str:
    """Return a pill with the symbol, label and colour of a mark."""
    kind = " is-loud" if loud else ""
    return (
        f'<span class="fb-badge{kind}" style="--c:{mark.colour};--ink:{theme.ink(mark.colour)}">'
        f'<span class="fb-symbol">{esc(mark.symbol)}</span>{esc(text or mark.label)}</span>'
    )


def breaker(state: str | None, age: str = "", *, loud: bool = False) -> str:
    """Return the pill of a breaker's state; a dash where no breaker is known.

    Args:
        state: A key of the state marks, or None.
        age: For how long, in words.
        loud: Whether it asks for somebody.
    """
    if state is None:
        title = esc(t("No breaker: no call here passed one, and none is known from before."))
        return f'<span class="fb-no-breaker" title="{title}">{theme.NO_BREAKER.symbol}</span>'
    mark = theme.mark(theme.STATE_MARKS, state)
    return badge(mark, f"{mark.label} {age}".rstrip(), loud=loud)


@dataclass(frozen=True, slots=True)
class Stat:
    """A headline number.

    Attributes:
        id: Stable name, the ``data-stat`` hook.
        label: What it is.
        text: The number as shown.
        value: The number as computed, the ``data-value`` hook; None where there is none.
        note: Words below it.
        tone: ``""``, ``"warn"`` or ``"bad"``.
        href: Where it leads.
        hint: Definition, as a tooltip.
    """

    id: str
    label: str
    text: str
    value: float | None
    note: str = ""
    tone: str = ""
    href: str = ""
    hint: str = ""


def stats(items: Iterable[Stat]) -> str:
    """Return a row of headline numbers."""
    cells = [_stat(item) for item in items]
    return f'<div class="fb fb-stats" style="--n:{len(cells)}">{"".join(cells)}</div>'


def _stat(item: Stat) -> str:
    tone = f" is-{item.tone}" if item.tone else ""
    value = "" if theme.is_missing(item.value) else repr(float(item.value or 0))
    flag = '<span class="fb-flag">▲</span>' if item.tone else ""
    tag, href = ("a", f' href="{esc(item.href)}" target="_self"') if item.href else ("div", "")
    return (
        f'<{tag} class="fb-stat{tone}"{href} title="{esc(item.hint)}" data-testid="fb-stat" '
        f'data-stat="{esc(item.id)}" data-value="{value}">'
        f'<div class="fb-label">{esc(item.label)}</div>'
        f'<div class="fb-value">{flag}{esc(item.text)}</div>'
        f'<div class="fb-note">{esc(item.note)}</div></{tag}>'
    )


def heading(title: str, question: str, as_of: str) -> str:
    """Return a page's head; ``as_of`` is trusted markup."""
    return (
        f'<div class="fb fb-head"><div><h1>{esc(title)}</h1><p>{esc(question)}</p></div>'
        f'<div class="fb-asof">{as_of}</div></div>'
    )


def section(title: str, words: str = "") -> str:
    """Return the head of a panel."""
    below = f"<p>{esc(words)}</p>" if words else ""
    return f'<div class="fb fb-section"><h2>{esc(title)}</h2>{below}</div>'


def notice(words: str, mark: theme.Mark, testid: str) -> str:
    """Return one line of advice."""
    return (
        f'<div class="fb fb-notice" data-testid="{esc(testid)}" style="--c:{mark.colour}">'
        f'<span class="fb-symbol">{esc(mark.symbol)}</span>'
        f'<span class="fb-break">{esc(words)}</span></div>'
    )


def quiet(words: str) -> str:
    """Return one quiet line: that there is nothing to show, mostly."""
    return f'<div class="fb fb-quiet">{esc(words)}</div>'


def table(headers: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """Return a small table.

    Args:
        headers: Title, and whether the column holds numbers.
        rows: Cells, trusted markup.
    """
    kinds = [' class="is-number"' if number else "" for _, number in headers]
    head = "".join(
        f'<th scope="col"{k}>{esc(t)}</th>' for (t, _), k in zip(headers, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{k}>{_cell(c)}</td>" for c, k in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="fb fb-scroll"><table class="fb-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(content: str) -> str:
    """Let names be cut before the table gets too wide for its panel."""
    if "fb-name" not in content or "<p" in content:
        return content
    return f'<div class="fb-shrinks"><div>{content}</div></div>'

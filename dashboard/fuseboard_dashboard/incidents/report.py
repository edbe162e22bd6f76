"""An incident as Markdown: the same text for the page's download and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial

from fuseboard_dashboard.incidents import evidence as gathering
from fuseboard_dashboard.incidents.entry import Entry
from fuseboard_dashboard.incidents.evidence import Evidence, gather
from fuseboard_dashboard.incidents.summary import Summary, summarise
from fuseboard_dashboard.incidents.timeline import change_words, timeline
from fuseboard_dashboard.incidents.wording import code, markdown
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.view import View


@dataclass(frozen=True)
class Incident:
    """Everything that is told of a window.

    Attributes:
        evidence: What the store knows.
        summary: The lines at the top.
        entries: The timeline in order of time.
        left_out: Entries beyond those that one page holds.
    """

    evidence: Evidence
    summary: Summary
    entries: tuple[Entry, ...]
    left_out: int

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing happened."""
        return not self.entries and self.summary.trouble is None


def incident(view: View) -> Incident:
    """Return what happened in a view's window."""
    evidence = gather(view)
    summary = summarise(evidence, partial(gathering.moments, view, evidence.counted))
    entries, left_out = timeline(evidence, summary.trouble)
    return Incident(evidence, summary, tuple(entries), left_out)


def milestone_words(id_: str) -> str:
    """Return the name of a line of the summary."""
    return {
        "began": t("Began"), "detected": t("Detected"), "mitigated": t("Mitigated"),
        "over": t("Over"),
    }[id_]  # fmt: skip


def to_markdown(found: Incident, zone: tzinfo, zone_name: str, address: str = "") -> str:
    """Return the report.

    Args:
        found: The incident.
        zone: Of the viewer, named beside the times in UTC.
        zone_name: Its name.
        address: Base address of the dashboard; empty: links are written out without it.
    """
    window, filters = found.evidence.window, found.evidence.filters
    since, until = (_stamp(gathering.naive(end)) for end in (window.since, window.until))
    lines = [f"# {t('Incident')}: {since} – {until} UTC", ""]
    lines += [_zone_line(window.until, zone, zone_name), ""]
    lines += [_link(t("The same window on the dashboard"), filters.link("incident"), address), ""]
    chosen = _chosen(found)
    if chosen:
        lines += [chosen, ""]
    if found.is_empty:
        return "\n".join([*lines, t("Nothing happened in this window."), ""])
    lines += [f"## {t('Summary')}", ""]
    for line in found.summary.milestones:
        when = f" {_stamp(line.moment)} UTC:" if line.moment is not None else ""
        lines.append(f"- **{milestone_words(line.id)}**{when} {markdown(line.sentence)}")
    lines += [f"- {markdown(words)}" for words in found.summary.impact]
    lines += ["", f"## {t('What changed')}", ""]
    lines += [f"- {markdown(change_words(change))}" for change in found.evidence.rises] or [
        f"- {markdown(found.evidence.untold or t('Nothing rose by more than chance explains.'))}"
    ]
    lines += ["", f"## {t('Timeline')}", ""]
    lines += [_entry(entry, address) for entry in found.entries]
    if found.left_out:
        lines += ["", left_out_words(found)]
    return "\n".join([*lines, ""])


def left_out_words(found: Incident) -> str:
    """Return how many entries are missing."""
    return n("{count} more entry is left out: choose a shorter window.",
             "{count} more entries are left out: choose a shorter window.",
             found.left_out)  # fmt: skip


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _zone_line(moment: datetime, zone: tzinfo, name: str) -> str:
    offset = moment.astimezone(zone).utcoffset() or timedelta(0)
    minutes = int(offset.total_seconds()) // 60
    shown = f"UTC{'+' if minutes >= 0 else '−'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    if zone is UTC or not minutes:
        return t("All times are UTC.")
    return t("All times are UTC; the viewer's zone was {zone} ({offset}).", zone=markdown(name),
             offset=shown)  # fmt: skip


def _chosen(found: Incident) -> str:
    filters = found.evidence.filters
    words = []
    for title, values in ((t("tools"), filters.tools), (t("regions"), filters.regions)):
        if values:
            words.append(f"{title} {', '.join(code(_one_line(value)) for value in values)}")
    return t("Only {filters}.", filters=t(", ").join(words)) if words else ""


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _link(words: str, href: str, address: str) -> str:
    if not address:
        return f"{words}: {code(href)}"
    # Angle brackets keep parentheses of an address from ending the link.
    return f"[{words}](<{address.rstrip('/')}/{href}>)"


def _entry(entry: Entry, address: str) -> str:
    way = f" ({_link(t('calls'), entry.href, address)})" if address else ""
    when = _stamp(entry.moment)
    return f"- {when} {entry.mark.symbol} {markdown(entry.sentence)}{way}"

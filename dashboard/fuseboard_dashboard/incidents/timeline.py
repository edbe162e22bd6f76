"""The entries of an incident's timeline: each with its time, a sentence and a way to the calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import pandas as pd

from fuseboard_dashboard import changed, theme
from fuseboard_dashboard.changes import Change
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.incidents.entry import KINDS, Entry
from fuseboard_dashboard.incidents.evidence import Evidence
from fuseboard_dashboard.incidents.signals import alerts, breakers, mutes
from fuseboard_dashboard.incidents.stretch import Trouble
from fuseboard_dashboard.incidents.wording import named
from fuseboard_dashboard.language import n, t

MOST: Final = 1000
WORST: Final = 10
"""Slices whose first and last bad call are told of."""
SILENT: Final = timedelta(seconds=45)
"""Three heartbeats: who sends none for so long is gone."""
DIP: Final = 0.5
"""Less than this share of the usual number of calls is a dip."""
LEAST_USUAL: Final = 20
"""Calls per bucket below which a dip may be chance."""


def timeline(evidence: Evidence, trouble: Trouble | None = None) -> tuple[list[Entry], int]:
    """Return the entries in order of time, and how many were left out beyond ``MOST``.

    Args:
        evidence: What the store knows.
        trouble: The worst tool's bad stretch, for when its errors rose.
    """
    found = [
        *_changes(evidence, trouble), *alerts(evidence), *mutes(evidence), *breakers(evidence),
        *_slices(evidence), *_degraded(evidence), *_dips(evidence), *_processes(evidence),
    ]  # fmt: skip
    kept = sorted(found, key=lambda entry: (KINDS.index(entry.kind), entry.moment))[:MOST]
    kept.sort(key=lambda entry: (entry.moment, KINDS.index(entry.kind), entry.sentence))
    return kept, len(found) - len(kept)


def change_words(change: Change) -> str:
    """Return what rose, where, and how much of the rise that is, in a sentence."""
    where = change.where
    parts = [named(where["tool"])] if "tool" in where else [t("all tools")]
    if "region" in where:
        parts.append(t("in {region}", region=named(where["region"])))
    if "args_hash" in where:
        parts.append(t("with arguments {hash}", hash=named(where["args_hash"])))
    if "agent" in where:
        parts.append(t("of agent {agent}", agent=named(where["agent"])))
    if "service" in where:
        parts.append(t("of service {service}", service=named(where["service"])))
    if "upstream" in where:
        parts.append(t("at {upstream}", upstream=named(where["upstream"])))
    error_class = where.get("error_class") or change.mostly
    if error_class:
        parts.append(f"({theme.mark(theme.CLASS_MARKS, error_class).label})")
    what = {
        "errors": t("errors"), "retries": t("retried calls"), "slow": t("slow calls"),
    }[change.measure.id]  # fmt: skip
    before = t("no calls") if change.before is None else theme.percent(change.before)
    return t("{what} of {where} rose from {before} to {now}: {share} of the rise", what=what,
             where=" ".join(parts), before=before, now=theme.percent(change.rate),
             share=theme.percent(round(change.share, 2)))  # fmt: skip


def _changes(evidence: Evidence, trouble: Trouble | None) -> Iterator[Entry]:
    """Yield rises of errors where they began."""
    for change in evidence.rises:
        rows = evidence.slices
        for name in ("tool", "region", "error_class"):
            if name in change.where:
                rows = rows[rows[name] == change.where[name]]
        if change.measure.id != "errors" or not len(rows):
            continue
        yield Entry(_rose(evidence, trouble, change, rows["first_bad"].min()), "change",
                    theme.mark(theme.OUTCOME_MARKS, "error"), change_words(change),
                    changed.link(evidence.filters, change), round(change.events))  # fmt: skip


def _rose(
    evidence: Evidence, trouble: Trouble | None, change: Change, first_bad: pd.Timestamp
) -> datetime:
    """Return when a rise began: not at the first bad call, there were some before it, too."""
    tool = change.where.get("tool")
    if trouble is not None and tool == trouble.tool:
        return trouble.began
    series = evidence.series if tool is None else evidence.series[evidence.series["tool"] == tool]
    sums = series.groupby("bucket")[["calls", "errors"]].sum().sort_index()
    # What is over half way up, summed, is lowest where the rise begins and highest where it ends:
    # a single bad call in a narrow bucket does not count.
    excess = sums["errors"] - sums["calls"] * ((change.before or 0.0) + change.rate) / 2
    total = excess.cumsum()
    before = (total - excess).loc[: total.idxmax()] if len(total) else total
    began = max(pd.Timestamp(str(before.idxmin())), first_bad) if len(before) else first_bad
    return pd.Timestamp(began).to_pydatetime()


def _slices(evidence: Evidence) -> Iterator[Entry]:
    """Yield the first and the last bad call of the worst slices."""
    for row in rows_of(evidence.slices.head(WORST)):
        href = evidence.filters.narrowed(
            tool=row.tool, region=row.region, error_class=row.error_class
        ).link("errors")
        mark = theme.mark(theme.CLASS_MARKS, row.error_class)
        about = {"class_": mark.label, "tool": named(row.tool), "region": named(row.region)}
        words = t("first of {number} bad calls of {tool} in {region} ({class_})",
                  number=f"{row.bad:,.0f}", **about)  # fmt: skip
        if row.bad == 1:
            words = t("the only bad call of {tool} in {region} ({class_})", **about)
        yield Entry(row.first_bad.to_pydatetime(), "first", mark, words, href, round(row.bad))
        if row.last_bad > row.first_bad:
            words = t("last bad call of {tool} in {region} ({class_})", **about)
            yield Entry(row.last_bad.to_pydatetime(), "last", mark, words, href)


def _degraded(evidence: Evidence) -> Iterator[Entry]:
    """Yield each stretch of time in which a tool's answers were stand-ins."""
    mark = theme.OUTCOME_MARKS["degraded"]
    for tool, rows in evidence.series.groupby("tool", sort=True):
        served = rows[rows["degraded"] > 0].sort_values("bucket")
        # A bucket without any in between does not end a stretch.
        stretch = (served["bucket"].diff() > 2 * evidence.bucket).cumsum()
        href = evidence.filters.narrowed(tool=str(tool)).link("degradation")
        for _, part in served.groupby(stretch):
            began = _exactly(evidence, str(tool), part["bucket"].iloc[0])
            ended = min((part["bucket"].iloc[-1] + evidence.bucket).to_pydatetime(),
                        evidence.until)  # fmt: skip
            number = round(part["degraded"].sum())
            words = n("a stand-in answered {count} call of {tool}",
                      "stand-ins answered {count} calls of {tool} in {time}", number,
                      tool=named(tool), time=theme.span(ended - began))  # fmt: skip
            yield Entry(began, "degraded", mark, words, href, number)


def _exactly(evidence: Evidence, tool: str, bucket: pd.Timestamp) -> datetime:
    """Return when the first stand-in of a bucket answered, where that is known; else its start."""
    first = evidence.slices.loc[evidence.slices["tool"] == tool, "first_degraded"].min()
    if not pd.isna(first) and bucket <= first <= bucket + evidence.bucket:
        return pd.Timestamp(first).to_pydatetime()
    return max(bucket.to_pydatetime(), evidence.since)


def _dips(evidence: Evidence) -> Iterator[Entry]:
    """Yield each stretch with less than half as many calls as usual; ragged ends don't count.

    Nor do buckets from before the first call of all: nothing fell silent there.
    """
    inner = evidence.calls.iloc[1:-1]
    if evidence.first_start is not None:
        inner = inner[inner.index > evidence.first_start]
    busy = inner[inner > 0]
    usual = float(busy.median()) if len(busy) else 0.0
    if usual < LEAST_USUAL:
        return
    low = inner[inner < DIP * usual]
    stretch = (low.index.to_series().diff() > evidence.bucket).cumsum()
    for _, part in low.groupby(stretch.to_numpy()):
        began = pd.Timestamp(part.index[0])
        words = t("only {calls} calls in {time}, usually {usual}",
                  calls=f"{part.sum():,.0f}", time=theme.span(evidence.bucket * len(part)),
                  usual=f"{usual * len(part):,.0f}")  # fmt: skip
        yield Entry(began.to_pydatetime(), "dip", DIP_MARK, words, evidence.filters.link("board"))


def _processes(evidence: Evidence) -> Iterator[Entry]:
    frame = evidence.processes
    if not len(frame):
        return
    href = evidence.filters.link("board")
    for (instance, service), rows in frame.groupby(["instance", "service"], sort=True):
        first, last = rows["first_beat"].min(), rows["last_beat"].max()
        newest = rows.sort_values("last_beat").iloc[-1]["version"]
        about = {"instance": named(instance), "service": named(service)}
        version = ""
        if isinstance(newest, str) and newest:
            version = t(" with version {version}", version=named(newest))
        if first > evidence.since:
            words = t("process {instance} of {service} started", **about) + version
            yield Entry(first.to_pydatetime(), "process", STARTED, words, href)
        if evidence.since < last < evidence.until - SILENT:
            words = t("process {instance} of {service} sent its last heartbeat", **about)
            yield Entry(last.to_pydatetime(), "process", STOPPED, words, href)
    known = frame[frame["version"].notna()]
    for (service, number), rows in known.groupby(["service", "version"], sort=True):
        first = rows["first_beat"].min()
        had_others = (frame["service"] == service) & (frame["first_beat"] <= evidence.since)
        if first > evidence.since and had_others.any():
            words = t("version {version} of {service} was seen first", version=named(number),
                      service=named(service))  # fmt: skip
            yield Entry(first.to_pydatetime(), "process", STARTED, words, href)


STARTED: Final = replace(theme.SEVERITY_MARKS["info"], symbol="▷")
STOPPED: Final = replace(theme.mark(theme.STATE_MARKS, theme.UNKNOWN_STATE), symbol="◻")
DIP_MARK: Final = replace(theme.SEVERITY_MARKS["warning"], symbol="↓")

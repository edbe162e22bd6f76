"""Filters read from the parameters of a URL; what makes no sense is left out and said."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fuseboard.conventions import ErrorClass
from fuseboard_dashboard import language
from fuseboard_dashboard.filters import (
    CLASS,
    FROM,
    MAX_CHOICES,
    PAGE_PARAMETERS,
    RANGE,
    REGION,
    TO,
    TOOL,
    Filters,
)
from fuseboard_dashboard.language import t
from fuseboard_dashboard.ranges import DEFAULT_RANGE, PRESETS
from fuseboard_dashboard.windows import parse_bounds


@dataclass(frozen=True, slots=True)
class Known:
    """The values that a filter may have; None accepts all (the store could not be asked)."""

    tools: Collection[str] | None = None
    regions: Collection[str] | None = None


def parse(
    raw: Mapping[str, Sequence[str]], known: Known, now: datetime | None = None
) -> tuple[Filters, list[str]]:
    """Read filters from URL parameters; what makes no sense is left out and said.

    Args:
        raw: Parameter names with all their values.
        known: Values to accept.
        now: No window begins or ends later; None = not known.

    Returns:
        The filters, and a sentence for each thing that was ignored.
    """
    strangers = sorted(
        set(raw) - {RANGE, FROM, TO, TOOL, CLASS, REGION, language.LANGUAGE, *PAGE_PARAMETERS}
    )
    notices = [t("There is no filter {name}.", name=_quote(name)) for name in strangers]
    chosen = _range(raw.get(RANGE, ()), notices)
    (since, to), words = parse_bounds(raw.get(FROM, ()), raw.get(TO, ()), PRESETS[chosen][1], now)
    notices += words
    notices += _language(raw.get(language.LANGUAGE, ()))
    return (
        Filters(
            range=chosen,
            to=to,
            since=since,
            tools=_values(TOOL, raw.get(TOOL, ()), known.tools, notices),
            classes=_values(CLASS, raw.get(CLASS, ()), tuple(ErrorClass), notices),
            regions=_values(REGION, raw.get(REGION, ()), known.regions, notices),
        ),
        notices,
    )


def _range(values: Sequence[str], notices: list[str]) -> str:
    if not values:
        return DEFAULT_RANGE
    if values[-1] in PRESETS:
        return values[-1]
    notices.append(t("There is no time range {value}; choices: {choices}.",
                     value=_quote(values[-1]), choices=", ".join(PRESETS)))  # fmt: skip
    return DEFAULT_RANGE


def _language(values: Sequence[str]) -> list[str]:
    if not values or values[-1] in language.LANGUAGES:
        return []
    choices = ", ".join(language.LANGUAGES)
    return [t("There is no language {value}; choices: {choices}.", value=_quote(values[-1]),
              choices=choices)]  # fmt: skip


def _values(
    name: str, values: Sequence[str], known: Collection[str] | None, notices: list[str]
) -> tuple[str, ...]:
    unique = list(dict.fromkeys(values))
    kept = [value for value in unique if known is None or value in known]
    notices += [_no_such(name, _quote(value)) for value in unique if value not in kept]
    if len(kept) > MAX_CHOICES:
        notices.append(t("Only the first {most} values of {name} are used.",
                         most=MAX_CHOICES, name=repr(name)))  # fmt: skip
    return tuple(kept[:MAX_CHOICES])


def _no_such(name: str, value: str) -> str:
    if name == TOOL:
        return t("There is no tool {value} in the last 30 days.", value=value)
    if name == REGION:
        return t("There is no region {value} in the last 30 days.", value=value)
    return t("There is no class {value}.", value=value)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")

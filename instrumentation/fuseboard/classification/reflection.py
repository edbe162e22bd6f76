"""Say in words which parts of a result failed, so that the model can reflect on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.classification.inspecting import probe
from fuseboard.telemetry.redaction import redact

MAX_ITEMS: Final = 10
MAX_TEXT: Final = 120

_CLOSING: Final = (
    "Everything else was done: do not ask for it again. Deal with what failed before you go on, "
    "or say that it is missing."
)


def reflection_hint(result: object) -> str | None:
    """Return a text for the model about the failed parts of a result, or None if there are none.

    Hand it to the model beside the result: a partial success that nobody mentions is taken for
    a whole one.

    Args:
        result: What a tool returned: a mapping or an object with ``partial_failures``, a list
            of ``{"item": …, "reason": …, "retryable": …}``. It is only looked at.

    Returns:
        At most ``MAX_ITEMS`` parts by name, redacted and cut; the others by their number.

    Since 0.1.
    """
    failures = _get(result, "partial_failures")
    if not isinstance(failures, list | tuple) or not failures:
        return None
    count = len(failures)
    parts = [_describe(failure) for failure in failures[:MAX_ITEMS]]
    if count > MAX_ITEMS:
        parts.append(f"and {count - MAX_ITEMS} more")
    failed = "1 part failed" if count == 1 else f"{count} parts failed"
    return f"{failed}: {'; '.join(parts)}. {_CLOSING}"


def _describe(failure: object) -> str:
    if isinstance(failure, str):
        return _text(failure)
    item, reason = _get(failure, "item"), _get(failure, "reason")
    may_retry = _get(failure, "retryable")
    notes = [] if reason is None else [_text(reason)]
    if isinstance(may_retry, bool):
        notes.append("may be tried again" if may_retry else "will fail again as it is")
    name = "a part without a name" if item is None else _text(item)
    return f"{name} ({', '.join(notes)})" if notes else name


def _get(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else probe(value, name)


def _text(value: object) -> str:
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception:
        return "<unreadable>"
    return redact(" ".join(text.split()), MAX_TEXT)

"""The one choke point through which every string passes before it leaves the process.

Names and identifiers are made valid UTF-8 and bounded; free text (messages, captured values)
loses in addition what looks like a credential. Nothing here ever raises.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from fuseboard.conventions import MAX_MESSAGE_LENGTH

MASK: Final = "***"
MAX_NAME_LENGTH: Final = 256
# Patterns only look at this much: redaction runs on the calling thread of a failing tool.
_SCANNED_LENGTH: Final = 8 * MAX_MESSAGE_LENGTH
_CACHED_LENGTH: Final = 128

_SENSITIVE: Final = (
    r"(?:api[-_ ]?key|access[-_ ]?key|secret(?:[-_ ]?key)?|client[-_ ]?secret"
    r"|pass(?:word|wd|phrase)?"
    r"|pwd|(?:access|refresh|auth|id|session|bearer|api)?[-_ ]?token|credentials?|private[-_ ]?key"
    r"|signature|cookie|session[-_ ]?id|x-api-key|authorization)"
)
_URL: Final = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}://)(?:[^\s/?#@'\"<>]*@)?"
    r"(?P<rest>[^\s?#'\"<>]*)(?:\?[^\s#'\"<>]*)?(?:#[^\s'\"<>]*)?",
    re.IGNORECASE,
)
_AUTH_SCHEME: Final = re.compile(
    r"\b(?P<scheme>bearer|basic|digest|token|apikey)\s+(?P<value>[A-Za-z0-9._~+/=-]{6,})",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(
    # What stands before the word is kept in any case; to match it as well took seconds for a
    # text of 4096 digits or dashes, since a name could begin at each of them.
    rf"(?P<name>{_SENSITIVE}\w*+)(?P<quote>\\?[\"']?)(?P<sep>\s*+(?:=>|[:=])\s*+)"
    r"(?P<value>\\?\"(?:[^\"\\]|\\.)*\\?\"?|\\?'(?:[^'\\]|\\.)*\\?'?|[^\s,;&)\]}'\"]+)",
    re.IGNORECASE,
)
_KNOWN_KEYS: Final = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{8,}"  # Slack
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"  # AWS
    r"|\bAIza[A-Za-z0-9_-]{20,}"  # Google
    r"|\bhf_[A-Za-z0-9]{16,}|\bglpat-[A-Za-z0-9_-]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"  # JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
)

# Pydantic quotes what it refuses: a model's arguments, which are not to be recorded unasked.
_QUOTED_INPUT: Final = re.compile(r"input_value=(?:.*?, (?=input_type=)|.*\Z)", re.DOTALL)


def redact(text: str, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """Return free text that is safe to send: no credentials, valid UTF-8, bounded.

    Args:
        text: Any text, for example an exception's message.
        limit: Most characters to return; longer text ends in an ellipsis.

    Returns:
        The redacted text; a fixed placeholder if the text cannot be handled.

    Since 0.1.0.
    """
    try:
        if len(text) <= MAX_MESSAGE_LENGTH:
            # The same message goes onto the attempt, the call and both their states.
            return _cached(text, limit)
        shortened = valid(text[: max(_SCANNED_LENGTH, limit)])
        return _cut(_mask(shortened), limit)
    except Exception:
        return "<unreadable text>"


@lru_cache(maxsize=64)
def _cached(text: str, limit: int) -> str:
    return _cut(_mask(valid(text)), limit)


def name(text: str) -> str:
    """Return an identifier that is safe to send; credentials in it are masked as well.

    Identifiers repeat, so short ones are remembered.
    """
    try:
        if len(text) <= _CACHED_LENGTH:
            return _cached_name(text)
        return redact(text, MAX_NAME_LENGTH)
    except Exception:
        return "<unreadable text>"


@lru_cache(maxsize=2048)
def _cached_name(text: str) -> str:
    return redact(text, MAX_NAME_LENGTH)


def valid(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates)."""
    if text.isascii():
        return str(text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _mask(text: str) -> str:
    if "://" in text:
        text = _URL.sub(r"\g<scheme>\g<rest>", text)
    if "input_value=" in text:
        text = _QUOTED_INPUT.sub("", text)
    text = _KNOWN_KEYS.sub(MASK, text)
    text = _AUTH_SCHEME.sub(rf"\g<scheme> {MASK}", text)
    return _ASSIGNED.sub(rf"\g<name>\g<quote>\g<sep>{MASK}", text)


def _cut(text: str, limit: int) -> str:
    # Python strings are code points, so no cut can split a character.
    return text if len(text) <= limit else text[: limit - 1] + "…"

"""Exceptions of smtplib: what a mail server's reply code says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.classification.http_clients import CONNECT_FAILED
from fuseboard.classification.inspecting import names_of, probe
from fuseboard.classification.network import RESET
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    transient_fault,
)
from fuseboard.record import Verdict

_NAME: Final = "smtp_code_matcher"
# A 4xx is "not now": the message was not taken.
_LATER: Final = transient_fault(_NAME, ambiguous=False)
_DENIED: Final = access_fault(_NAME)
_REFUSED: Final = input_fault(_NAME)
_UNABLE: Final = persistent_fault(_NAME)
# Encryption or a login is asked for, or has failed; sending is not allowed.
_ACCESS_CODES: Final = frozenset({523, 525, 530, 532, 534, 535, 538})
_UNABLE_CODES: Final = frozenset({502, 504, 521, 555, 556})


def classify_mail(error: BaseException) -> Verdict | None:
    """Judge an exception of smtplib, or return None."""
    names = names_of(type(error))
    if "smtplib.SMTPException" not in names:
        return None
    if "smtplib.SMTPServerDisconnected" in names:
        return RESET
    if "smtplib.SMTPNotSupportedError" in names:
        return _UNABLE
    if "smtplib.SMTPRecipientsRefused" in names:
        return _judge_recipients(probe(error, "recipients"))
    code = probe(error, "smtp_code")
    if "smtplib.SMTPConnectError" in names and not _is_final(code):
        return CONNECT_FAILED
    return _judge_code(code) if isinstance(code, int) else None


def _judge_code(code: int) -> Verdict | None:
    if not _is_final(code):
        return _LATER if 400 <= code < 500 else None
    if code in _ACCESS_CODES:
        return _DENIED
    return _UNABLE if code in _UNABLE_CODES else _REFUSED


def _judge_recipients(recipients: object) -> Verdict | None:
    """Judge by the replies to the recipients, of whom none was accepted."""
    if not isinstance(recipients, Mapping):
        return None
    replies = [reply for reply in recipients.values() if isinstance(reply, tuple) and reply]
    codes = [reply[0] for reply in replies if isinstance(reply[0], int)]
    # One that is refused for good stays refused, whatever the others' replies are.
    return _judge_code(max(codes)) if codes else None


def _is_final(code: object) -> bool:
    return isinstance(code, int) and 500 <= code < 600

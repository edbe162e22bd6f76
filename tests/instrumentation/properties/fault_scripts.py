"""What a tool may do, step by step, and what is known of each thing it does.

The table repeats what the contract says of each fault and asks no classifier, so that a wrong
verdict shows as a wrong decision of the policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx

from fuseboard import Pending
from fuseboard.conventions import ErrorClass, Outcome

L1, L2, L3 = ErrorClass.L1_INPUT, ErrorClass.L2_ACCESS, ErrorClass.L3_TRANSIENT
L4, L5, UNKNOWN = ErrorClass.L4_PERSISTENT, ErrorClass.L5_SEMANTIC, ErrorClass.UNCLASSIFIED


class NobodyKnowsError(Exception):
    """An exception that no classifier knows."""


class GraphInterrupt(Exception):  # noqa: N818 - its real name
    """Named like LangGraph's pause for a human."""


GraphInterrupt.__module__ = "langgraph.errors"


@dataclass(frozen=True)
class Kind:
    """One thing that a tool may do.

    Attributes:
        make: Makes what is raised (an exception) or returned (anything else).
        error_class: Class of the fault; None for no fault.
        retryable: Whether the same request may succeed later.
        ambiguous: Whether the tool may have taken effect although it failed.
        retry_after: Seconds that the server asks to wait.
        outcome: How the call ends at once, without being a fault; None otherwise.
        is_empty: Whether it is an answer that holds nothing.
        is_partial: Whether it is an answer that is usable in part.
        ends_all: Whether what is raised means more than this call, like the process's end.
        is_cancelled_from_outside: Whether somebody cancels the task meanwhile.
        is_429: Whether an HTTP client says that there were too many requests.
    """

    make: Callable[[], Any]
    error_class: ErrorClass | None = None
    retryable: bool = False
    ambiguous: bool = False
    retry_after: float | None = None
    outcome: Outcome | None = None
    is_empty: bool = False
    is_partial: bool = False
    ends_all: bool = False
    is_cancelled_from_outside: bool = False
    is_429: bool = False


def answered(status: int, **headers: str) -> Callable[[], httpx.HTTPStatusError]:
    """Return what makes the exception of an HTTP client; underscores in names become hyphens."""

    def make() -> httpx.HTTPStatusError:
        request = httpx.Request("GET", "http://127.0.0.1/")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = httpx.Response(status, request=request, headers=named)
        return httpx.HTTPStatusError("?", request=request, response=response)

    return make


KINDS: Final[dict[str, Kind]] = {
    "good": Kind(lambda: ["good"]),
    "none": Kind(lambda: None, is_empty=True),
    "blank": Kind(lambda: " ", is_empty=True),
    "empty list": Kind(list, is_empty=True),
    "partial": Kind(
        lambda: {"found": [1], "partial_failures": ["eu"]},
        L5,
        is_partial=True,
    ),
    "isError": Kind(lambda: {"isError": True, "content": []}, L5, ambiguous=True),
    "packet": Kind(lambda: {"ok": False}, L5, ambiguous=True),
    "packet 429": Kind(
        lambda: {"ok": False, "error_code": "rate_limit_exceeded"}, L3, retryable=True
    ),
    "packet 401": Kind(lambda: {"ok": False, "http_status": 401}, L2),
    "400": Kind(answered(400), L1),
    "401": Kind(answered(401), L2),
    "429": Kind(answered(429), L3, retryable=True, is_429=True),
    "429 later": Kind(
        answered(429, Retry_After="2"), L3, retryable=True, retry_after=2.0, is_429=True
    ),
    "429 far": Kind(
        answered(429, Retry_After="86400"), L3, retryable=True, retry_after=86400.0, is_429=True
    ),
    "500": Kind(answered(500), L3, retryable=True, ambiguous=True),
    "503 later": Kind(answered(503, Retry_After="1"), L3, retryable=True, retry_after=1.0),
    "501": Kind(answered(501), L4),
    "refused": Kind(ConnectionRefusedError, L3, retryable=True),
    "reset": Kind(ConnectionResetError, L3, retryable=True, ambiguous=True),
    "own timeout": Kind(TimeoutError, L3, retryable=True, ambiguous=True),
    "defect": Kind(lambda: KeyError("x"), L4, ambiguous=True),
    "unknown": Kind(NobodyKnowsError, UNKNOWN, ambiguous=True),
    "pause": Kind(GraphInterrupt, outcome=Outcome.INTERRUPTED),
    "cancelled": Kind(asyncio.CancelledError, outcome=Outcome.CANCELLED),
    "ctrl-c": Kind(KeyboardInterrupt, outcome=Outcome.CANCELLED),
    "exit 0": Kind(lambda: SystemExit(0), outcome=Outcome.OK),
    "exit 3": Kind(lambda: SystemExit(3), L4, ambiguous=True, ends_all=True),
    "cancelled from outside": Kind(
        asyncio.CancelledError, outcome=Outcome.CANCELLED, is_cancelled_from_outside=True
    ),
}


PENDING: Final = Kind(lambda: Pending())
PENDING_LONGER: Final = Kind(lambda: Pending(wait=1.25), retry_after=1.25)


@dataclass(frozen=True)
class Check:
    """One look at whether a job is done, before the one that tells its end.

    Attributes:
        kind: ``pending``, ``pending longer`` or a fault of ``KINDS``.
        took: Seconds.
    """

    kind: str
    took: float = 0.0

    @property
    def what(self) -> Kind:
        """What is known of it."""
        waits = {"pending": PENDING, "pending longer": PENDING_LONGER}
        return waits[self.kind] if self.kind in waits else KINDS[self.kind]


@dataclass(frozen=True)
class Step:
    """What one attempt does.

    Attributes:
        kind: How it ends, a key of ``KINDS``.
        took: Seconds before each item and before the end.
        items: Items that a stream delivers before it ends so.
        stubborn: Seconds that an async tool takes to give in when its time is up.
        checks: Where the tool only submits a job: what the checks find before its end.
    """

    kind: str
    took: float = 0.0
    items: int = 0
    stubborn: float = 0.0
    checks: tuple[Check, ...] = ()

    @property
    def what(self) -> Kind:
        """What is known of it."""
        return KINDS[self.kind]

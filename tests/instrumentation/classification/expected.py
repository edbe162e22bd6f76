"""Rows of the table of real exceptions: how one is made, and all that must be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.instrumentation.classification.places import Places

from fuseboard import ErrorClass
from fuseboard.classification import judge_exception
from fuseboard.classification.inspecting import qualified_name
from fuseboard.conventions import Origin
from fuseboard.record import Fault, Verdict

NOW = 1_800_000_000.0
SAFE, AMBIGUOUS = False, True


def l1(by: str, status: int | None = None) -> Verdict:
    """Refused as wrong; nothing was done."""
    return Verdict(ErrorClass.L1_INPUT, by, False, origin=Origin.INPUT, http_status=status)


def l2(by: str, status: int | None = None) -> Verdict:
    """Refused for lack of rights or quota; nothing was done."""
    return Verdict(ErrorClass.L2_ACCESS, by, False, http_status=status)


def l3(by: str, ambiguous: bool, status: int | None = None, after: float | None = None) -> Verdict:
    """Passes; ``ambiguous`` if it may have taken effect."""
    return Verdict(
        ErrorClass.L3_TRANSIENT, by, True, ambiguous, http_status=status, retry_after=after
    )


def l4(by: str, ambiguous: bool = SAFE, status: int | None = None) -> Verdict:
    """Stays broken."""
    return Verdict(ErrorClass.L4_PERSISTENT, by, False, ambiguous, http_status=status)


def l5(by: str, origin: Origin = Origin.TOOL) -> Verdict:
    """Answered, but unusable."""
    return Verdict(ErrorClass.L5_SEMANTIC, by, False, True, origin=origin)


@dataclass(frozen=True)
class Row:
    """One real exception.

    Attributes:
        name: What happens, in words.
        make: Provokes it at one of the places; it raises.
        error_type: Qualified name of its class, builtins bare; several, newest release first,
            between bars.
        verdict: What must be said of it, without the cause.
    """

    name: str
    make: Callable[[Places], Any]
    error_type: str
    verdict: Verdict

    def check(self, places: Places) -> None:
        """Provoke the exception and hold what is said of it to the row."""
        error = provoke(self, places)
        name = qualified_name(type(error))
        assert name in self.error_type.split(" | "), repr(error)
        fault = judge_exception(error, NOW)
        assert isinstance(fault, Fault), fault
        assert fault.error_type == name
        found, wanted = fault.verdict, self.verdict
        assert Verdict(**{**_fields(found), "cause_type": None}) == wanted, repr(error)
        assert found.error_class is not ErrorClass.UNCLASSIFIED


def provoke(row: Row, places: Places) -> BaseException:
    """Return what making the row raises."""
    try:
        row.make(places)
    except BaseException as error:
        return error
    raise AssertionError(f"{row.name}: nothing was raised")


def each(rows: list[Row]) -> pytest.MarkDecorator:
    """Run a test with each row."""
    names = [row.name for row in rows]
    assert len(set(names)) == len(names), "each row has a name of its own"
    return pytest.mark.parametrize("row", rows, ids=names)


def _fields(verdict: Verdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}

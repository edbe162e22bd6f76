"""Circuit breakers by hand: see them, hold one open, close one."""

from __future__ import annotations

from fuseboard.conventions import BreakerState
from fuseboard.errors import ConfigurationError
from fuseboard.policy.breaker import CircuitBreaker
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import BreakerStatus

_SHOWN = 20


class BreakerSwitch:
    """One circuit breaker of this process, by its name; see :func:`breaker`.

    Since 0.1.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<breaker {self._name!r}: {self.state.value}>"

    @property
    def name(self) -> str:
        """``tool/region/upstream/key`` without the absent parts."""
        return self._name

    @property
    def state(self) -> BreakerState:
        """The present state; ``open`` lasts until a call asks after the break is over."""
        return _find(self._name).state

    def isolate(self) -> None:
        """Hold it open, so that every call is rejected, until :meth:`reset`.

        Also after other settings were given to the tool; not over a restart of the process.
        """
        _find(self._name).isolate()

    def reset(self) -> None:
        """Close it, whatever its state, and forget what it has counted."""
        _find(self._name).reset()


def breakers() -> list[BreakerStatus]:
    """Return the present state of every circuit breaker of this process, sorted by name.

    A breaker comes into being with the first call that it guards.

    Since 0.1.
    """
    return sorted(BREAKERS.statuses(), key=lambda status: status.name)


def breaker(name: str) -> BreakerSwitch:
    """Return the circuit breaker of this process that has this name.

    Args:
        name: ``tool/region/upstream/key`` without the absent parts, as :func:`breakers` lists it.

    Raises:
        ConfigurationError: If there is none.

    Since 0.1.
    """
    _find(name)
    return BreakerSwitch(name)


def _find(name: str) -> CircuitBreaker:
    found = BREAKERS.find(name)
    if found is not None:
        return found
    known = [status.name for status in breakers()]
    listed = ", ".join(map(repr, known[:_SHOWN])) + (", ..." if len(known) > _SHOWN else "")
    raise ConfigurationError(
        f"breaker(name={name!r}): there is no such breaker in this process; a breaker comes into "
        f"being with the first call that it guards, and now there are {listed or 'none'}"
    )

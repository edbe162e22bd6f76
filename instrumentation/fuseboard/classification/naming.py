"""Know exceptions of libraries that are not imported: by the qualified names of their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from fuseboard.classification.inspecting import mro_of, qualified_name
from fuseboard.record import Verdict

_FORKS = {"httpx.": "httpx2.", "httpcore.": "httpcore2."}


_known: set[str] = set()


def known_names() -> frozenset[str]:
    """Return the qualified names in all tables: what may be known of a class by its name alone."""
    return frozenset(_known)


class Named:
    """Verdicts by class name; that of the nearest base decides.

    Attributes:
        of: ``of(cls)``: the verdict on exceptions of a class, or None.
    """

    def __init__(self, verdicts: Mapping[str, Verdict | None]) -> None:
        """Take in a table.

        Args:
            verdicts: By qualified name. None means that the class says nothing, although one
                of its bases would.
        """
        self._verdicts = dict(verdicts)
        for name, verdict in verdicts.items():
            for original, fork in _FORKS.items():
                if name.startswith(original):
                    self._verdicts[fork + name.removeprefix(original)] = verdict
        _known.update(self._verdicts)
        # Bounded, because classes may be made at run time without end.
        self.of: Callable[[type], Verdict | None] = lru_cache(maxsize=2048)(self._find)

    def _find(self, cls: type) -> Verdict | None:
        for base in mro_of(cls):
            name = qualified_name(base)
            if name in self._verdicts:
                return self._verdicts[name]
        return None

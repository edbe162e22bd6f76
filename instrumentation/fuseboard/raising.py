"""Raise once more what was caught, with the story that it tells."""

from __future__ import annotations

from sys import exception
from types import TracebackType
from typing import Any, Final

# Not by attribute, which a class may have made something else of.
_CONTEXT: Final[Any] = BaseException.__dict__["__context__"]
_MAX_LINKS: Final = 64


class KeptContext:
    """Keeps what an exception was raised from, where ``raise error`` stands within the block.

    Python takes what is handled at that place for the context of what is raised there, and with
    that forgets the exception that the tool was handling. As a context manager it adds no frame
    to the traceback.
    """

    __slots__ = ("_ambient", "_context", "_error")

    def __init__(self, error: BaseException) -> None:
        """Take up an exception that was caught somewhere else."""
        self._error: BaseException | None = error
        self._ambient: BaseException | None = None
        self._context: BaseException | None = None

    def __enter__(self) -> None:
        self._ambient = exception()
        self._context = _CONTEXT.__get__(self._error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        context, ambient = self._context, self._ambient
        if context is not None:
            _CONTEXT.__set__(self._error, context)
            if ambient is not None:
                _put_at_end(context, ambient, self._error)
        self._error = self._ambient = self._context = None


def _put_at_end(context: BaseException, ambient: BaseException, raised: Any) -> None:
    """Have a chain end with what the caller was handling, as it does where no thread is between."""
    links, ambient_links = _links_of(context), _links_of(ambient)
    others = (raised, *ambient_links)  # of which none may be in the chain: it would be a ring
    last = links[-1]
    if _CONTEXT.__get__(last) is None and not any(a is b for a in links for b in others):
        _CONTEXT.__set__(last, ambient)


def _links_of(error: BaseException) -> list[BaseException]:
    links, link = list[BaseException](), error
    while link is not None and len(links) < _MAX_LINKS and all(link is not one for one in links):
        links.append(link)
        link = _CONTEXT.__get__(link)
    return links

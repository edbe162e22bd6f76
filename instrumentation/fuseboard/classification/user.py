"""Classifiers that users add, by decorator or by entry point; they come before all others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar, overload

from fuseboard import guard
from fuseboard.conventions import ErrorClass, Outcome
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child
from fuseboard.record import Verdict

ENTRY_POINT_GROUP: Final = "fuseboard.classifiers"

Answer = Verdict | ErrorClass | Literal[Outcome.INTERRUPTED] | None
"""What a classifier may return; None leaves the fault to the next one."""

ExceptionClassifier = Callable[[BaseException], Answer]
ResultClassifier = Callable[[object], Answer]
C = TypeVar("C", bound=Callable[..., Answer])


def _not_loaded(value: object) -> Answer:  # noqa: ARG001 - a classifier's signature
    """Stand for the result classifiers of packages until they are loaded."""
    return None


class _Registered:
    """The users' classifiers; tuples are replaced, not changed, so that reading needs no lock."""

    def __init__(self) -> None:
        self.renew_lock()
        self.forget()

    def renew_lock(self) -> None:
        self.lock = threading.RLock()

    def forget(self) -> None:
        self.of_exceptions: tuple[ExceptionClassifier, ...] = ()
        # Loads the entry points when it is asked; so asking costs nothing more afterwards.
        self.of_results: tuple[ResultClassifier, ...] = (_not_loaded,)
        self.is_loaded = False
        self.loading_thread: int | None = None


_REGISTERED: Final = _Registered()
after_fork_in_child(_REGISTERED.renew_lock)


@overload
def classifier(function: C, /) -> C: ...
@overload
def classifier(*, on: Literal["exception", "result"] = ...) -> Callable[[C], C]: ...
def classifier(
    function: C | None = None, /, *, on: Literal["exception", "result"] = "exception"
) -> C | Callable[[C], C]:
    """Register a classifier that is asked before the built-in ones, newest first.

    The decorated function gets the exception (or, with ``on="result"``, the returned value)
    and returns a :class:`~fuseboard.record.Verdict`, an :class:`ErrorClass` as shorthand,
    ``Outcome.INTERRUPTED`` for control flow that is no fault, or None if it does not know.

    Args:
        function: The classifier.
        on: Whether it judges exceptions or returned values.

    Returns:
        The function itself.

    Raises:
        ConfigurationError: If ``on`` is neither, or the function can't be called.

    Since 0.1.
    """
    if on not in ("exception", "result"):
        raise ConfigurationError(f"classifier(on={on!r}): must be 'exception' or 'result'")

    def register(found: C) -> C:
        if not callable(found):
            raise ConfigurationError(f"classifier({found!r}): must be a function")
        _register(found, on)
        return found

    return register if function is None else register(function)


def has_classifiers() -> bool:
    """Tell whether any classifier of a user's would be asked about an exception."""
    load_classifiers()
    return bool(_REGISTERED.of_exceptions)


def judges_results() -> bool:
    """Tell whether any classifier of a user's would be asked about a result."""
    return bool(_REGISTERED.of_results)


def ask_about_exception(error: BaseException) -> Verdict | Outcome | None:
    """Return the first answer of a user's classifier about an exception."""
    load_classifiers()
    for judge in _REGISTERED.of_exceptions:
        answer = _ask(judge, error)
        if answer is not None:
            return answer
    return None


def ask_about_result(value: object) -> Verdict | None:
    """Return the first verdict of a user's classifier about a returned value."""
    for judge in _REGISTERED.of_results:
        if judge is _not_loaded:
            load_classifiers()
            return ask_about_result(value)
        answer = _ask(judge, value)
        if isinstance(answer, Verdict):
            return answer
    return None


def forget_classifiers() -> None:
    """Remove every user's classifier, as tests need it."""
    with _REGISTERED.lock:
        _REGISTERED.forget()


def _register(judge: Callable[..., Answer], on: str) -> None:
    with _REGISTERED.lock:
        # What the application says wins over what a package says when it is loaded.
        is_packaged = _REGISTERED.loading_thread == threading.get_ident()
        if on == "exception":
            _REGISTERED.of_exceptions = _joined(_REGISTERED.of_exceptions, judge, is_packaged)
        else:
            _REGISTERED.of_results = _joined(_REGISTERED.of_results, judge, is_packaged)


def _joined(known: tuple[C, ...], judge: C, is_last: bool) -> tuple[C, ...]:
    return (*known, judge) if is_last else (judge, *known)


def _ask(judge: Callable[..., Answer], subject: object) -> Verdict | Outcome | None:
    answer: Any
    try:
        answer = judge(subject)
    except Exception as fault:
        guard.swallow(f"asking the classifier {_name_of(judge)!r}", fault)
        return None
    if isinstance(answer, ErrorClass):
        return _expand(answer, _name_of(judge))
    if isinstance(answer, Verdict):
        return answer
    if answer is Outcome.INTERRUPTED:
        return Outcome.INTERRUPTED
    if answer is not None:
        wrong = TypeError(f"a classifier must return a Verdict, not {type(answer).__name__}")
        guard.swallow(f"asking the classifier {_name_of(judge)!r}", wrong)
    return None


def _expand(error_class: ErrorClass, name: str) -> Verdict:
    verdict = Verdict(error_class, name, error_class is ErrorClass.L3_TRANSIENT)
    is_refusal = error_class in (ErrorClass.L1_INPUT, ErrorClass.L2_ACCESS)
    return replace(verdict, ambiguous=not is_refusal)


def _name_of(judge: Callable[..., Answer]) -> str:
    return str(getattr(judge, "__name__", type(judge).__name__))


def load_classifiers() -> None:
    """Load the entry points, once: at ``init``, or with the first call that needs them.

    An entry point names a classifier, or a module that registers some with the decorator when
    it is loaded.
    """
    if _REGISTERED.is_loaded:
        return
    with _REGISTERED.lock:
        must_load, _REGISTERED.is_loaded = not _REGISTERED.is_loaded, True
        if not must_load:
            return
        _REGISTERED.of_results = tuple(
            judge for judge in _REGISTERED.of_results if judge is not _not_loaded
        )
        _REGISTERED.loading_thread = threading.get_ident()
    # Without the lock: what is imported here may wait for other threads that register.
    try:
        _load_all()
    finally:
        _REGISTERED.loading_thread = None


def _load_all() -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            judge = point.load()
        except Exception as fault:
            guard.swallow(f"loading the classifier {point.name!r}", fault)
            continue
        _append(judge)


def _append(judge: Any) -> None:
    with _REGISTERED.lock:
        known = (*_REGISTERED.of_exceptions, *_REGISTERED.of_results)
        if callable(judge) and judge not in known:
            _REGISTERED.of_exceptions = (*_REGISTERED.of_exceptions, judge)

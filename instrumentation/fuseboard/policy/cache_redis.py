"""The second level of the cache: answers in Redis, which processes share.

Redis is never needed: every fault of it is a miss, is logged once per kind, and after a few in a
row nobody asks for a while.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from fuseboard import guard
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.cache_threads import AskingThreads
from fuseboard.policy.config.checks import check_int, check_positive
from fuseboard.runtime import RUNTIME

FAULTS_IN_A_ROW: Final = 3
_MAGIC: Final = b"fuseboard1 "
_SOLID: Final = frozenset({str, int, bool, type(None)})


class Serializer(Protocol):
    """Turns answers into bytes and back; both must give back what was put in."""

    def dumps(self, value: Any) -> bytes:
        """Return the bytes of a value; raise for one that can't be kept."""

    def loads(self, data: bytes) -> Any:
        """Return the value that bytes stand for."""


class ExactJson:
    """JSON for what comes back from it as it was; a tuple, say, would come back as a list."""

    def dumps(self, value: Any) -> bytes:
        """Return a value's JSON.

        Raises:
            TypeError: If any part of it is not a dict with text keys, a list, a text, a finite
                number, a bool or None.
        """
        _check_exact(value)
        return json.dumps(value, separators=(",", ":")).encode("ascii")

    def loads(self, data: bytes) -> Any:
        """Return the value of a JSON text."""
        return json.loads(data)


def _check_exact(value: Any) -> None:
    kind = type(value)
    if kind in _SOLID or (kind is float and math.isfinite(value)):
        return
    if kind is list:
        for item in value:
            _check_exact(item)
    elif kind is dict and all(type(key) is str for key in value):
        for item in value.values():
            _check_exact(item)
    else:
        raise TypeError(f"{kind.__name__} would not come back from JSON as it was")


class Found(NamedTuple):
    """An answer that Redis held.

    Attributes:
        value: The answer.
        age: Seconds since it was fetched, by the wall clocks of both processes.
    """

    value: Any
    age: float


class _Pause:
    """Stops asking after a few faults in a row; then one caller at a time tries again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._faults = 0
        self._until = 0.0
        self.renew_lock()

    def renew_lock(self) -> None:
        self._lock = threading.Lock()

    def is_over(self) -> bool:
        if self._faults < FAULTS_IN_A_ROW:
            return True
        with self._lock:
            now = RUNTIME.clock.monotonic()
            if now < self._until:
                return False
            self._until = now + self._seconds  # while this caller tries, the others don't
            return True

    def succeeded(self) -> None:
        self._faults = 0

    def failed(self) -> None:
        with self._lock:
            self._faults += 1
            self._until = RUNTIME.clock.monotonic() + self._seconds


class RedisStore:
    """Answers in Redis, for :class:`fuseboard.Cache`.

    Args:
        target: A ``redis://``, ``rediss://`` or ``unix://`` URL, or a client of redis-py. A
            client of ``redis.asyncio`` serves async tools only and belongs to its event loop.
        prefix: What all keys begin with; give it the name of the application where several
            share a Redis, and another one to leave all entries behind.
        timeout: Seconds to connect, and seconds to wait for an answer. Nobody waits for longer
            than both, whatever a client of your own does.
        pause: Seconds in which nobody asks after three faults in a row.
        max_bytes: Longer answers are kept in memory only.
        serializer: Default JSON, for answers that JSON gives back as they were; the others are
            kept in memory only.

    Raises:
        ConfigurationError: If an argument is wrong or the package ``redis`` is missing.

    Since 0.1.
    """

    def __init__(
        self,
        target: Any,
        *,
        prefix: str = "fuseboard",
        timeout: float = 0.25,
        pause: float = 10.0,
        max_bytes: int = 1_048_576,
        serializer: Serializer | None = None,
    ) -> None:
        check_positive("RedisStore", "timeout", timeout, is_optional=False)
        check_positive("RedisStore", "pause", pause, is_optional=False)
        check_int("RedisStore", "max_bytes", max_bytes, 1, 512 * 1024 * 1024)
        if not isinstance(prefix, str) or not prefix:
            raise ConfigurationError(f"RedisStore(prefix={prefix!r}): must be a text")
        self._serializer = serializer if serializer is not None else ExactJson()
        if not all(callable(getattr(self._serializer, name, None)) for name in ("dumps", "loads")):
            raise ConfigurationError(
                f"RedisStore(serializer={serializer!r}): must have the methods dumps and loads"
            )
        self._is_ours = isinstance(target, str)
        self._client = _connect(target, timeout) if isinstance(target, str) else target
        if not all(callable(getattr(self._client, name, None)) for name in ("get", "set")):
            raise ConfigurationError(
                f"RedisStore({target!r}): must be a redis:// URL or a client of redis-py"
            )
        self.is_async_only = inspect.iscoroutinefunction(
            getattr(type(self._client), "execute_command", None)
        )
        # What was said, so that the same settings, read from a file again, are no change.
        self._said = (target, prefix, timeout, pause, max_bytes, serializer)
        self.prefix = prefix
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._pause = _Pause(pause)
        self._threads = AskingThreads("fuseboard-redis")
        self._is_proven = False
        _STORES[id(self)] = self

    def __repr__(self) -> str:
        target = self._said[0]
        shown = _without_password(target) if isinstance(target, str) else type(target).__name__
        return f"RedisStore({shown!r}, prefix={self.prefix!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RedisStore) and self._said == other._said

    def __hash__(self) -> int:
        return hash((self.prefix, self._timeout))

    def renew(self) -> None:
        """Make locks and threads anew in a forked child; redis-py renews its connections."""
        self._pause.renew_lock()
        self._threads.renew()

    def get(self, key: str) -> Found | None:
        """Return an answer, or None; never raises."""
        return self._read(self._try(lambda: self._client.get(key)))

    async def get_async(self, key: str) -> Found | None:
        """Do what :meth:`get` does, without blocking the event loop."""
        return self._read(await self._try_async(lambda: self._client.get(key)))

    def put(self, key: str, value: Any, age: float, seconds: float) -> None:
        """Keep an answer; never raises.

        Args:
            key: Its key.
            value: The answer.
            age: Seconds since it was fetched.
            seconds: For how long to keep it.
        """
        data = self._write(value, age) if self._pause_may_be_over() else None
        if data is not None:
            self._try(lambda: self._client.set(key, data, px=max(1, int(seconds * 1000))))

    async def put_async(self, key: str, value: Any, age: float, seconds: float) -> None:
        """Do what :meth:`put` does, without blocking the event loop."""
        data = self._write(value, age) if self._pause_may_be_over() else None
        if data is not None:
            await self._try_async(
                lambda: self._client.set(key, data, px=max(1, int(seconds * 1000)))
            )

    # --- Bytes ----------------------------------------------------------------------------

    def _write(self, value: Any, age: float) -> bytes | None:
        try:
            written: object = self._serializer.dumps(value)
            payload = written.encode() if isinstance(written, str) else bytes(written)  # type: ignore[call-overload]
        except Exception as fault:
            guard.swallow("writing an answer for Redis; it is kept in memory only", fault)
            return None
        if len(payload) > self._max_bytes:
            return None
        return _MAGIC + b"%.6f\n" % (RUNTIME.clock.time_ns() / 1e9 - age) + payload

    def _read(self, data: Any) -> Found | None:
        if data is None:
            return None
        try:
            data = data.encode() if isinstance(data, str) else data
            head, _, payload = data.partition(b"\n")
            born = float(head.removeprefix(_MAGIC))
            if not head.startswith(_MAGIC) or not math.isfinite(born):
                raise ValueError("not an answer of ours")
            age = RUNTIME.clock.time_ns() / 1e9 - born
            return Found(self._serializer.loads(payload), max(0.0, age))
        except Exception as fault:
            guard.swallow("reading an answer that Redis held", fault)
            return None

    # --- Questions ------------------------------------------------------------------------

    def _pause_may_be_over(self) -> bool:
        # No answer is serialised for nobody; _try asks in earnest.
        return self._pause._faults < FAULTS_IN_A_ROW

    def _try(self, ask: Callable[[], Any]) -> Any:
        if not self._pause.is_over():
            return None
        try:
            # A connection of ours keeps to its time, once it is there: looking up a name does
            # not, and nobody knows what a client of the user's does.
            if self._is_ours and self._is_proven:
                answer = ask()
            else:
                answer = self._threads.submit(ask).result(self._patience)
        except Exception as fault:
            self._failed(fault)
            return None
        self._succeeded()
        return answer

    async def _try_async(self, ask: Callable[[], Any]) -> Any:
        if not self._pause.is_over():
            return None
        try:
            async with asyncio.timeout(self._patience):
                if self.is_async_only:
                    answer = await ask()
                else:
                    # A thread, for a connection of asyncio's belongs to one event loop.
                    answer = await asyncio.wrap_future(self._threads.submit(ask))
        except Exception as fault:
            self._failed(fault)
            return None
        self._succeeded()
        return answer

    @property
    def _patience(self) -> float:
        # Twice: to connect and to ask.
        return 2 * self._timeout

    def _succeeded(self) -> None:
        self._pause.succeeded()
        self._is_proven = True

    def _failed(self, fault: Exception) -> None:
        self._pause.failed()
        self._is_proven = False
        guard.swallow("asking Redis for an answer", fault)


def _connect(url: str, timeout: float) -> Any:
    try:
        # By name, so that nobody's type checker needs the package.
        redis, backoff, retry = (
            importlib.import_module(name) for name in ("redis", "redis.backoff", "redis.retry")
        )
    except ImportError as error:
        raise ConfigurationError(
            f"RedisStore({_without_password(url)!r}): needs the package redis; run: "
            "pip install 'fuseboard[redis]'"
        ) from error
    try:
        return redis.Redis.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            # Its own retries would take seconds.
            retry=retry.Retry(backoff.NoBackoff(), 0),
        )
    except (ValueError, TypeError):
        # Not in its words, which may quote a part of the password.
        raise ConfigurationError(
            f"RedisStore({_without_password(url)!r}): must be a redis://, rediss:// or unix:// URL "
            "that redis-py understands, with %-escapes for what is special in a password"
        ) from None


def _without_password(url: str) -> str:
    # Redis takes a password in the query as well.
    scheme, found, rest = url.partition("?")[0].partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else url


# By identity, since stores of the same settings are equal.
_STORES: Final[weakref.WeakValueDictionary[int, RedisStore]] = weakref.WeakValueDictionary()


def _renew_all() -> None:
    for store in list(_STORES.values()):
        store.renew()


after_fork_in_child(_renew_all)

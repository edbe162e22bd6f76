"""Calls as records of the standard ``logging`` module: which, at what level, with which fields."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import ConfigurationError, Fallback, Policy, Retry, Validation
from fuseboard.conventions import CALL_LOG_FIELDS, CALL_LOGGER
from fuseboard.runtime import RUNTIME


class Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def log() -> Iterator[Listener]:
    listener, logger = Listener(), logging.getLogger(CALL_LOGGER)
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    yield listener
    logger.removeHandler(listener)
    logger.setLevel(logging.NOTSET)


def facts(record: logging.LogRecord) -> dict[str, Any]:
    return {field: getattr(record, field) for field in CALL_LOG_FIELDS}


def searched(what: str) -> Any:
    if what == "reset":
        raise ConnectionResetError("reset by https://user:secret@host/path?token=abc")
    if what == "wrong":
        raise TypeError("bad")
    return {"ok": {"a": 1}, "partial": {"items": [1], "partial_failures": ["x"]}}.get(what, what)


def search(*args: Any, **kwargs: Any) -> Any:
    """Call a tool of each test's own, since registrations end with the test."""
    tool = fuseboard.wrap(searched, name="search", region="eu", upstream="api.example.org")
    return tool(*args, **kwargs)


def test_a_failed_call_is_one_record_with_everything(
    start: Any, collector: Any, log: Listener
) -> None:
    start()
    with pytest.raises(ConnectionResetError):
        search("reset")
    assert fuseboard.flush(20)
    (record,) = log.records
    found = facts(record)
    (span,) = [s for s in collector.spans() if s.name == "execute_tool search"]
    assert found.pop("trace_id") == span.trace_id.hex()
    assert found.pop("span_id") == span.span_id.hex()
    assert found.pop("duration_seconds") >= 0
    assert found.pop("args_hash").startswith("v1:")
    assert {key: value for key, value in found.items() if value is not None} == {
        "tool": "search", "region": "eu", "upstream": "api.example.org", "outcome": "error",
        "error_class": "L3_transient", "error_type": "ConnectionResetError",
        "error_message": "reset by https://host/path", "layer": "tool", "attempts": 1,
        "classifier_id": found["classifier_id"], "backoff_seconds": 0.0,
    }  # fmt: skip
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("tool call search: error after 1 attempt and 0.0")
    assert "secret" not in record.getMessage()
    assert "(ConnectionResetError: reset by https://host/path)" in record.getMessage()


def test_what_succeeds_is_not_logged_unless_asked_for(start: Any, log: Listener) -> None:
    start()
    assert search("ok") == {"a": 1}
    assert log.records == []
    assert type(RUNTIME.telemetry).__name__ == "OtelTelemetry", "no more than without a log"
    fuseboard.shutdown(0)
    start(log_calls="all")
    assert search("ok") == {"a": 1}
    (record,) = log.records
    assert (record.levelno, facts(record)["outcome"]) == (logging.DEBUG, "ok")
    assert facts(record)["trace_id"] is not None
    assert facts(record)["error_class"] is None


@pytest.mark.parametrize("mode", ["off", "problems", "all"])
def test_the_three_modes(
    start: Any, log: Listener, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEBOARD_LOG_CALLS", mode.upper())
    start()
    flaky = iter([ConnectionResetError(), None])

    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=0), effects="none"))
    def retried() -> str:
        if (error := next(flaky)) is not None:
            raise error
        return "done"

    search("ok")
    retried()
    with pytest.raises(ConnectionResetError):
        search("reset")
    expected = {"off": [], "problems": ["error"], "all": ["ok", "ok", "error"]}
    assert [facts(record)["outcome"] for record in log.records] == expected[mode]
    assert [facts(record)["attempts"] for record in log.records][1:2] == [2][: mode == "all"]


def test_the_argument_wins_over_the_variable(
    start: Any, log: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEBOARD_LOG_CALLS", "all")
    start(log_calls="off")
    search("ok")
    assert log.records == []


def test_wrong_modes_are_refused(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="log_calls='some' is not legal: use one of"):
        start(log_calls="some")
    monkeypatch.setenv("FUSEBOARD_LOG_CALLS", "some")
    with pytest.raises(ConfigurationError, match="FUSEBOARD_LOG_CALLS='some' is not legal"):
        start()


def run(what: str) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def stream() -> Iterator[int]:
        yield 1
        yield 2

    if what == "cancelled":

        async def cancel() -> None:
            task = asyncio.ensure_future(fuseboard.wrap(slow)())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(cancel())
    elif what == "abandoned":
        items = fuseboard.wrap(stream)()
        next(items)
        items.close()  # type: ignore[attr-defined]
    elif what == "degraded":
        policy = Policy(fallback=Fallback(value="spare"), validation=Validation(non_empty=True))
        assert fuseboard.wrap(lambda: "", name="t", policy=policy)() == "spare"
    elif what == "wrong":
        with pytest.raises(TypeError):
            search(nothing=1)
    else:
        search(what)


@pytest.mark.parametrize(
    ("what", "outcome", "level"),
    [
        ("cancelled", "cancelled", logging.INFO),
        ("abandoned", "abandoned", logging.INFO),
        ("partial", "partial", logging.WARNING),
        ("degraded", "degraded", logging.WARNING),
        ("wrong", "error", logging.WARNING),
    ],
)
def test_the_level_says_who_should_look(
    start: Any, log: Listener, what: str, outcome: str, level: int
) -> None:
    start()
    run(what)
    (record,) = log.records
    assert facts(record)["outcome"] == outcome
    assert record.levelno == level
    if what == "degraded":
        assert "served by default: L5_semantic" in record.getMessage()


def test_without_a_handler_nothing_is_printed(run_script: Any, collector: Any) -> None:
    done = run_script(f"""
import fuseboard
fuseboard.init(endpoint={collector.url!r})
@fuseboard.tool
def search():
    raise ConnectionResetError("reset")
try:
    search()
except ConnectionResetError:
    print("raised")
""")
    assert done.stdout.strip() == "raised"
    assert done.stderr == ""


def test_a_handler_that_fails_or_calls_tools_does_no_harm(start: Any, log: Listener) -> None:
    start()

    def emit(record: logging.LogRecord) -> None:
        log.records.append(record)
        with pytest.raises(ConnectionResetError):
            search("reset")
        raise RuntimeError("a broken handler")

    log.emit = emit  # type: ignore[method-assign]
    with pytest.raises(ConnectionResetError):
        search("reset")
    assert len(log.records) == 1


def test_after_shutdown_nothing_is_logged(start: Any, log: Listener) -> None:
    start(log_calls="all")
    fuseboard.shutdown(0)
    search("ok")
    assert log.records == []


def test_threads_log_each_their_own_call(start: Any, log: Listener) -> None:
    start(log_calls="all")
    threads = [threading.Thread(target=search, args=(f"q{n}",)) for n in range(8)]
    [thread.start() for thread in threads]
    [thread.join(20) for thread in threads]
    assert len({facts(record)["span_id"] for record in log.records}) == 8


def test_structlog_renders_the_fields(start: Any) -> None:
    structlog = pytest.importorskip("structlog")
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logger = logging.getLogger(CALL_LOGGER)
    logger.addHandler(handler)
    try:
        start()
        with pytest.raises(ConnectionResetError):
            search("reset")
    finally:
        logger.removeHandler(handler)
    found = json.loads(out.getvalue())
    assert set(CALL_LOG_FIELDS) <= found.keys()
    assert (found["tool"], found["outcome"], found["level"]) == ("search", "error", "error")
    assert found["event"].startswith("tool call search: error")


def test_a_call_is_one_line_whatever_the_server_says(start: Any, log: Listener) -> None:
    start()

    @fuseboard.tool
    def fetch() -> None:
        raise ConnectionResetError("reset\r\nERROR forged: everything is lost\u2028\x0bor so")

    with pytest.raises(ConnectionResetError):
        fetch()
    (record,) = log.records
    assert len(record.getMessage().splitlines()) == 1
    assert "reset ERROR forged: everything is lost or so" in record.getMessage()

"""What only shows in a process of its own: providers, exits, signals, forks."""

from __future__ import annotations

import signal
import time
from typing import Any

import handmade_calls as handmade
import pytest

from fuseboard import setup

PRELUDE = """
import handmade_calls as handmade
from fuseboard import setup
from fuseboard.runtime import RUNTIME
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from fuseboard.record import AttemptRecord

def application_provider():
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider, memory

def application_span():
    trace.get_tracer("application").start_span("application work").end()

def names(memory):
    return sorted(span.name for span in memory.get_finished_spans())
"""


def names(collector: Any) -> list[str]:
    return sorted(span.name for span in collector.spans())


def finished(process: Any) -> str:
    assert process.returncode == 0, process.stderr
    assert "Overriding" not in process.stderr
    assert "Traceback" not in process.stderr
    return str(process.stdout)


# --- HC-15 ----------------------------------------------------------------------------------
def test_hc_15_application_first_with_endpoint(run_script: Any, collector: Any) -> None:
    out = finished(
        run_script(f"""{PRELUDE}
provider, memory = application_provider()
trace.set_tracer_provider(provider)
setup.init("agent", endpoint={collector.url!r})
assert trace.get_tracer_provider() is provider
application_span()
handmade.succeed()
assert setup.flush(20)
print(names(memory))
""")
    )
    assert out.strip() == "['application work', 'execute_tool search']"
    assert names(collector) == ["execute_tool search"]


def test_hc_15_application_first_without_endpoint(run_script: Any, collector: Any) -> None:
    out = finished(
        run_script(
            f"""{PRELUDE}
provider, memory = application_provider()
trace.set_tracer_provider(provider)
setup.init("agent")
application_span()
handmade.succeed()
assert setup.flush(20)
print(names(memory))
""",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        )
    )
    assert out.strip() == "['application work', 'execute_tool search']"
    assert collector.bodies == []


def test_hc_15_we_first(run_script: Any, collector: Any) -> None:
    out = finished(
        run_script(f"""{PRELUDE}
setup.init("agent", endpoint={collector.url!r})
trace.get_tracer("early").start_span("before").end()
provider, memory = application_provider()
trace.set_tracer_provider(provider)
assert trace.get_tracer_provider() is provider
application_span()
handmade.succeed()
assert setup.flush(20)
print(names(memory))
""")
    )
    assert out.strip() == "['application work']"
    assert names(collector) == ["before", "execute_tool search"]


def test_hc_15_twice(run_script: Any, collector: Any) -> None:
    finished(
        run_script(f"""{PRELUDE}
for _ in range(2):
    setup.init("agent", endpoint={collector.url!r})
handmade.succeed()
assert setup.flush(20)
""")
    )
    assert names(collector) == ["execute_tool search"]


def test_hc_15_disabled(run_script: Any, collector: Any) -> None:
    out = finished(
        run_script(
            f"""{PRELUDE}
import threading
setup.init("agent", endpoint={collector.url!r}, metrics_port=0)
handmade.succeed()
print(setup.flush(5), setup.shutdown(5), setup.metrics_text()[0])
print(threading.active_count(), type(trace.get_tracer_provider()).__name__)
""",
            OTEL_SDK_DISABLED="true",
        )
    )
    assert out.splitlines() == ["True True b''", "1 ProxyTracerProvider"]
    assert collector.bodies == []


def test_hc_15_importing_changes_nothing(run_script: Any) -> None:
    finished(
        run_script("""
import threading, signal, os, sys
hooks = signal.getsignal(signal.SIGTERM)
import fuseboard.setup
from opentelemetry import trace
assert type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider"
assert threading.active_count() == 1
assert signal.getsignal(signal.SIGTERM) is hooks
heavy = {"requests", "httpx", "pydantic", "duckdb", "opentelemetry.exporter"} & set(sys.modules)
assert not heavy, heavy
""")
    )


def test_the_export_needs_no_requests(run_script: Any, collector: Any) -> None:
    finished(
        run_script(f"""{PRELUDE}
import sys
setup.init("agent", endpoint={collector.url!r})
handmade.succeed()
assert setup.flush(20)
assert "requests" not in sys.modules
""")
    )


# --- HC-31 ----------------------------------------------------------------------------------
def leave(
    run_script: Any, endpoint: str, ending: str, timeout: float = 5.0, spans: int = 3000
) -> tuple[Any, float]:
    process = run_script(f"""{PRELUDE}
import os, signal, sys, threading, time
setup.init("agent", endpoint={endpoint!r}, shutdown_timeout={timeout})
for _ in range({spans}):
    handmade.succeed()
print(time.time(), flush=True)
{ending}
""")
    return process, time.time() - float(process.stdout.splitlines()[0])


@pytest.mark.parametrize("away", ["refusing_endpoint", "silent_endpoint"])
def test_hc_31_the_end_has_a_deadline_and_says_what_was_lost(
    run_script: Any, request: pytest.FixtureRequest, away: str
) -> None:
    process, seconds = leave(run_script, request.getfixturevalue(away), "sys.exit(3)")
    assert process.returncode == 3
    assert seconds < 6.0
    said = [line for line in process.stderr.splitlines() if "were lost" in line]
    assert len(said) == 1, process.stderr
    # The spans, and the heartbeats at the start and at the end.
    assert said[0].startswith("3002 telemetry records were lost at exit")
    if away == "silent_endpoint":
        assert said[0].endswith("within the 4 s that shutdown_timeout=5 leaves it")
    else:
        assert said[0].endswith("did not confirm them and is not there"), "it did not wait"


def test_a_deadline_of_its_own(run_script: Any, silent_endpoint: str) -> None:
    process, seconds = leave(run_script, silent_endpoint, "", timeout=0.2, spans=10)
    assert process.returncode == 0
    assert seconds < 2.0
    assert "12 telemetry records were lost at exit" in process.stderr
    assert "within the 0.16 s that shutdown_timeout=0.2 leaves it" in process.stderr


def test_a_shutdown_of_the_application_says_its_own_deadline(
    start: Any, silent_endpoint: str, caplog: pytest.LogCaptureFixture
) -> None:
    start(endpoint=silent_endpoint)
    handmade.succeed()
    assert setup.shutdown(0.25) is False
    assert "did not confirm them within 0.25 s" in caplog.text


def test_at_exit_everything_is_sent(run_script: Any, collector: Any) -> None:
    process, _ = leave(run_script, collector.url, "", spans=700)
    assert process.returncode == 0
    assert process.stderr == ""
    assert len(collector.spans()) == 700
    assert len(collector.logs("fuseboard.process.heartbeat")) == 2


def test_hc_31_sigterm_sends_what_is_left_and_still_kills(run_script: Any, collector: Any) -> None:
    process, seconds = leave(
        run_script, collector.url, "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"
    )
    assert process.returncode == -signal.SIGTERM
    assert seconds < 6.5
    assert len(collector.spans()) == 3000


def test_hc_31_sigterm_with_the_collector_away(run_script: Any, silent_endpoint: str) -> None:
    process, seconds = leave(
        run_script,
        silent_endpoint,
        "lock = threading.Lock(); lock.acquire()\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start(); lock.acquire()",
        timeout=1.0,
        spans=50,
    )
    assert process.returncode == -signal.SIGTERM
    assert seconds < 4.0
    assert "52 telemetry records were lost at exit" in process.stderr


def test_the_signal_handler_of_the_application_stays(run_script: Any, collector: Any) -> None:
    out = finished(
        run_script(f"""{PRELUDE}
import os, signal
def theirs(number, frame):
    print("theirs")
signal.signal(signal.SIGTERM, theirs)
setup.init("agent", endpoint={collector.url!r})
assert signal.getsignal(signal.SIGTERM) is theirs
handmade.succeed()
os.kill(os.getpid(), signal.SIGTERM)
""")
    )
    assert out.strip() == "theirs"
    assert names(collector) == ["execute_tool search"]


# --- HC-06 ----------------------------------------------------------------------------------
def test_hc_06_children_forked_under_load_report_for_themselves(
    run_script: Any, collector: Any
) -> None:
    out = finished(
        run_script(f"""{PRELUDE}
import os, signal, threading, time
from fuseboard.record import ToolInfo
setup.init("agent", endpoint={collector.url!r}, region="eu-west")
RUNTIME.register(handmade.TOOL)
running = handmade.start()
stop = threading.Event()
def load():
    while not stop.is_set():
        handmade.fail()
        setup.metrics_text()
threads = [threading.Thread(target=load) for _ in range(2)]
[thread.start() for thread in threads]
time.sleep(0.1)
bad = 0
for number in range(50):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        handmade.succeed(session=f"child-{{number}}")
        text = setup.metrics_text()[0].decode()
        one = 'calls_total{{error_class="none",outcome="ok",region="eu-west",tool="search"}} 1.0'
        none = 'in_flight{{region="eu-west",tool="search"}} 0.0'
        ok = setup.flush(15) and one in text and none in text
        os._exit(0 if ok else 9)
    bad += os.waitpid(child, 0)[1] != 0
stop.set()
[thread.join() for thread in threads]
handmade.end(running)
assert setup.flush(30)
print(bad)
""")
    )
    assert out.strip() == "0"
    sessions: dict[str, str] = {}
    for group in collector.resource_spans():
        (instance,) = (
            a.value.string_value
            for a in group.resource.attributes
            if a.key == "service.instance.id"
        )
        for span in (span for scope in group.scope_spans for span in scope.spans):
            for attribute in span.attributes:
                if attribute.key == "gen_ai.conversation.id":
                    assert attribute.value.string_value not in sessions
                    sessions[attribute.value.string_value] = instance
    assert len(sessions) == 50
    assert len(set(sessions.values())) == 50
    ids = [span.span_id for span in collector.spans()]
    assert len(ids) == len(set(ids)), "a child sent what belongs to its parent"


def test_hc_06_a_multiprocessing_child_sends_what_it_has_when_it_ends(
    run_script: Any, collector: Any
) -> None:
    finished(
        run_script(f"""{PRELUDE}
import multiprocessing
def work():
    handmade.succeed()
if __name__ == "__main__":
    setup.init("agent", endpoint={collector.url!r})
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work) for _ in range(3)]
    [child.start() for child in children]
    [child.join(30) for child in children]
    assert [child.exitcode for child in children] == [0, 0, 0]
""")
    )
    assert len(collector.spans()) == 3


def test_a_child_that_calls_no_tool_starts_no_thread(run_script: Any, collector: Any) -> None:
    out = finished(
        run_script(f"""{PRELUDE}
import os, threading
setup.init("agent", endpoint={collector.url!r})
handmade.succeed()
child = os.fork()
if child == 0:
    os._exit(threading.active_count())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    )
    assert out.strip() == "1"


def test_hc_06_a_child_forked_inside_a_tool_leaves_the_call_to_its_parent(
    run_script: Any, collector: Any
) -> None:
    """Both return from the tool, yet it is one call."""
    finished(
        run_script(f"""
import os, fuseboard
from fuseboard import Policy, Retry
fuseboard.init("forks", endpoint={collector.url!r})

@fuseboard.tool
def bare():
    return os.fork()

@fuseboard.tool(policy=Policy(retry=Retry(attempts=3, wait_initial=0)))
def retried(pids):
    pids.append(os.fork() if not pids else pids[0])
    if pids == [0]:
        raise ConnectionRefusedError
    return pids[0]

@fuseboard.tool
def own():
    pass

def counted(kind):
    lines = fuseboard.metrics_text()[0].decode().splitlines()
    found = [line for line in lines if line.startswith(f"fuseboard_tool_{{kind}}_total")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)

for number, forks in enumerate((bare, lambda: retried([]))):
    if forks() == 0:
        assert counted("calls") == counted("attempts") == 0
        own()
        assert counted("calls") == counted("attempts") == 1
        fuseboard.shutdown(10)
        os._exit(0)
    assert os.wait()[1] == 0
    assert counted("calls") == counted("attempts") == number + 1
""")
    )
    names = [span.name for span in collector.spans()]
    assert sorted(names) == [
        "execute_tool bare",
        "execute_tool own",
        "execute_tool own",
        "execute_tool retried",
    ]

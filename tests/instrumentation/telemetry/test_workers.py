"""HC-08: workers that end send what they have first, whoever started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fuseboard import workers

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "workers.md").read_text()

POOL = """
import multiprocessing
import fuseboard

@fuseboard.tool
def work(n):
    return n * n

def start():
    fuseboard.init("workers", endpoint={url!r})

def start_anew():
    fuseboard.shutdown(0)
    start()

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    {before}
    with context.Pool(2, {initializer} maxtasksperchild=1) as pool:
        print(sum(pool.map(work, range(10), chunksize=1)))
        pool.close()
        pool.join()
"""


def calls(collector: Any) -> list[str]:
    return [span.name for span in collector.spans() if span.name.startswith("execute_tool")]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("method", "before", "initializer"),
    [
        ("fork", "start()", ""),
        ("fork", "pass", "initializer=start,"),
        ("forkserver", "pass", "initializer=start,"),
        ("spawn", "pass", "initializer=start,"),
        ("fork", "start()", "initializer=start_anew,"),
    ],
)
def test_hc_08_each_worker_of_a_pool_sends_its_span(
    run_script: Any, collector: Any, method: str, before: str, initializer: str
) -> None:
    done = run_script(
        POOL.format(url=collector.url, method=method, before=before, initializer=initializer)
    )
    assert done.stdout.strip() == "285", done.stderr
    assert calls(collector) == ["execute_tool work"] * 10


def test_hc_08_a_script_of_three_lines_sends_its_span(run_script: Any, collector: Any) -> None:
    done = run_script(f"""
import fuseboard
fuseboard.init(endpoint={collector.url!r})
fuseboard.wrap(len, name="length")("abc")
""")
    assert done.returncode == 0, done.stderr
    assert calls(collector) == ["execute_tool length"]


def test_hc_08_a_celery_worker_is_asked_to_shut_down(run_script: Any, collector: Any) -> None:
    """Celery's pool leaves by ``os._exit`` after this signal; a stand-in for it does as well."""
    done = run_script(f"""
import os, sys, types
class Signal:
    receivers = []
    def connect(self, receiver, weak=True, dispatch_uid=None):
        assert not weak, "a lambda would be gone"
        self.receivers = [(u, r) for u, r in self.receivers if u != dispatch_uid]
        self.receivers.append((dispatch_uid, receiver))
    def send(self, **named):
        for _, receiver in self.receivers:
            receiver(signal=self, **named)
signals = types.ModuleType("celery.signals")
signals.worker_process_shutdown = Signal()
sys.modules["celery.signals"] = signals
import fuseboard
fuseboard.init(endpoint={collector.url!r})
tool = fuseboard.wrap(len, name="length")
child = os.fork()
if child == 0:
    tool("abc")
    signals.worker_process_shutdown.send(sender=None, pid=os.getpid(), exitcode=0)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(Signal.receivers or
      signals.worker_process_shutdown.receivers))
os._exit(0)
""")
    assert done.stdout.strip() == "0 1", done.stderr
    assert calls(collector) == ["execute_tool length"]


CELERY_APP = """
import celery, fuseboard
app = celery.Celery("tasks", broker="filesystem://", backend="file://{folder}")
app.conf.broker_transport_options = {{"data_folder_in": "{folder}", "data_folder_out": "{folder}"}}
app.conf.worker_max_tasks_per_child = 1
{init}
@fuseboard.tool
def work(n):
    return n * n
@app.task
def task(n):
    return work(n)
"""
AT_IMPORT = 'fuseboard.init("celery", endpoint={url!r})'
IN_WORKERS = """
@celery.signals.worker_process_init.connect
def start(**_):
    fuseboard.init("celery", endpoint={url!r})
"""


@pytest.mark.timeout(170)
@pytest.mark.parametrize("init", [AT_IMPORT, IN_WORKERS], ids=["at import", "in workers"])
def test_hc_08_workers_of_celery_send_their_spans(
    tmp_path: Path, collector: Any, init: str
) -> None:
    pytest.importorskip("celery")
    source = CELERY_APP.format(folder=tmp_path, init=init.format(url=collector.url))
    (tmp_path / "tasks.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-c", "2", "-l", "ERROR",
         "--without-gossip", "--without-mingle", "--without-heartbeat"],
        cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as worker:  # fmt: skip
        code = "import tasks; print([tasks.task.delay(n).get(timeout=90) for n in range(4)])"
        asked = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path, env={**environment, "OTEL_SDK_DISABLED": "true"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        worker.send_signal(signal.SIGTERM)
        worker.wait(40)
    assert asked.stdout.strip() == "[0, 1, 4, 9]", asked.stderr
    assert calls(collector) == ["execute_tool work"] * 4


APP = """
import fuseboard

fuseboard.init("gunicorn")

@fuseboard.tool
def search(what):
    return what

def app(environ, respond):
    if environ["PATH_INFO"] == "/metrics":
        body, kind = fuseboard.metrics_text(environ.get("HTTP_ACCEPT"))
        respond("200 OK", [("Content-Type", kind)])
        return [body]
    search(environ["PATH_INFO"])
    respond("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]
"""


def block(text: str, name: str) -> str:
    """Return the code block of a page that begins with a comment that names the file."""
    start = text.index(f"```python\n# {name}\n")
    return text[start + len("```python\n") : text.index("\n```", start)]


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return str(answer.read().decode())


def value(text: str, name: str, **labels: str) -> float:
    lines = [line for line in text.splitlines() if line.startswith(name + "{")]
    found = [x for x in lines if all(f'{key}="{val}"' in x for key, val in labels.items())]
    return sum(float(line.rpartition(" ")[2]) for line in found)


@pytest.mark.timeout(170)
@pytest.mark.parametrize("preload", [False, True])
def test_hc_07_hc_08_gunicorn_with_the_configuration_of_the_page(
    tmp_path: Path, collector: Any, preload: bool
) -> None:
    pytest.importorskip("gunicorn")
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        port = once.getsockname()[1]
    configuration = block(PAGE, "gunicorn.conf.py")
    (tmp_path / "gunicorn.conf.py").write_text(f"{configuration}\npreload_app = {preload}\n")
    (tmp_path / "app.py").write_text(textwrap.dedent(APP))
    shared = tmp_path / "metrics"
    shared.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{port}", "app:app"],
        cwd=tmp_path, stderr=subprocess.DEVNULL,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(shared),
             "FUSEBOARD_ENDPOINT": collector.url, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    ) as server:  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                get(port, "/metrics")
                break
            except OSError:
                time.sleep(0.1)
        for number in range(12):
            assert get(port, f"/{number}") == "done"
        text = get(port, "/metrics")
        server.send_signal(signal.SIGTERM)
        server.wait(40)
    assert value(text, "fuseboard_tool_calls_total", outcome="ok") == 12
    assert value(text, "fuseboard_tool_calls_in_flight") == 0
    assert "pid=" not in text
    assert calls(collector) == ["execute_tool search"] * 12
    assert list(shared.glob("gauge_live*")) == []


def test_forgetting_a_worker_needs_no_shared_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    workers.forget_worker(1)


def test_the_hook_drops_the_gauges_of_one_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    names = ["gauge_livesum_12.db", "gauge_livemax_12.db", "gauge_livemax_123.db", "counter_12.db"]
    for name in names:
        (tmp_path / name).touch()

    class Gone:
        pid = 12

    workers.child_exit(None, Gone())
    assert {path.name for path in tmp_path.iterdir()} == {"gauge_livemax_123.db", "counter_12.db"}

"""Other products that take OTLP, as installed: with SQLite, and one worker if that is a choice."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import measuring
import peer_environments

from ingesting.contenders import Server

READY_SECONDS = 180.0
STORED_SECONDS = 900.0
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Peer:
    """How a product is installed and started.

    Attributes:
        package: Its name in ``peers.txt``.
        module: What its Python runs, with ``{port}``, ``{other}`` (a second port) and ``{folder}``.
        variables: Environment variables, with the same places.
        file: Its database in the folder.
        headers: What each request needs besides.
    """

    package: str
    module: tuple[str, ...]
    variables: dict[str, str]
    file: str
    headers: tuple[tuple[str, str], ...] = ()


PEERS = {
    "Phoenix": Peer(
        "arize-phoenix",
        ("-m", "phoenix.server.main", "serve"),
        {
            "PHOENIX_WORKING_DIR": "{folder}", "PHOENIX_PORT": "{port}",
            "PHOENIX_GRPC_PORT": "{other}", "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_TELEMETRY_ENABLED": "false",
        },
        "phoenix.db",
    ),
    "MLflow": Peer(
        "mlflow",
        (
            "-m", "mlflow", "server", "--host=127.0.0.1", "--port={port}", "--workers=1",
            "--backend-store-uri=sqlite:///{folder}/mlflow.db",
            "--artifacts-destination={folder}/artifacts",
        ),
        {"DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true"},
        "mlflow.db",
        (("x-mlflow-experiment-id", "0"),),
    ),
}  # fmt: skip


def start(name: str, folder: Path) -> Server:
    """Start a product on an empty folder, and wait until it answers."""
    peer = PEERS[name]
    python = peer_environments.python_with(peer.package, [peer.package])
    folder.mkdir(parents=True)
    with measuring.refusing_port() as one, measuring.refusing_port() as two:
        places = {"port": one.rpartition(":")[2], "other": two.rpartition(":")[2]}
    places["folder"] = str(folder)
    variables = {key: value.format(**places) for key, value in peer.variables.items()}
    process = subprocess.Popen(
        [str(python), *(part.format(**places) for part in peer.module)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    url = f"http://127.0.0.1:{places['port']}"
    _wait_until_it_answers(process, url)
    return Server(name, folder / peer.file, process, url, headers=peer.headers)


def _wait_until_it_answers(process: subprocess.Popen[str], url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(POLL_SECONDS)
    raise SystemExit(f"{url} did not answer within {READY_SECONDS:g} s")


def wait_until_stored(server: Server) -> None:
    """Wait until the database of a product has as many spans as were acknowledged."""
    deadline = time.monotonic() + STORED_SECONDS
    while (found := _stored(server.file)) < server.spans:
        if time.monotonic() > deadline:
            raise SystemExit(f"{server.name} stored {found} of {server.spans} spans")
        time.sleep(POLL_SECONDS)


def _stored(file: Path) -> int:
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30) as connection:
            found: int = connection.execute("SELECT count(*) FROM spans").fetchone()[0]
    except sqlite3.OperationalError:  # no such table yet, or locked
        return 0
    return found

"""Redis servers for tests: a real one, and some that nobody would want."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path


class RealRedis:
    """A Redis server of Debian's, on a socket of its own, that keeps nothing."""

    def __init__(self, binary: Path) -> None:
        self._folder = tempfile.mkdtemp(prefix="fuseboard-redis-")
        path = Path(self._folder) / "redis.sock"
        self.url = f"unix://{path}"
        self._process = subprocess.Popen(
            [binary, "--port", "0", "--unixsocket", path, "--save", "", "--dir", self._folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while not self._answers(path):
            assert time.monotonic() < deadline, "Redis does not answer"
            assert self._process.poll() is None, "Redis has ended"
            time.sleep(0.02)

    @staticmethod
    def _answers(path: Path) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"
        return False

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)


class BadRedis:
    """Accepts connections and answers each message with the same bytes, or with nothing."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._socket.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._open.append(connection)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                connection.sendall(self._answer)

    def close(self) -> None:
        self._socket.close()
        for connection in self._open:
            connection.close()


@contextlib.contextmanager
def bad_redis(answer: bytes = b"") -> Iterator[str]:
    """Run a server that answers so; yield its URL."""
    server = BadRedis(answer)
    try:
        yield server.url
    finally:
        server.close()


def dead_redis() -> str:
    """Return the URL of a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"redis://127.0.0.1:{listener.getsockname()[1]}"

"""A real Prometheus on a free port, asked over its HTTP API."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

DEADLINE = 60.0


def wait_for(is_met: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
    end = time.monotonic() + deadline
    while True:
        try:
            if is_met():
                return
        except OSError:
            pass
        assert time.monotonic() < end, f"waited {deadline:g} s in vain for {what}"
        time.sleep(0.1)


class Prometheus:
    def __init__(self, address: str) -> None:
        self.address = address

    @classmethod
    @contextmanager
    def running(
        cls, binary: Path, folder: Path, *, port: int, config: dict[str, Any], flags: list[str]
    ) -> Iterator[Prometheus]:
        file = folder / "prometheus.yml"
        file.write_text(json.dumps(config))
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [
                    str(binary),
                    f"--config.file={file}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    *flags,
                ],
                stdout=log,
                stderr=log,
            )
        try:
            yield cls(f"http://127.0.0.1:{port}")
        finally:
            process.kill()
            process.wait()

    def get(self, path: str, **parameters: object) -> Any:
        """Return the data of an answer; an error of the query fails the test."""
        try:
            with urlopen(f"{self.address}/api/v1/{path}?{urlencode(parameters, doseq=True)}") as it:
                answer = json.load(it)
        except HTTPError as error:
            if error.code == 503:
                raise OSError("not ready yet") from error
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error
        assert answer["status"] == "success", answer
        return answer["data"]

    def matrix(self, expression: str, seconds: float) -> list[dict[str, Any]]:
        """Run a range query over the last seconds, one value a second."""
        now = time.time()
        found = self.get("query_range", query=expression, start=now - seconds, end=now, step=1)
        return list(found["result"])

"""The clients: threads that post ready-made requests over kept connections; a process of its own.

Prints one line of JSON: what was acknowledged, in how many seconds, and how long each answer took.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from ingesting import templates

RETRY_SECONDS = 0.2
TIMEOUT = 600.0


class Client(threading.Thread):
    """Post one request after the other until the time is up; a refusal is tried again later."""

    def __init__(self, args: argparse.Namespace, first: int, deadline: float) -> None:
        super().__init__(daemon=True)
        self.address = urlsplit(args.url)
        self.path = self.address.path
        self.headers = {"Content-Type": "application/x-protobuf", **dict(args.header)}
        self.gzip = args.gzip
        self.templates = templates.read(args.requests)
        self.next = first
        self.most = args.most
        self.deadline = deadline
        self.spans = self.ids = self.refused = 0
        self.seconds: list[float] = []
        self.finished = 0.0
        if args.gzip:
            self.headers["Content-Encoding"] = "gzip"

    def run(self) -> None:
        """Work until the time is up."""
        connection = http.client.HTTPConnection(self.address.netloc, timeout=TIMEOUT)
        while time.monotonic() < self.deadline and len(self.seconds) < self.most:
            template = self.templates[self.next % len(self.templates)]
            self.next += 1
            body, ids = template.copy(time.time_ns())
            self.post(connection, gzip.compress(body, 1) if self.gzip else body)
            self.spans += len(template.owners)
            self.ids = (self.ids + ids) % 2**64
        self.finished = time.monotonic()

    def post(self, connection: http.client.HTTPConnection, body: bytes) -> None:
        """Send one request until it is taken."""
        while True:
            began = time.monotonic()
            connection.request("POST", self.path, body, self.headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status == http.client.OK:
                self.seconds.append(time.monotonic() - began)
                return
            if answer.status not in (429, 503):
                raise RuntimeError(f"{self.path} answered {answer.status}: {said[:300]!r}")
            self.refused += 1
            time.sleep(RETRY_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("requests", type=Path)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--most", type=int, default=1 << 60, help="requests of each client")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--header", nargs=2, action="append", default=[])
    args = parser.parse_args()
    began = time.monotonic()
    clients = [Client(args, 3 * number, began + args.seconds) for number in range(args.clients)]
    began = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if not all(client.finished for client in clients):
        raise SystemExit("a client found no answer; the messages above say why")
    print(
        json.dumps(
            {
                "spans": sum(client.spans for client in clients),
                "ids": sum(client.ids for client in clients) % 2**64,
                "refused": sum(client.refused for client in clients),
                "seconds": max(client.finished for client in clients) - began,
                "answers": [seconds for client in clients for seconds in client.seconds],
            }
        )
    )


if __name__ == "__main__":
    main()

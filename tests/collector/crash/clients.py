"""Clients that send traces, and send again what was not acknowledged."""

from __future__ import annotations

import http.client
import json
import threading
from random import Random

from crash.books import Agent, Books, Sent

HEADERS = {"content-type": "application/json"}
TRACES, PARTS = 6, 4
"""Traces that a client works on at once, and parts of them that go into one request."""


class Client(threading.Thread):
    """One client with one connection; idle while there is no port to send to."""

    def __init__(self, books: Books, seed: int) -> None:
        super().__init__(daemon=True)
        self._books = books
        self._agent = Agent(Random(seed))
        self._chance = Random(-seed)
        self._due: list[tuple[Sent, int]] = []
        self._request: list[tuple[Sent, int]] = []
        self._body = b""
        self._idle = threading.Event()
        self._changed = threading.Condition()
        self._port: int | None = None
        self._over = False
        self.refused = 0

    def resume(self, port: int) -> None:
        """Send to this port from now on."""
        with self._changed:
            self._port = port
            self._idle.clear()
            self._changed.notify()

    def pause(self) -> None:
        """Stop sending, and wait until the last answer came or failed to."""
        with self._changed:
            self._port = None
            self._changed.notify()
        assert self._idle.wait(30)

    def finish(self) -> None:
        """End the thread."""
        with self._changed:
            self._over, self._port = True, None
            self._changed.notify()
        self.join(30)

    def run(self) -> None:
        """Send on and on."""
        while True:
            with self._changed:
                while self._port is None and not self._over:
                    self._idle.set()
                    self._changed.wait()
                if self._over:
                    return
                port = self._port
            assert port is not None
            self._send(port)

    def _send(self, port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            while self._port == port:
                self._send_next(connection)
        except (OSError, http.client.HTTPException):
            self._changed.acquire()
            self._changed.wait_for(lambda: self._port != port or self._over, 0.02)
            self._changed.release()
        finally:
            connection.close()

    def _send_next(self, connection: http.client.HTTPConnection) -> None:
        if not self._request:
            self._begin()
        connection.request("POST", "/v1/traces", self._body, HEADERS)
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            self._books.acknowledge(self._request)
            self._request = []
        else:
            assert answer.status == 503, answer.status
            self.refused += 1

    def _begin(self) -> None:
        """Put the next request together; it stays the same until it is acknowledged."""
        if not self._due:
            self._due = self._traces()
        self._request, self._due = self._due[:PARTS], self._due[PARTS:]
        parts = [sent.parts[number] for sent, number in self._request]
        self._body = json.dumps({"resourceSpans": parts}).encode()

    def _traces(self) -> list[tuple[Sent, int]]:
        """Return the parts of a few traces, interleaved."""
        found: list[tuple[Sent, int]] = []
        for _ in range(TRACES):
            sent = self._agent.trace()
            self._books.begin(sent)
            found.extend((sent, number) for number in range(len(sent.parts)))
        self._chance.shuffle(found)
        return found


class Crew:
    """Clients that share their books."""

    def __init__(self, size: int, seed: int) -> None:
        self.books = Books()
        self._clients = [Client(self.books, seed + number) for number in range(size)]
        for client in self._clients:
            client.start()

    def resume(self, port: int) -> None:
        """Have all send to this port."""
        for client in self._clients:
            client.resume(port)

    def pause(self) -> None:
        """Have all stop, and wait until they did."""
        for client in self._clients:
            client.pause()

    def finish(self) -> None:
        """End all threads."""
        for client in self._clients:
            client.finish()

"""As much of the protocols of Redis, PostgreSQL and MongoDB as it takes to refuse."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

from tests.instrumentation.classification.places import receive

Talk = Callable[[socket.socket], None]

_SSL_REQUESTS = (80877103, 80877104)
_OK = struct.pack("!ci", b"R", 8) + struct.pack("!i", 0)
_ASK_PASSWORD = struct.pack("!ci", b"R", 8) + struct.pack("!i", 3)
_READY = struct.pack("!ci", b"Z", 5) + b"I"


def redis(reply: str) -> Talk:
    """Answer every command but the greeting with this reply, ``ERR no such thing``."""

    def talk(line: socket.socket) -> None:
        stream = line.makefile("rb")
        while header := stream.readline():
            words = []
            for _ in range(int(header[1:])):
                size = int(stream.readline()[1:])
                words.append(stream.read(size + 2)[:-2])
            is_greeting = words[0].upper() == b"CLIENT"
            line.sendall(b"+OK\r\n" if is_greeting else f"-{reply}\r\n".encode())

    return talk


def postgres(sqlstate: str, *, at_login: bool = False, asks_password: bool = False) -> Talk:
    """Refuse every statement with this SQLSTATE, or the login already."""

    def talk(line: socket.socket) -> None:
        while _startup_code(line) in _SSL_REQUESTS:
            line.sendall(b"N")
        if asks_password:
            line.sendall(_ASK_PASSWORD)
            _message(line)
        if at_login:
            line.sendall(_refusal(sqlstate, b"FATAL"))
            return
        settings = {"server_version": "17.0", "client_encoding": "UTF8", "TimeZone": "UTC",
                    "integer_datetimes": "on", "standard_conforming_strings": "on"}  # fmt: skip
        told = b"".join(_setting(name, value) for name, value in settings.items())
        line.sendall(_OK + told + _READY)
        _refuse_all(line, _refusal(sqlstate, b"ERROR"))

    return talk


def _refuse_all(line: socket.socket, refusal: bytes) -> None:
    while True:
        kind = _message(line)
        if kind == b"Q":
            line.sendall(refusal + _READY)
        elif kind == b"P":
            line.sendall(refusal)
        elif kind == b"S":
            line.sendall(_READY)
        elif kind == b"X":
            return


def _startup_code(line: socket.socket) -> int:
    (size,) = struct.unpack("!i", receive(line, 4))
    code: int = struct.unpack("!i", receive(line, size - 4)[:4])[0]
    return code


def _message(line: socket.socket) -> bytes:
    kind = receive(line, 1)
    (size,) = struct.unpack("!i", receive(line, 4))
    receive(line, size - 4)
    return kind


def _setting(name: str, value: str) -> bytes:
    text = f"{name}\0{value}\0".encode()
    return struct.pack("!ci", b"S", len(text) + 4) + text


def _refusal(sqlstate: str, severity: bytes) -> bytes:
    fields = {b"S": severity, b"V": severity, b"C": sqlstate.encode(), b"M": b"no"}
    text = b"".join(name + value + b"\0" for name, value in fields.items()) + b"\0"
    return struct.pack("!ci", b"E", len(text) + 4) + text


def mongo(answer: Mapping[str, Any]) -> Talk:
    """Answer every command but the greeting with this document."""
    import bson

    greeting = {"ok": 1, "isWritablePrimary": True, "helloOk": True, "minWireVersion": 0,
                "maxWireVersion": 25, "maxBsonObjectSize": 2**24, "maxMessageSizeBytes": 2**25,
                "maxWriteBatchSize": 1000, "setName": "rs"}  # fmt: skip

    def talk(line: socket.socket) -> None:
        while True:
            size, request, _, kind = struct.unpack("<iiii", receive(line, 16))
            body = receive(line, size - 16)
            is_old = kind == 2004
            document = body[body.index(b"\0", 4) + 9 :] if is_old else body[5:]
            (length,) = struct.unpack("<i", document[:4])
            command = next(iter(bson.decode(document[:length])))
            is_greeting = command in ("hello", "ismaster", "isMaster")
            told = bson.encode(greeting if is_greeting else answer)
            if is_old:
                line.sendall(struct.pack("<iiiiiqii", len(told) + 36, 0, request, 1, 8, 0, 0, 1))
            else:
                line.sendall(struct.pack("<iiiiib", len(told) + 21, 0, request, 2013, 0, 0))
            line.sendall(told)

    return talk

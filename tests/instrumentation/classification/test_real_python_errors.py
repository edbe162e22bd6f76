"""Exceptions that Python's own library really raises, and all that is said of them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import csv
import errno
import gzip
import io
import json
import os
import pickle
import queue
import re
import smtplib
import socket
import sqlite3
import ssl
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.instrumentation.classification.expected import (
    AMBIGUOUS,
    SAFE,
    Row,
    each,
    l1,
    l2,
    l3,
    l4,
    l5,
)
from tests.instrumentation.classification.places import PATIENCE, Places, without_names


def run(*command: str, **options: Any) -> None:
    subprocess.run(command, check=True, capture_output=True, **options)


def python(code: str, **options: Any) -> None:
    run(sys.executable, "-S", "-E", "-c", code, **options)


def shell(command: str) -> None:
    run("sh", "-c", command)


def file_of_mode(places: Places, mode: int) -> str:
    path = places.folder / f"{mode}.bin"
    path.write_text("no program")
    path.chmod(mode)
    return str(path)


def async_program(name: str) -> None:
    async def start() -> None:
        await asyncio.create_subprocess_exec(name)

    asyncio.run(start())


def dial(port: int, say: bytes = b"x") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
        line.sendall(say)
        return line.recv(1)


def write_to_closed(places: Places) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        ours.send(b"x")


def handshake(port: int, verified: bool = True) -> None:
    context = ssl.create_default_context()
    if not verified:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        context.wrap_socket(line, server_hostname="127.0.0.1").close()


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].rstrip("/"))


def resolve(code: int) -> None:
    with without_names(code):
        socket.getaddrinfo("weather.invalid", 443)


def bind_twice(places: Places) -> None:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        first.listen()
        second.bind(first.getsockname())


def read_without_waiting(places: Places) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        ours.recv(1)


def running(work: Callable[[], Any]) -> None:
    asyncio.run(work())


async def wait_for_never() -> None:
    async with asyncio.timeout(0.01):
        await asyncio.Event().wait()


async def read_half() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"ab")
    reader.feed_eof()
    await reader.readexactly(4)


async def read_endless_line() -> None:
    reader = asyncio.StreamReader(limit=4)
    reader.feed_data(b"far too long")
    await reader.readuntil(b"\n")


async def fill_queue() -> None:
    line: asyncio.Queue[int] = asyncio.Queue(1)
    line.put_nowait(1)
    line.put_nowait(2)


async def drain_queue() -> None:
    asyncio.Queue[int]().get_nowait()


async def finish_twice() -> None:
    future = asyncio.get_running_loop().create_future()
    future.set_result(1)
    future.set_result(2)


async def two_of_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(read_half())
        group.create_task(asyncio.sleep(9))


def fill_plain_queue(places: Places) -> None:
    line: queue.Queue[int] = queue.Queue(1)
    line.put(1)
    line.put(2, timeout=0.01)


def cancelled_in_a_pool(places: Places) -> None:
    release = places.over
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(release.wait, 0.2)
        second = pool.submit(print)
        second.cancel()
        first.result()
        second.result()


def broken_pool(places: Places) -> None:
    def cannot_start() -> None:
        raise RuntimeError("no licence")

    with concurrent.futures.ThreadPoolExecutor(1, initializer=cannot_start) as pool:
        pool.submit(print).result()


def late_future(places: Places) -> None:
    concurrent.futures.Future[int]().result(timeout=0.01)


def sql(*statements: str, path: Any = ":memory:", **options: Any) -> None:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, **options)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def locked(places: Places) -> None:
    path = places.folder / "locked.db"
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("begin exclusive")
        sql("create table t (x)", path=path)
    finally:
        holder.close()


def read_only(places: Places) -> None:
    path = places.folder / "read_only.db"
    sql("create table t (x)", path=path)
    sql("insert into t values (1)", path=f"file:{path}?mode=ro", uri=True)


def no_database(places: Places) -> None:
    path = places.folder / "no_database.db"
    path.write_text("these are words, and no pages of a database" * 99)
    sql("select * from t", path=path)


def closed_database(places: Places) -> None:
    connection = sqlite3.connect(":memory:")
    connection.close()
    connection.execute("select 1")


def mail(places: Places, *, password: str | None = None, **replies: str) -> None:
    """Send a letter through a server that gives these replies to commands, else accepts all."""

    def talk(line: socket.socket) -> None:
        stream = line.makefile("rb")
        line.sendall(f"{replies.get('greeting', '220 hello')}\r\n".encode())
        while command := stream.readline().decode().strip():
            word = command.split()[0].upper()
            if word in replies and replies[word] == "":
                return
            usual = {"EHLO": "250-x\r\n250 AUTH PLAIN", "DATA": "354 go on", "AUTH": "235 yes",
                     "QUIT": "221 bye"}  # fmt: skip
            line.sendall(f"{replies.get(word, usual.get(word, '250 yes'))}\r\n".encode())

    with smtplib.SMTP("127.0.0.1", places.listen(talk), timeout=10) as server:
        if password is not None:
            server.login("u", password)
        server.sendmail("a@x.test", ["b@x.test", "c@x.test"], "hello")


def mail_encrypted(places: Places) -> None:
    def talk(line: socket.socket) -> None:
        line.sendall(b"220 hello\r\n")
        line.recv(99)
        line.sendall(b"250 x\r\n")
        line.recv(99)

    with smtplib.SMTP("127.0.0.1", places.listen(talk), timeout=10) as server:
        server.starttls()


def with_number(number: int) -> Callable[[Places], None]:
    """Raise what the system raises with this number; few of them can be had without root."""

    def fail(places: Places) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def recurse(places: Places) -> None:
    recurse(places)


def stop_early(places: Places) -> None:
    next(iter(()))


def broken_zip(places: Places) -> None:
    zipfile.ZipFile(io.BytesIO(b"no zip"))


PROGRAMS = [
    Row("program: failed", lambda at: python("raise SystemExit(1)"),
        "subprocess.CalledProcessError", l5("exit_status_matcher")),
    Row("program: wrong usage", lambda at: shell("exit 64"),
        "subprocess.CalledProcessError", l1("exit_status_matcher")),
    Row("program: try again", lambda at: shell("exit 75"),
        "subprocess.CalledProcessError", l3("exit_status_matcher", AMBIGUOUS)),
    Row("program: no permission", lambda at: shell("exit 77"),
        "subprocess.CalledProcessError", l2("exit_status_matcher")),
    Row("program: wrongly configured", lambda at: shell("exit 78"),
        "subprocess.CalledProcessError", l4("exit_status_matcher", AMBIGUOUS)),
    Row("program: stopped by timeout(1)", lambda at: shell("exit 124"),
        "subprocess.CalledProcessError", l3("timeout_matcher", AMBIGUOUS)),
    Row("program: not found by the shell", lambda at: shell("no-such-program-of-ours"),
        "subprocess.CalledProcessError", l4("program_not_found_matcher")),
    Row("program: killed", lambda at: shell("kill -KILL $$"),
        "subprocess.CalledProcessError", l3("killed_by_signal_matcher", AMBIGUOUS)),
    Row("program: its child was killed", lambda at: shell("sh -c 'kill -KILL $$'; exit $?"),
        "subprocess.CalledProcessError", l3("killed_by_signal_matcher", AMBIGUOUS)),
    Row("program: crashed", lambda at: python("import os; os.kill(os.getpid(), 11)"),
        "subprocess.CalledProcessError", l4("killed_by_signal_matcher", AMBIGUOUS)),
    Row("program: time-out", lambda at: run("sleep", "9", timeout=0.05),
        "subprocess.TimeoutExpired", l3("timeout_matcher", AMBIGUOUS)),
    Row("program: not there", lambda at: run("no-such-program-of-ours"), "FileNotFoundError",
        l4("program_not_found_matcher")),
    Row("program: not there, async", lambda at: async_program("no-such-program-of-ours"),
        "FileNotFoundError", l4("program_not_found_matcher")),
    Row("program: may not be run", lambda at: run(file_of_mode(at, 0o600)), "PermissionError",
        l2("file_permission_matcher")),
    Row("program: none", lambda at: run(file_of_mode(at, 0o700)), "OSError",
        l4("program_not_found_matcher")),
    Row("program: arguments too long", lambda at: run("true", "x" * 10_000_000), "OSError",
        l1("invalid_request_matcher")),
]  # fmt: skip

SOCKETS = [
    Row("socket: refused", lambda at: dial(at.refused_port), "ConnectionRefusedError",
        l3("connection_refused_matcher", SAFE)),
    Row("socket: time-out", lambda at: dial(at.listen(at.until_over)), "TimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("socket: broken pipe", write_to_closed, "BrokenPipeError",
        l3("connection_reset_matcher", AMBIGUOUS)),
    Row("socket: nothing to read yet", read_without_waiting, "BlockingIOError",
        l3("busy_matcher", SAFE)),
    Row("socket: address in use", bind_twice, "OSError", l3("busy_matcher", SAFE)),
    Row("socket: name unknown", lambda at: resolve(socket.EAI_NONAME), "socket.gaierror",
        l4("dns_unknown_host_matcher")),
    Row("socket: no answer of the name server", lambda at: resolve(socket.EAI_AGAIN),
        "socket.gaierror", l3("dns_temporary_matcher", SAFE)),
    Row("tls: untrusted certificate", lambda at: handshake(port_of(at.untrusted)),
        "ssl.SSLCertVerificationError", l4("certificate_matcher")),
    Row("tls: none there", lambda at: handshake(port_of(at.plain)), "ssl.SSLError",
        l4("tls_matcher")),
    Row("tls: cut in the handshake", lambda at: handshake(at.listen(lambda line: line.recv(1))),
        "ConnectionResetError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("system: network unreachable", with_number(errno.ENETUNREACH), "OSError",
        l3("unreachable_matcher", SAFE)),
    Row("system: host unreachable", with_number(errno.EHOSTUNREACH), "OSError",
        l3("unreachable_matcher", SAFE)),
    Row("system: too many open files", with_number(errno.EMFILE), "OSError",
        l3("pool_exhausted_matcher", SAFE)),
    Row("system: no space left", with_number(errno.ENOSPC), "OSError",
        l4("storage_full_matcher", AMBIGUOUS)),
    Row("system: read-only", with_number(errno.EROFS), "OSError",
        l4("storage_full_matcher", AMBIGUOUS)),
]  # fmt: skip

CONCURRENT = [
    Row("asyncio: time-out", lambda at: running(wait_for_never), "TimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("asyncio: stream ended early", lambda at: running(read_half),
        "asyncio.exceptions.IncompleteReadError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("asyncio: line without end", lambda at: running(read_endless_line),
        "asyncio.exceptions.LimitOverrunError", l5("malformed_data_matcher")),
    Row("asyncio: queue full", lambda at: running(fill_queue), "asyncio.queues.QueueFull",
        l3("pool_exhausted_matcher", SAFE)),
    Row("asyncio: queue empty", lambda at: running(drain_queue), "asyncio.queues.QueueEmpty",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("asyncio: future set twice", lambda at: running(finish_twice),
        "asyncio.exceptions.InvalidStateError", l4("python_defect_matcher", AMBIGUOUS)),
    Row("asyncio: a group of tasks", lambda at: running(two_of_a_group), "ExceptionGroup",
        l3("connection_reset_matcher", AMBIGUOUS)),
    Row("queue: full", fill_plain_queue, "queue.Full", l3("pool_exhausted_matcher", SAFE)),
    Row("queue: empty", lambda at: queue.Queue[int]().get(timeout=0.01), "_queue.Empty",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("executor: cancelled before it began", cancelled_in_a_pool,
        "concurrent.futures._base.CancelledError", l3("cancelled_work_matcher", SAFE)),
    Row("executor: broken", broken_pool, "concurrent.futures.thread.BrokenThreadPool",
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("executor: time-out", late_future, "TimeoutError", l3("timeout_matcher", AMBIGUOUS)),
]  # fmt: skip

SQLITE = [
    Row("sqlite: syntax", lambda at: sql("selec 1"), "sqlite3.OperationalError",
        l1("sqlite_code_matcher")),
    Row("sqlite: no such table", lambda at: sql("select * from nowhere"),
        "sqlite3.OperationalError", l1("sqlite_code_matcher")),
    Row("sqlite: there already", lambda at: sql(
            "create table t (x primary key)", "insert into t values (1)",
            "insert into t values (1)"),
        "sqlite3.IntegrityError", l1("sqlite_code_matcher")),
    Row("sqlite: locked", locked, "sqlite3.OperationalError", l3("lock_wait_matcher", SAFE)),
    Row("sqlite: read-only", read_only, "sqlite3.OperationalError", l2("sqlite_code_matcher")),
    Row("sqlite: cannot open", lambda at: sql("select 1", path=at.folder / "no" / "x.db"),
        "sqlite3.OperationalError", l4("sqlite_code_matcher", AMBIGUOUS)),
    Row("sqlite: no database", no_database, "sqlite3.DatabaseError",
        l4("sqlite_code_matcher", AMBIGUOUS)),
    Row("sqlite: closed", closed_database, "sqlite3.ProgrammingError",
        l1("database_request_matcher")),
]  # fmt: skip

MAIL = [
    Row("mail: wrong password", lambda at: mail(at, password="p", AUTH="535 no"),
        "smtplib.SMTPAuthenticationError", l2("smtp_code_matcher")),
    Row("mail: login cannot be checked now", lambda at: mail(at, password="p", AUTH="454 later"),
        "smtplib.SMTPAuthenticationError", l3("smtp_code_matcher", SAFE)),
    Row("mail: login is asked for", lambda at: mail(at, MAIL="530 log in"),
        "smtplib.SMTPSenderRefused", l2("smtp_code_matcher")),
    Row("mail: nobody of these", lambda at: mail(at, RCPT="550 no such user"),
        "smtplib.SMTPRecipientsRefused", l1("smtp_code_matcher")),
    Row("mail: grey-listed", lambda at: mail(at, RCPT="451 try again"),
        "smtplib.SMTPRecipientsRefused", l3("smtp_code_matcher", SAFE)),
    Row("mail: letter refused", lambda at: mail(at, DATA="554 spam"),
        "smtplib.SMTPDataError", l1("smtp_code_matcher")),
    Row("mail: server busy", lambda at: mail(at, greeting="421 too many connections"),
        "smtplib.SMTPConnectError", l3("connect_matcher", SAFE)),
    Row("mail: cut", lambda at: mail(at, DATA=""), "smtplib.SMTPServerDisconnected",
        l3("connection_reset_matcher", AMBIGUOUS)),
    Row("mail: no encryption", mail_encrypted, "smtplib.SMTPNotSupportedError",
        l4("smtp_code_matcher")),
]  # fmt: skip

BUILTINS = [
    Row("python: key", lambda at: {}["x"], "KeyError", l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: index", lambda at: list[int]()[1], "IndexError",
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: attribute", lambda at: None.x, "AttributeError",  # type: ignore[attr-defined]
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: type", lambda at: 1 + "1", "TypeError",  # type: ignore[operator]
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: division", lambda at: 1 / 0, "ZeroDivisionError",
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: recursion", recurse, "RecursionError", l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: import", lambda at: __import__("no_such_module_of_ours"), "ModuleNotFoundError",
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: end of an iteration", stop_early, "StopIteration",
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("python: exit", lambda at: sys.exit(3), "SystemExit",
        l4("system_exit_matcher", AMBIGUOUS)),
    Row("file: not there", lambda at: (at.folder / "no").read_text(), "FileNotFoundError",
        l1("file_not_found_matcher")),
    Row("file: a folder", lambda at: at.folder.read_text(), "IsADirectoryError",
        l1("file_not_found_matcher")),
    Row("data: no JSON", lambda at: json.loads("<html>"), "json.decoder.JSONDecodeError",
        l5("malformed_data_matcher")),
    Row("data: no UTF-8", lambda at: b"\xff".decode(), "UnicodeDecodeError",
        l5("malformed_data_matcher")),
    Row("data: no XML", lambda at: ET.fromstring("<a>"),
        "xml.etree.ElementTree.ParseError", l5("malformed_data_matcher")),
    Row("data: no TOML", lambda at: tomllib.loads("="), "tomllib.TOMLDecodeError",
        l5("malformed_data_matcher")),
    Row("data: no CSV", lambda at: list(csv.reader(['"a"b'], strict=True)), "_csv.Error",
        l5("malformed_data_matcher")),
    Row("data: no gzip", lambda at: gzip.decompress(b"no"), "gzip.BadGzipFile",
        l5("malformed_data_matcher")),
    Row("data: not compressed", lambda at: zlib.decompress(b"no"), "zlib.error",
        l5("malformed_data_matcher")),
    Row("data: no zip", broken_zip, "zipfile.BadZipFile", l5("malformed_data_matcher")),
    Row("data: no pickle", lambda at: pickle.loads(b"no"), "_pickle.UnpicklingError",
        l5("malformed_data_matcher")),
    Row("data: no pattern", lambda at: re.compile("("), "re.error",
        l1("schema_validation_matcher")),
]  # fmt: skip


@each([*PROGRAMS, *SOCKETS, *CONCURRENT, *SQLITE, *MAIL, *BUILTINS])
def test_hc_19_exceptions_of_python(row: Row, places: Places) -> None:
    row.check(places)


def test_a_missing_file_is_told_from_a_missing_program_whatever_came_first(places: Places) -> None:
    alike = [row for row in (*PROGRAMS, *BUILTINS) if row.error_type == "FileNotFoundError"]
    assert len({row.verdict for row in alike}) == 2
    for row in (*alike, *alike):
        row.check(places)


@pytest.mark.parametrize("status", [2, 3, 63, 79, 123, 200, 255])
def test_other_exit_statuses_are_bad_answers(status: int, places: Places) -> None:
    row = Row("?", lambda at: shell(f"exit {status}"), "subprocess.CalledProcessError",
              l5("exit_status_matcher"))  # fmt: skip
    row.check(places)

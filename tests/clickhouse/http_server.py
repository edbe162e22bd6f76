"""The engine of this process behind ClickHouse's HTTP interface, as far as its clients need it."""

from __future__ import annotations

import base64
import contextlib
import email
import email.message
import re
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

USER, PASSWORD = "writer", "s3cret"
_OF_TRANSPORT = {
    "query", "database", "user", "password", "query_id", "session_id", "session_timeout", "role",
    "wait_end_of_query", "send_progress_in_http_headers", "http_headers_progress_interval_ms",
    "enable_http_compression", "client_protocol_version", "compress", "decompress", "quota_key",
    "buffer_size",
}  # fmt: skip
_CODE = re.compile(r"Code: (\d+)")
_INSERT = re.compile(
    r"(?P<head>\s*INSERT\s+INTO\s.+?)\s+FORMAT\s+(?P<format>\w+)\s*\Z", re.IGNORECASE | re.DOTALL
)
_FORMAT = re.compile(r"\bFORMAT\s+\w+\s*;?\s*\Z", re.IGNORECASE)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    path_of_engine = ""

    def do_GET(self) -> None:
        self._answer(200, b"Ok.\n")

    def do_POST(self) -> None:
        options = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self._body()
        if not self._is_known(options):
            self._answer(403, b"Code: 516. DB::Exception: Authentication failed.", 516)
            return
        form = self._form(body)
        if form:
            options, body = {**options, **form}, b""
        sql, data = (options["query"], body) if "query" in options else (body.decode(), b"")
        try:
            self._answer(200, self._run(sql, data, options))
        except Exception as error:
            found = _CODE.search(str(error))
            self._answer(500, str(error).encode(), int(found[1]) if found else 1)

    def _run(self, sql: str, data: bytes, options: dict[str, str]) -> bytes:
        import chdb

        values = {key[6:]: value for key, value in options.items() if key.startswith("param_")}
        settings = {key: value for key, value in options.items()
                    if key not in _OF_TRANSPORT and not key.startswith("param_")}  # fmt: skip
        with contextlib.closing(chdb.connect(self.path_of_engine)) as link:
            if options.get("database"):
                link.query(f"USE {options['database']}")
            for name, value in settings.items():
                escaped = value.replace("\\", "\\\\").replace("'", "\\'")
                link.query(f"SET {name} = '{escaped}'")
            return self._asked(link, sql, data, values)

    def _asked(self, link: object, sql: str, data: bytes, values: dict[str, str]) -> bytes:
        query = link.query  # type: ignore[attr-defined]
        inserted = _INSERT.match(sql)
        if inserted and data:
            with tempfile.NamedTemporaryFile(suffix=".raw") as file:
                file.write(data)
                file.flush()
                query(f"{inserted['head']} FROM INFILE '{file.name}' FORMAT {inserted['format']}")
            return b""
        plain = sql.rstrip().rstrip(";")
        answer = query(plain, *(() if _FORMAT.search(plain) else ("TabSeparated",)), params=values)
        return bytes(answer.bytes())

    def _is_known(self, options: dict[str, str]) -> bool:
        given = (self.headers.get("X-ClickHouse-User"), self.headers.get("X-ClickHouse-Key"))
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            user, _, password = base64.b64decode(token).decode().partition(":")
            given = (user, password)
        return given == (USER, PASSWORD) or (
            options.get("user"), options.get("password")
        ) == (USER, PASSWORD)  # fmt: skip

    def _body(self) -> bytes:
        data = self._chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(
            int(self.headers.get("Content-Length", 0))
        )  # fmt: skip
        coding = self.headers.get("Content-Encoding", "")
        if coding == "lz4":
            import lz4.frame

            return bytes(lz4.frame.decompress(data))
        if coding == "zstd":
            import zstandard

            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
        return data

    def _form(self, body: bytes) -> dict[str, str]:
        """Return the fields of a form, as clients send many or long parameters."""
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith("multipart/form-data"):
            return {}
        head = f"Content-Type: {kind}\r\n\r\n".encode()
        message = email.message_from_bytes(head + body)
        fields = {}
        for part in message.get_payload():
            assert isinstance(part, email.message.Message)
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            fields[str(part.get_param("name", header="content-disposition"))] = content.decode()
        return fields

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, status: int, content: bytes, code: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(path_of_engine: str) -> Iterator[int]:
    """Serve the engine on a free port of the loopback interface; yield the port."""
    handler = type("Handler", (_Handler,), {"path_of_engine": path_of_engine})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

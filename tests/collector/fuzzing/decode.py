"""Coverage-guided fuzzing of everything between a body and its rows; run by a test, with atheris.

``python decode.py KIND SEEDS … libFuzzer's options``; KIND is ``protobuf``, ``json`` or ``packed``.
The first byte of an input chooses the signal (and the packing), the rest is the body. A body may be
refused with a RefusedError; any other exception is a finding, printed as hex.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["fuseboard_collector"]):
    from fuseboard_collector.normalise.normaliser import normalise_logs, normalise_traces
    from fuseboard_collector.receiver import otlp_json, otlp_protobuf
    from fuseboard_collector.receiver.errors import RefusedError
    from fuseboard_collector.receiver.unpacking import Packing, unpack
    from fuseboard_collector.store.rows import cells_to_arrow, to_arrow

RECEIVED = 1_796_000_000_000_000
UNPACKED = 4 * 1024 * 1024


def take(codec: object, choice: int, body: bytes) -> None:
    """Do with a body what the intake does, up to the rows that the store is handed."""
    if choice % 3 == 0:
        traces = codec.decode_traces(body)  # type: ignore[attr-defined]
        batch = normalise_traces(traces, RECEIVED)
    elif choice % 3 == 1:
        logs = codec.decode_logs(body)  # type: ignore[attr-defined]
        batch, _, _ = normalise_logs(logs, RECEIVED)
    else:
        codec.count_metrics(body)  # type: ignore[attr-defined]
        return
    for rows in batch.lists():
        to_arrow(rows)
        for row in rows:
            row.key()
    if batch.call_cells:
        cells_to_arrow("tool_calls", batch.call_cells)


def protobuf(data: bytes) -> None:
    take(otlp_protobuf, data[0], data[1:])


def json(data: bytes) -> None:
    take(otlp_json, data[0], data[1:])


def packed(data: bytes) -> None:
    packing = Packing.GZIP if data[0] & 4 else Packing.ZSTD
    body = unpack(data[1:], UNPACKED, packing)
    assert len(body) <= UNPACKED
    take(otlp_json if data[0] & 8 else otlp_protobuf, data[0], body)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "protobuf": protobuf, "json": json, "packed": packed,
}  # fmt: skip


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]

    def one(data: bytes) -> None:
        if not data:
            return
        try:
            target(data)
        except RefusedError:
            return
        except BaseException:
            print("FINDING", data.hex(), flush=True)
            raise

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

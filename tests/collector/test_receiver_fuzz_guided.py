"""Coverage-guided fuzzing with atheris, a minute each: nothing but refusals, in bounded memory."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SEEDS = HERE.parent / "data" / "otlp"
SECONDS = 60
MEMORY_MB = 1024


def _protobuf() -> list[bytes]:
    return [b"\0" + path.read_bytes() for path in SEEDS.glob("*.pb")]


def _json() -> list[bytes]:
    texts = [path.read_bytes() for path in SEEDS.glob("*.json")]
    return [b"\0" + text for text in texts if b"resourceSpans" in text]


def _packed() -> list[bytes]:
    zstd = pa.Codec("zstd")
    bodies = [seed[1:] for seed in _protobuf()]
    seeds = [b"\4" + gzip.compress(body) for body in bodies]
    seeds += [b"\0" + zstd.compress(body, asbytes=True) for body in bodies]
    return [*seeds, b"\4" + gzip.compress(b"a") * 3, b"\x0c" + gzip.compress(b"{}")]


KINDS: dict[str, Callable[[], list[bytes]]] = {
    "protobuf": _protobuf, "json": _json, "packed": _packed,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_body_brings_the_decoder_down(tmp_path: Path, kind: str) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(KINDS[kind]()):
        (corpus / f"{number}").write_bytes(seed)
    # The peak of memory that libFuzzer looks at begins with that of the process which started it,
    # and after hundreds of tests that is large: a shell of its own stands between.
    done = subprocess.run(
        [
            "sh", "-c", '"$@"; exit $?', "sh",
            sys.executable, str(HERE / "fuzzing" / "decode.py"), kind, str(corpus),
            f"-max_total_time={SECONDS}", f"-rss_limit_mb={MEMORY_MB}", "-timeout=10",
            "-max_len=100000", "-print_final_stats=1",
        ],
        cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True,
        errors="replace", timeout=SECONDS + 100, check=False,
    )  # fmt: skip
    findings = [line for line in done.stdout.splitlines() if line.startswith("FINDING")]
    assert findings == [], done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]
    executed = re.search(r"stat::number_of_executed_units:\s+(\d+)", done.stderr)
    assert executed is not None, done.stderr[-3000:]
    assert int(executed[1]) > 500, "it did run"

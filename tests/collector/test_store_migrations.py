"""Files of every older schema are brought up to date with everything in them."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseboard_collector.errors import StoreVersionError
from fuseboard_collector.store import Batch, ToolCall, open_at_rest, open_store
from fuseboard_collector.store.backup import copy_at_rest, verify
from fuseboard_collector.store.migrations import SCHEMA_FILES, SCHEMA_VERSION, schema
from fuseboard_collector.store.repair import salvage
from fuseboard_collector.store.rollups.tables import TABLES

EVERYTHING = {"since": None, "until": None}
CALLS = 300
START = datetime(2026, 11, 1, 12, 0)

OLD_ROWS = """
INSERT INTO tool_calls BY NAME
SELECT lpad(i::VARCHAR, 32, 'a') AS trace_id, lpad(i::VARCHAR, 16, 'b') AS span_id,
       $start + to_minutes(i) AS "start", $start + to_minutes(i) + to_seconds(1) AS "end",
       $start + to_minutes(i) + to_seconds(2) AS received_at, 1.0 AS duration_seconds,
       'search' AS tool, if(i % 10 = 0, 'error', 'ok') AS outcome,
       if(i % 10 = 0, 'L3_transient', NULL) AS error_class, 2 AS attempts, 1 AS weight,
       {'note': i}::VARIANT AS attributes
FROM range(1, $last) t(i);
INSERT INTO attempts BY NAME
SELECT lpad(i::VARCHAR, 32, 'a') AS trace_id, lpad(i::VARCHAR, 16, 'b') AS call_span_id,
       lpad((i * 10 + n)::VARCHAR, 16, 'c') AS span_id, n AS number,
       $start + to_minutes(i) AS "start", 0.5 AS duration_seconds, 0 AS delay_seconds,
       'search' AS tool, if(i % 10 = 0 OR n = 1, 'failure', 'success') AS result,
       $start + to_minutes(i) + to_seconds(2) AS received_at
FROM range(1, $last) t(i), range(1, 3) u(n);
INSERT INTO breaker_transitions BY NAME
SELECT $start AS time, 'b' AS breaker, 'search' AS tool, 'closed' AS from_state,
       'open' AS to_state, $start AS received_at;
"""


def old_file(path: Path, number: int) -> Path:
    """Make a data file as the fuseboard of a schema version left it."""
    with duckdb.connect(str(path)) as connection:
        for name in SCHEMA_FILES[:1]:
            connection.execute(schema(name))
        for statement in duckdb.extract_statements(OLD_ROWS):
            given = {"start": START, "last": CALLS + 1}
            used = {key: given[key] for key in statement.named_parameters}
            connection.execute(statement.query, used)
        for name in SCHEMA_FILES[1:number]:
            connection.execute(schema(name))
        connection.execute("INSERT INTO meta VALUES ('written_by', '0.1.0')")
        connection.execute("INSERT INTO meta VALUES ('schema_version', $n)", {"n": str(number)})
    return path


def check_everything(path: Path) -> None:
    """Open the file; everything is there, is rolled up, and new calls are stored."""
    store = open_store(path, retention_days=None)
    with store._open_database().cursor() as cursor:
        meta = dict(cursor.execute("SELECT key, value FROM meta").fetchall())
    assert meta["schema_version"] == str(SCHEMA_VERSION)
    calls = store.query("export_calls", EVERYTHING)
    assert calls.num_rows == CALLS
    assert calls["outcome"].to_pylist().count("error") == CALLS // 10
    assert calls["start"].to_pylist()[0].replace(tzinfo=None) == START + timedelta(minutes=1)
    assert store.query("export_attempts", EVERYTHING).num_rows == 2 * CALLS
    assert store.query("export_transitions", EVERYTHING).num_rows == 1
    assert store.roll_up() > 0
    resent = ToolCall(
        "search", end=1_796_000_000_000_000, trace_id=f"{CALLS:a>32}", span_id=f"{CALLS:b>16}"
    )
    new = ToolCall("search", end=1_796_000_000_000_000)
    store.append(Batch(calls=[resent, new])).result(10)
    assert store.query("export_calls", EVERYTHING).num_rows == CALLS + 1, "a repeat is known"
    store.close()


@pytest.mark.parametrize("number", range(1, SCHEMA_VERSION + 1))
def test_a_file_of_every_version_is_brought_up_to_date(tmp_path: Path, number: int) -> None:
    check_everything(old_file(tmp_path / "fuseboard.duckdb", number))


def test_a_migrated_file_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    old = old_file(tmp_path / "old.duckdb", 1)
    open_store(old, retention_days=None).close()
    open_store(tmp_path / "new.duckdb").close()

    def tables(path: Path) -> list[Any]:
        with duckdb.connect(str(path), read_only=True) as connection:
            return connection.execute(
                "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
                "WHERE NOT internal ORDER BY table_name, column_index"
            ).fetchall()

    assert tables(old) == tables(tmp_path / "new.duckdb")


def every_attempt(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    sql = 'SELECT * EXCLUDE ("end") FROM attempts ORDER BY ALL'
    return connection.execute(sql).fetchall()


@pytest.fixture
def with_derived(tmp_path: Path) -> Path:
    """A file that has the attempts that calls imply as rows of their own, all rolled up."""
    path = old_file(tmp_path / "fuseboard.duckdb", 4)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE tool_calls SET attempts = 1, outcome = 'ok', attempt_seconds = 0.25, "
            '"start" = "end" - INTERVAL 2 MINUTE, service = \'planner\', weight = 2'
        )
        connection.execute("DELETE FROM attempts WHERE call_span_id LIKE '%7'")
        connection.execute(
            "INSERT INTO attempts BY NAME SELECT trace_id, span_id AS call_span_id, 1 AS number, "
            '"start", "start" + INTERVAL 250 MILLISECOND AS "end", 0.25 AS duration_seconds, '
            "0 AS delay_seconds, tool, service, weight, 'success' AS result, received_at "
            "FROM tool_calls"
        )
        connection.execute("DELETE FROM dirty_spans")
    return path


def test_attempts_that_were_stored_as_derived_are_computed_from_then_on(
    with_derived: Path,
) -> None:
    with duckdb.connect(str(with_derived)) as connection:
        before = every_attempt(connection)
    store = open_store(with_derived, retention_days=None)
    with store._open_database().cursor() as cursor:
        assert every_attempt(cursor) == before
        kept = cursor.execute("SELECT count(*), count(span_id) FROM attempt_rows").fetchall()
        marked = cursor.execute("SELECT span FROM dirty_spans WHERE hours = 1").fetchall()
    assert kept == [(2 * CALLS * 9 // 10, 2 * CALLS * 9 // 10)]
    # Calls of two minutes that ended just after the hour: their attempts belong to it now.
    hours = {START + timedelta(hours=number) for number in range(-1, 6)}
    assert {span for (span,) in marked} == hours
    store.close()


def test_an_older_file_is_salvaged_into_the_present_tables(with_derived: Path) -> None:
    with duckdb.connect(str(with_derived)) as connection:
        before = every_attempt(connection)
    saved = salvage(with_derived)
    assert saved.kept["attempt_rows"] == 2 * CALLS * 9 // 10
    assert not any(saved.lost.values())
    with duckdb.connect(str(with_derived), read_only=True) as connection:
        assert every_attempt(connection) == before


DYING = """
import os, sys
from pathlib import Path
from fuseboard_collector.store import migrations, open_store

step = int(sys.argv[2])

def die_at_the_step():
    global step
    step -= 1
    if step == 0:
        os.kill(os.getpid(), 9)  # all is changed, nothing is committed
    return "0.1.0"

migrations.written_by = die_at_the_step
open_store(Path(sys.argv[1]), retention_days=None)
"""


@pytest.mark.parametrize("step", range(1, SCHEMA_VERSION))
def test_a_migration_that_was_killed_goes_on(tmp_path: Path, step: int) -> None:
    path = old_file(tmp_path / "fuseboard.duckdb", 1)
    done = subprocess.run([sys.executable, "-c", DYING, str(path), str(step)], check=False)
    assert done.returncode == -signal.SIGKILL
    check_everything(path)


def test_an_older_file_is_not_changed_by_reading(tmp_path: Path) -> None:
    path = old_file(tmp_path / "fuseboard.duckdb", 1)
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match=r"older than the .*`fuseboard serve`.*make a copy"):
        open_at_rest(path)
    assert path.read_bytes() == before


def test_an_older_file_can_be_backed_up_before_the_upgrade(tmp_path: Path) -> None:
    path = old_file(tmp_path / "fuseboard.duckdb", 1)
    copy = tmp_path / "copy.duckdb"
    copy_at_rest(path, copy)
    assert verify(copy)["tool_calls"] == CALLS
    check_everything(path)
    check_everything(copy)


def test_a_newer_file_is_neither_opened_nor_backed_up_as_if_it_were_known(tmp_path: Path) -> None:
    path = old_file(tmp_path / "fuseboard.duckdb", 1)
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    before = path.read_bytes()
    for opening in (open_store, open_at_rest, verify):
        with pytest.raises(StoreVersionError, match=r"knows versions up to .*Upgrade fuseboard"):
            opening(path)
    assert path.read_bytes() == before


def test_rollups_of_before_name_regions_and_keep_their_faults_by_the_hour(tmp_path: Path) -> None:
    path = old_file(tmp_path / "f.duckdb", 8)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE tool_calls SET region = 'eu' WHERE minute(\"end\") % 3 = 0; "
            "UPDATE tool_calls SET args_hash = 'v1:0000000000000007', "
            'args_key = if(minute("end") % 20 = 0, NULL, 7); '
            "INSERT INTO durations_h (span, tool, region, step, weight) "
            "SELECT date_trunc('hour', \"end\"), tool, region, 1, weight FROM tool_calls"
        )
        named = [table for (table,) in connection.execute(
            "SELECT table_name FROM duckdb_columns() WHERE column_name = 'region' "
            "AND table_name IN (SELECT unnest($tables)) AND table_name NOT LIKE 'guards%' "
            "AND table_name <> 'breakers_d'",  # which do without, and always had one
            {"tables": [table for tables in TABLES.values() for table in tables]},
        ).fetchall()]  # fmt: skip
        for table in named:
            columns = connection.execute(
                "SELECT column_name, data_type FROM duckdb_columns() "
                "WHERE table_name = $table AND (NOT is_nullable OR column_name = 'span')",
                {"table": table},
            ).fetchall()  # fmt: skip
            values = ", ".join(
                "'x'" if kind == "VARCHAR" else f"CAST('2026-11-01' AS {kind})"
                if kind == "TIMESTAMP" else "1" for _, kind in columns
            )  # fmt: skip
            names = ", ".join(name for name, _ in columns)
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({values})")
    open_store(path, retention_days=None).close()
    with duckdb.connect(str(path), read_only=True) as connection:
        for table in named:
            query = f"SELECT count(*) FILTER (WHERE region IS NULL), count(*) FROM {table}"
            assert connection.execute(query).fetchone()[0] == 0, table  # type: ignore[index]
        faults, arguments, texts = (
            connection.execute(
                f"SELECT region, sum(weight) FROM {table} GROUP BY 1 ORDER BY 1"
            ).fetchall()
            for table in (
                "faults_h", "fault_arguments_h",
                "fault_arguments_h WHERE args_hash = 'v1:0000000000000007'",
            )
        )  # fmt: skip
        raw = connection.execute(
            "SELECT coalesce(region, 'unknown'), count(*) FILTER (WHERE outcome = 'error'), "
            "count(*) FILTER (WHERE outcome = 'error' AND args_key IS NULL) "
            "FROM tool_calls GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert [region for region, *_ in raw] == ["eu", "unknown"]
    assert faults == arguments == [(region, failed) for region, failed, _ in raw]
    assert texts == [(region, failed) for region, _, failed in raw if failed]

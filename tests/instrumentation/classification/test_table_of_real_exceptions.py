"""The table of real exceptions as a whole: large enough, each row told once, all classes met."""

from __future__ import annotations

from collections import Counter

from tests.instrumentation.classification import (
    test_real_http_clients,
    test_real_python_errors,
    test_real_redis,
    test_real_validation,
)
from tests.instrumentation.classification.expected import Row

from fuseboard import ErrorClass

MODULES = (
    test_real_http_clients,
    test_real_python_errors,
    test_real_redis,
    test_real_validation,
)
ROWS = [
    row
    for module in MODULES
    for table in vars(module).values()
    if isinstance(table, list) and table and isinstance(table[0], Row)
    for row in table
]


def test_the_table_is_large_and_says_nothing_twice() -> None:
    assert len(ROWS) >= 200
    names = Counter(row.name for row in ROWS)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_row_is_unclassified_and_every_class_is_met() -> None:
    met = Counter(row.verdict.error_class for row in ROWS)
    assert met.keys() == set(ErrorClass) - {ErrorClass.UNCLASSIFIED}
    assert min(met.values()) >= 15


def test_only_what_passes_is_retried_and_only_what_passes_says_when() -> None:
    for row in ROWS:
        is_transient = row.verdict.error_class is ErrorClass.L3_TRANSIENT
        assert row.verdict.retryable is is_transient, row.name
        assert row.verdict.retry_after is None or is_transient, row.name


def test_what_was_refused_as_wrong_or_forbidden_has_done_nothing() -> None:
    for row in ROWS:
        if row.verdict.error_class in (ErrorClass.L1_INPUT, ErrorClass.L2_ACCESS):
            assert not row.verdict.ambiguous, row.name

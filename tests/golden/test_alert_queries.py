"""The alert queries on a small fixed store, row by row.

Any other engine that takes over these queries must give the same rows. After a wanted change,
run with FUSEBOARD_UPDATE_GOLDEN=1 and read the difference.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "alerts"))

from made_calls import Seeded, at, beat, call, failed, moved  # noqa: E402

from fuseboard_alerts.catalogue import CATALOGUE  # noqa: E402
from fuseboard_alerts.targets.sql import question  # noqa: E402
from fuseboard_collector.store import open_store  # noqa: E402

GOLDEN = HERE / "alert_queries.json"
NOW = 3600
CONDITIONS = {rule.condition.query: rule.condition for rule in CATALOGUE}


def open_breaker(region: str, state: str = "open") -> dict[str, str]:
    return {
        "breaker": f"weather/{region}",
        "tool": "weather",
        "region": region,
        "state": state,
    }


def seed(seeded: Seeded) -> None:
    seeded.calls(
        [
            # On the edges of the five-minute window: out, in, in, out.
            call(NOW - 300, tool="edge", attempts=2),
            call(NOW - 299.999, tool="edge", attempts=2),
            call(NOW, tool="edge"),
            call(NOW + 0.001, tool="edge", attempts=2),
            # Every outcome and a few classes.
            call(3500, tool="mixed", **failed()),
            call(3501, tool="mixed", **failed(error_class="L1_input")),
            call(3502, tool="mixed", **failed(outcome="rejected", attempts=0)),
            call(3503, tool="mixed", outcome="degraded", error_class="L5_semantic", attempts=3),
            call(3504, tool="mixed", outcome="partial", error_class="L5_semantic"),
            call(3505, tool="mixed", outcome="cancelled", attempts=2),
            call(3506, tool="mixed", outcome="abandoned"),
            call(3507, tool="mixed", outcome="interrupted"),
            call(3508, tool="mixed", outcome="error", error_class=None),
            # Nothing known of where it ran; a foreign span that stands for ten calls.
            call(3510, tool="foreign", region=None, service=None, weight=10.0),
            call(3511, tool="foreign", region=None, service=None, **failed()),
            # Broken rows.
            call(3512, tool="broken", weight=float("nan")),
            call(3513, tool="broken", duration_seconds=float("nan")),
            call(3514, tool="broken", duration_seconds=float("inf")),
            # On the bound of slow calls.
            call(3520, tool="slow", duration_seconds=5.0),
            call(3521, tool="slow", duration_seconds=5.000001),
        ]
    )
    seeded.beats(
        [
            beat(3590, instance="a", open_=[open_breaker("eu-west")]),
            beat(3540, instance="vanished", open_=[open_breaker("us-east")]),
            beat(3595, instance="b", open_=[open_breaker("ap-southeast", "isolated")]),
            beat(3500, instance="dead", service="other", open_=[open_breaker("eu-west")]),
            beat(NOW + 5, instance="later", service="future"),
        ]
    )
    seeded.moves(
        [
            moved(3400, "closed", "open", instance="a"),
            moved(3300, "closed", "open", instance="vanished", breaker="weather/us-east",
                  region="us-east"),
            # Closed half a minute ago: still counts for a minute.
            moved(3570, "half_open", "closed", instance="b", tool="maps", breaker="maps/eu-west"),
            moved(3000, "half_open", "closed", instance="b", tool="hotels",
                  breaker="hotels/eu-west"),
            # A process that never sent a heartbeat.
            moved(3200, "closed", "open", instance="mute", service="quiet"),
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    store = open_store(tmp_path_factory.mktemp("store") / "fuseboard.duckdb", retention_days=None)
    try:
        seed(Seeded(store))
        found = {
            query: question(condition, at(NOW)).ask(store)
            for query, condition in sorted(CONDITIONS.items())
        }
    finally:
        store.close()
    document = json.dumps(found, indent=1, default=str)
    if os.environ.get("FUSEBOARD_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(document + "\n", encoding="utf-8")
    plain: dict[str, list[dict[str, Any]]] = json.loads(document)
    return plain


@pytest.mark.parametrize("query", sorted(CONDITIONS))
def test_answers_are_the_golden_ones(answers: dict[str, Any], query: str) -> None:
    assert answers[query] == json.loads(GOLDEN.read_text(encoding="utf-8"))[query]


def test_nothing_that_is_no_number_leaves_a_query(answers: dict[str, Any]) -> None:
    assert "NaN" not in json.dumps(answers)
    assert "Infinity" not in json.dumps(answers)

"""Each shipped alert at its real windows and holds, on a clock that the test turns."""

from __future__ import annotations

from made_calls import Seeded, beat, call, failed, judge, moved, only, run, states, steady

from fuseboard_alerts.evaluator import Evaluator

RETRY = "ToolCallRetryRateHigh/warning"
ERROR = "ToolCallErrorRatioHigh/warning"
CRITICAL = "ToolCallErrorRatioHigh/critical"
SLOW = "ToolCallSlow/warning"
SEMANTIC = "ToolCallSemanticErrorsHigh/warning"
BREAKER = "ToolCallBreakerOpen/critical"
ABSENT = "ToolCallTelemetryAbsent/warning"


def test_retry_rate_of_4_9_percent_is_silent(seeded: Seeded) -> None:
    seeded.calls(steady(0, 1800, 10, special=49, attempts=2))
    assert run(Evaluator(seeded.store), 307, 1800, step=45) == []


def test_retry_rate_of_5_1_percent_fires_holds_on_and_resolves(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 10, special=51, attempts=3), steady(900, 2400, 10))
    seen = only(run(judge(seeded, RETRY), 307, 2400), RETRY)
    assert [state for _, state in seen] == ["pending", "firing", "resolved"]
    pending, firing, resolved = (second for second, _ in seen)
    assert firing - pending == 120
    # Healthy from second 900: the ratio falls below 5 % within a minute, and 5 minutes are kept.
    assert 900 + 300 <= resolved <= 900 + 60 + 300 + 15


def test_retries_that_never_reached_the_tool_are_not_counted(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=500, outcome="rejected", attempts=0))
    assert only(run(judge(seeded, RETRY), 307, 900), RETRY) == []


def test_error_ratio_of_10_percent_is_a_warning_only(seeded: Seeded) -> None:
    seeded.calls(steady(0, 1200, 2, special=100, **failed()))
    seen = run(judge(seeded, ERROR, CRITICAL), 307, 1200)
    assert only(seen, ERROR) == [(307, "pending"), (607, "firing")]
    assert only(seen, CRITICAL) == []


def test_error_ratio_of_30_percent_is_critical_after_two_minutes(seeded: Seeded) -> None:
    seeded.calls(steady(0, 1200, 2, special=300, **failed(outcome="rejected")))
    assert only(run(judge(seeded, CRITICAL), 307, 1200), CRITICAL) == [
        (307, "pending"),
        (427, "firing"),
    ]


def test_faults_of_the_request_and_calls_ended_by_the_caller_are_no_errors(
    seeded: Seeded,
) -> None:
    seeded.calls(
        steady(0, 900, 2, special=500, **failed(error_class="L1_input")),
        steady(0, 900, 2, special=500, **failed(outcome="degraded")),
        # 4.8 % of what the caller let finish; cancelled calls must not thin it out further.
        steady(0, 900, 2, special=1000, outcome="cancelled"),
    )
    assert run(Evaluator(seeded.store), 307, 900) == []


def test_slow_share_counts_calls_over_five_seconds(seeded: Seeded) -> None:
    seeded.calls(
        steady(0, 2400, 2, special=20, duration_seconds=5.001),
        steady(0, 2400, 2, special=200, duration_seconds=5.0, tool="maps"),
    )
    seen = run(judge(seeded, SLOW), 907, 2400)
    assert only(seen, SLOW) == [(907, "pending"), (1207, "firing")]
    assert {one.tool for one in seen} == {"weather"}


def test_unusable_answers_count_in_every_outcome(seeded: Seeded) -> None:
    seeded.calls(
        steady(0, 5400, 1, special=4, outcome="partial", error_class="L5_semantic"),
        steady(0, 5400, 1, special=1000, outcome="ok"),
    )
    assert run(judge(seeded, SEMANTIC), 3607, 4200) == []
    seeded.calls(steady(0, 5400, 1, special=20, outcome="degraded", error_class="L5_semantic"))
    assert only(run(judge(seeded, SEMANTIC), 4207, 5400), SEMANTIC) == [
        (4207, "pending"),
        (4507, "firing"),
    ]


def test_breaker_whose_closing_got_lost_is_closed_by_the_next_heartbeat(seeded: Seeded) -> None:
    seeded.beats(beat(second) for second in range(0, 600, 15))
    seeded.moves([moved(61, "closed", "open")])
    # Open until the beat at 75 that does not list it; the last minute still counts.
    assert only(run(judge(seeded, BREAKER), 7, 600), BREAKER) == [
        (67, "pending"),
        (127, "inactive"),
    ]


def test_breaker_of_a_process_without_heartbeats_is_believed_by_its_transitions(
    seeded: Seeded,
) -> None:
    seeded.moves(
        [
            moved(60, "closed", "open"),
            moved(120, "open", "half_open"),
            moved(121, "half_open", "open"),
            moved(400, "open", "half_open"),
            moved(402, "half_open", "closed"),
        ]
    )
    assert only(run(judge(seeded, BREAKER), 7, 600), BREAKER) == [
        (67, "pending"),
        (187, "firing"),
        (472, "resolved"),
    ]


LISTED = {"breaker": "weather/eu-west", "tool": "weather", "region": "eu-west", "state": "open"}


def test_breaker_that_heartbeats_confirm_fires(seeded: Seeded) -> None:
    seeded.beats(
        beat(second, open_=[LISTED] if 60 <= second < 402 else []) for second in range(0, 1200, 15)
    )
    seeded.moves([moved(58, "closed", "open"), moved(402, "half_open", "closed")])
    seen = only(run(judge(seeded, BREAKER), 7, 1200), BREAKER)
    # Closed at 402; the last minute still counts, as in the rule for Prometheus.
    assert seen == [(67, "pending"), (187, "firing"), (472, "resolved")]


def test_breaker_known_from_heartbeats_alone_fires(seeded: Seeded) -> None:
    seeded.beats(beat(second, open_=[LISTED]) for second in range(0, 600, 15))
    assert states(run(judge(seeded, BREAKER), 7, 600), BREAKER) == ["pending", "firing"]


def test_isolated_breaker_is_another_matter(seeded: Seeded) -> None:
    isolated = {**LISTED, "state": "isolated"}
    seeded.beats(beat(second, open_=[isolated]) for second in range(0, 600, 15))
    assert run(Evaluator(seeded.store), 7, 600) == []


def test_breaker_of_a_vanished_process_is_no_data_not_resolved(seeded: Seeded) -> None:
    seeded.beats(beat(second, open_=[LISTED]) for second in range(0, 300, 15))
    seen = only(run(judge(seeded, BREAKER), 7, 900), BREAKER)
    assert [state for _, state in seen] == ["pending", "firing", "no_data"]
    assert seen[-1][0] <= 285 + 45 + 15


def test_breaker_of_a_vanished_process_resolves_while_another_of_the_job_lives(
    seeded: Seeded,
) -> None:
    seeded.beats(beat(second, open_=[LISTED]) for second in range(0, 300, 15))
    seeded.beats(beat(second, instance="b") for second in range(0, 900, 15))
    seeded.moves([moved(5, "closed", "open")])
    assert states(run(judge(seeded, BREAKER), 7, 900), BREAKER) == [
        "pending",
        "firing",
        "resolved",
    ]


def test_one_open_breaker_of_two_processes_is_enough(seeded: Seeded) -> None:
    seeded.beats(beat(second, open_=[LISTED]) for second in range(0, 600, 15))
    seeded.beats(beat(second, instance="b") for second in range(0, 600, 15))
    seeded.moves([moved(5, "closed", "open"), moved(6, "closed", "open", instance="b")])
    assert states(run(judge(seeded, BREAKER), 7, 600), BREAKER) == ["pending", "firing"]


def test_absent_telemetry_fires_after_the_lookback_and_fifteen_minutes(seeded: Seeded) -> None:
    seeded.beats(beat(second) for second in range(0, 600, 15))
    seeded.beats(beat(second) for second in range(3000, 3600, 15))
    seen = only(run(judge(seeded, ABSENT), 7, 3600), ABSENT)
    assert [state for _, state in seen] == ["pending", "firing", "resolved"]
    pending, firing, resolved = (second for second, _ in seen)
    assert 585 + 300 <= pending <= 585 + 315
    assert firing - pending == 900
    assert 3000 <= resolved <= 3015


def test_a_new_empty_store_raises_nothing(seeded: Seeded) -> None:
    assert run(Evaluator(seeded.store), 7, 7200, step=120) == []


def test_calls_without_service_or_region_have_names_for_that(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=1000, service=None, region=None, attempts=2))
    evaluator = Evaluator(seeded.store)
    (change, *_) = evaluator.tick(call(600)["end"])
    assert dict(change.instance.labels) == {
        "job": "unknown_service",
        "tool": "weather",
        "region": "unknown",
    }


def test_time_scale_divides_windows_and_holds(seeded: Seeded) -> None:
    seeded.calls(steady(0, 90, 10, special=200, attempts=2), steady(90, 240, 10))
    seen = only(run(judge(seeded, RETRY, time_scale=0.1), 31, 240, step=1), RETRY)
    assert [state for _, state in seen] == ["pending", "firing", "resolved"]
    pending, firing, resolved = (second for second, _ in seen)
    assert firing - pending == 12
    assert 90 + 30 <= resolved <= 90 + 30 + 30 + 1

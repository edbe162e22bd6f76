"""Muted alerts go on being evaluated; receivers hear of them when the mute has ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from made_calls import START, Seeded, at, call, judge, run, states, steady
from receivers import Inbox, Posts, wait_for

from fuseboard_alerts import memory as documents
from fuseboard_alerts.catalogue import rule_names
from fuseboard_alerts.evaluator import Evaluator
from fuseboard_alerts.memory import Held, Memory
from fuseboard_alerts.mutes import (
    LONGEST,
    LONGEST_REASON,
    Mute,
    MuteError,
    draft,
    ended,
    load,
    muted_by,
    save,
)
from fuseboard_alerts.notifiers import Webhook
from fuseboard_collector.errors import StoreError
from fuseboard_collector.store.retention import Keep

RETRY = "ToolCallRetryRateHigh/warning"
NAME = "ToolCallRetryRateHigh"
HOUR = timedelta(hours=1)
ID = "0" * 31 + "1"


def mute(begins: float, ends: float, **chosen: Any) -> Mute:
    return draft(NAME, "deploying", at(ends), at(begins), **chosen)


def retried(seeded: Seeded, until: float = 1800.0) -> None:
    """Make retries from the start on that fire at 120 s of the first evaluation."""
    seeded.calls(steady(0, until, 2, special=300, attempts=2), steady(until, until + 1800, 2))


def deliver(evaluator: Evaluator, is_met: Callable[[], object] | None = None) -> None:
    """Deliver what is queued, without an evaluation by the machine's clock."""
    for courier in evaluator._couriers:
        courier.start()
    try:
        wait_for(is_met or (lambda: not evaluator.status().receivers[0].waiting))
    finally:
        for courier in evaluator._couriers:
            courier.stop()


def without_mutes(seeded: Seeded) -> Any:
    """Return the store as it is while its mutes can't be read."""
    store = seeded.store

    def failing(name: str, parameters: Any = None) -> Any:
        if name == "alert_mutes":
            raise StoreError("locked")
        return store.query(name, parameters)

    return type("Away", (), {"query": staticmethod(failing), "execute": store.execute,
                             "insert": store.insert})()  # fmt: skip


def sent(seeded: Seeded, *mutes: Mute, until: float = 900, since: float = 307) -> list[Any]:
    """Return name and state of what a receiver gets with these mutes in the store."""
    for one in mutes:
        save(seeded.store, one)
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox])
    run(evaluator, since, until)
    deliver(evaluator)
    return [state for _, state in inbox.summary()]


def test_a_muted_alert_fires_in_the_history_and_nobody_is_told(seeded: Seeded) -> None:
    retried(seeded)
    assert sent(seeded, mute(300, 3600)) == []
    assert [row["state"] for row in seeded.history()] == ["pending", "firing"]


def test_a_real_webhook_hears_of_it_when_the_mute_has_ended(seeded: Seeded, posts: Posts) -> None:
    retried(seeded)
    save(seeded.store, mute(300, 607))
    evaluator = judge(seeded, RETRY, notifiers=[Webhook(posts.url)])
    run(evaluator, 307, 592)
    assert evaluator.status().receivers[0].waiting == 0
    run(evaluator, 607, 622)
    deliver(evaluator, lambda: posts.bodies)
    (body,) = posts.bodies
    (alert,) = body["alerts"]
    assert (alert["labels"]["alertname"], alert["state"]) == (NAME, "firing")
    # It starts when it fired, not when the mute ended.
    assert alert["startsAt"] == at(427).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_mute_that_comes_when_it_fires_already_ends_with_another_notification(
    seeded: Seeded, posts: Posts
) -> None:
    retried(seeded)
    evaluator = judge(seeded, RETRY, notifiers=[Webhook(posts.url)])
    run(evaluator, 307, 500)
    save(seeded.store, mute(500, 700))
    run(evaluator, 502, 900)
    deliver(evaluator, lambda: len(posts.bodies) == 2)
    first, second = (body["alerts"][0] for body in posts.bodies)
    assert first["state"] == second["state"] == "firing"
    assert first["eventId"] != second["eventId"]
    assert first["fingerprint"] == second["fingerprint"]


def test_what_was_queued_before_a_mute_is_delivered_and_nothing_after_it(seeded: Seeded) -> None:
    """As for a receiver that was away; it comes back under the mute, after a restart."""
    retried(seeded, until=600)
    run(judge(seeded, RETRY, notifiers=[Inbox()]), 307, 500)
    save(seeded.store, mute(500, 3600))
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox])
    changes = run(evaluator, 502, 2400)
    deliver(evaluator)
    assert inbox.summary() == [(NAME, "firing")]
    assert states(changes, RETRY) == ["resolved"]


def test_what_fired_and_ended_under_a_mute_is_never_told(seeded: Seeded) -> None:
    retried(seeded, until=600)
    assert sent(seeded, mute(300, 2400), until=2700) == []
    assert [row["state"] for row in seeded.history()] == ["pending", "firing", "resolved"]


def test_a_resolution_under_a_mute_is_told_afterwards_to_who_knew_of_the_alert(
    seeded: Seeded,
) -> None:
    retried(seeded, until=600)
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox])
    run(evaluator, 307, 500)
    save(seeded.store, mute(500, 2400))
    run(evaluator, 502, 2395)
    waiting = evaluator.status().receivers[0].waiting
    assert waiting == 1  # the firing from before
    run(evaluator, 2400, 2430)
    deliver(evaluator, lambda: len(inbox.messages) == 2)
    assert [state for _, state in inbox.summary()] == ["firing", "resolved"]
    over = inbox.messages[1]["alerts"][0]["endsAt"]
    assert over < at(2395).isoformat()  # when it was over, not when the mute was


def test_unmuting_tells_of_it_at_the_next_evaluation(seeded: Seeded) -> None:
    retried(seeded)
    one = mute(300, 7200)
    assert sent(seeded, one, ended(one, at(600)), until=599) == []
    assert load(seeded.store, at(601)) == []


def test_two_mutes_of_one_alert_hold_until_the_later_end(seeded: Seeded) -> None:
    retried(seeded)
    first, second = mute(300, 500), mute(301, 800, author="Ann")
    assert sent(seeded, first, second, until=795) == []
    found = muted_by(load(seeded.store, at(400)), at(400), NAME, "warning", {})
    assert found is not None
    assert found.author == "Ann"


def test_unmuting_one_of_two_leaves_the_other(seeded: Seeded) -> None:
    first, second = mute(300, 800), mute(300, 900)
    for one in (first, second, ended(first, at(400))):
        save(seeded.store, one)
    assert [one.id for one in load(seeded.store, at(401))] == [second.id]


def test_another_tool_region_or_severity_is_not_muted(seeded: Seeded) -> None:
    retried(seeded)
    others = [mute(300, 3600, tool="other"), mute(300, 3600, region="us-east")]
    assert sent(seeded, *others) == ["firing"]
    assert mute(0, 10, tool="weather").matches(NAME, "warning", {"tool": "weather"})
    assert not mute(0, 10, severity="warning").matches(NAME, "critical", {})
    assert not mute(0, 10, tool="weather").matches(NAME, "warning", {})


def test_a_mute_survives_a_restart_and_so_does_what_was_held_back(seeded: Seeded) -> None:
    retried(seeded)
    save(seeded.store, mute(300, 700))
    first = judge(seeded, RETRY, notifiers=[Inbox()])
    run(first, 307, 600)
    inbox = Inbox()
    second = judge(seeded, RETRY, notifiers=[inbox])
    changes = run(second, 607, 900)
    assert states(changes, RETRY) == []
    deliver(second, lambda: inbox.messages)
    assert inbox.summary() == [(NAME, "firing")]


def test_the_end_is_exclusive_and_the_begin_is_not() -> None:
    one = mute(10, 20)
    assert [one.is_on(at(second)) for second in (9.9, 10, 19.9, 20)] == [False, True, True, False]


def test_mutes_known_before_go_on_while_the_store_can_not_be_asked(seeded: Seeded) -> None:
    retried(seeded)
    save(seeded.store, mute(300, 3600))
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox])
    run(evaluator, 307, 320)
    evaluator._store = without_mutes(seeded)
    run(evaluator, 322, 600)
    assert evaluator.status().receivers[0].waiting == 0
    assert "locked" in str(evaluator.status().last_error)


def test_after_a_restart_nobody_is_told_of_what_was_muted_before_mutes_are_read(
    seeded: Seeded,
) -> None:
    retried(seeded)
    save(seeded.store, mute(300, 3600))
    run(judge(seeded, RETRY, notifiers=[Inbox()]), 307, 600)
    inbox = Inbox()
    second = judge(seeded, RETRY, notifiers=[inbox])
    readable, second._store = second._store, without_mutes(seeded)
    run(second, 607, 700)
    assert second.status().receivers[0].waiting == 0
    second._store = readable
    run(second, 707, 3590)  # resolved under the mute, too
    assert second.status().receivers[0].waiting == 0


def test_what_was_not_muted_is_told_though_mutes_were_never_read(seeded: Seeded) -> None:
    retried(seeded)
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox])
    evaluator._store = without_mutes(seeded)
    run(evaluator, 307, 600)
    deliver(evaluator)
    assert inbox.summary() == [(NAME, "firing")]


NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"alert": "ToolCallSlowly"}, "did you mean 'ToolCallSlow'"),
     ({"alert": "?"}, "there are ToolCall"),
     ({"reason": " \n "}, "needs a reason"),
     ({"reason": "x" * (LONGEST_REASON + 1)}, "has 501 characters"),
     ({"ends": NOW}, "in the past"),
     ({"ends": NOW - HOUR}, "in the past; it is 2026-01-05T12:00:00Z"),
     ({"ends": NOW + LONGEST + HOUR}, "more than 30 days away"),
     ({"ends": datetime(2026, 1, 6)}, "needs an offset"),
     ({"severity": "critical"}, "has no severity 'critical'"),
     ({"tool": ""}, "tool must have 1 to 512 characters"),
     ({"region": "x" * 513}, "not 513"),
     ({"tool": "a\0b"}, r"tool has a character that can't be shown, '\x00'"),
     ({"region": "eu\u202e"}, r"can't be shown, '\u202e'"),
     ({"tool": "\ud800"}, r"can't be shown, '\ud800'"),
     ({"reason": "\x1b\u202e"}, "needs a reason"),
     ({"mute_id": "../../etc"}, "is no id of a mute")],
)  # fmt: skip
def test_a_mute_that_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    wanted = {"alert": NAME, "reason": "why", "ends": NOW + HOUR, "now": NOW, **change}
    with pytest.raises(MuteError, match=re.escape(words)):
        draft(**wanted)


def test_what_can_not_be_seen_is_not_kept_in_words(seeded: Seeded) -> None:
    one = draft(NAME, "a\x1b[2J\u202eb\ud800 ü 停机 \U0001f469\u200d\U0001f680", at(60), at(0),
                tool="天气\u3000api", author="Ann\n\x1b[1m\u2066O'Neill")  # fmt: skip
    assert one.reason == "a [2J b ü 停机 \U0001f469\u200d\U0001f680"
    assert one.author == "Ann [1m O'Neill"
    save(seeded.store, one)
    assert load(seeded.store, at(1)) == [one]
    over = ended(one, at(2), "Bob\n\x1b]0;x\x07" + "y" * 200)
    assert over.author == ("Bob ]0;x " + "y" * 200)[:120]
    assert ended(one, at(2), "\x07").author == one.author


def test_a_reason_of_500_characters_with_markup_comes_back_as_it_was(seeded: Seeded) -> None:
    reason = ("<script>alert('x')</script> & \"so\" " * 20)[:LONGEST_REASON].strip()
    one = draft(NAME, reason, at(60), at(0), tool="<b>", author="O'Neill; DROP TABLE mutes")
    save(seeded.store, one)
    assert load(seeded.store, at(1)) == [one]


@pytest.mark.parametrize("name", rule_names())
def test_every_alert_can_be_muted(name: str) -> None:
    assert draft(name, "why", NOW + HOUR, NOW).matches(name, "warning", {"tool": "any"})


def test_the_newest_row_of_a_mute_counts_even_at_one_instant(seeded: Seeded) -> None:
    one = mute(0, 600)
    save(seeded.store, one)
    over = ended(one, at(0), "Bob")
    save(seeded.store, over)
    assert over.set_at > one.set_at
    assert load(seeded.store, at(1)) == []
    save(seeded.store, one)  # sent twice
    assert load(seeded.store, at(1)) == []


def test_retention_forgets_a_mute_whole_or_not_at_all(seeded: Seeded) -> None:
    """The last row of one ends earlier than its first: without it the mute would begin again."""
    now, day = datetime.now(UTC), timedelta(days=1)
    lasting = draft(NAME, "why", now + 5 * day, now - 20 * day)
    over = draft(NAME, "why", now - 10 * day, now - 20 * day)
    for one in (lasting, ended(lasting, now - 19 * day), over):
        save(seeded.store, one)
    seeded.calls([call(0)])  # there is something to expire
    seeded.store.apply_retention(Keep(days=7))
    with seeded.store._open_database().cursor() as cursor:
        left = cursor.execute("SELECT id, count(*) FROM mutes GROUP BY id").fetchall()
    assert left == [(lasting.id, 2)]
    assert load(seeded.store, now) == []


def test_memory_of_before_has_no_mutes_and_the_value_as_the_worst(seeded: Seeded) -> None:
    retried(seeded)
    run(judge(seeded, RETRY), 307, 500)
    text = seeded.store.query("alert_memory_load", {}).to_pylist()[0]["document"]
    old = json.loads(text)
    del old["held"]
    for item in old["instances"]:
        del item["peak"]
    restored = documents.load(json.dumps(old))
    assert restored.held == {}
    assert [one.worst for one in restored.instances.values()] == [
        one.value for one in restored.instances.values()
    ]


def test_what_is_held_back_is_written_and_read_back() -> None:
    key = (RETRY, (("job", "trip"), ("tool", "weather")))
    memory = Memory(held={key: Held(True, None, START), ("x", ()): Held(False)})
    assert documents.load(documents.dump(memory)).held == memory.held


def test_the_history_has_the_worst_value_of_each_alert(seeded: Seeded) -> None:
    """Half the calls are retried for a while, then some, then none."""
    seeded.calls(steady(0, 300, 2, special=500, attempts=2),
                 steady(300, 700, 2, special=100, attempts=2), steady(700, 2400, 2))  # fmt: skip
    run(judge(seeded, RETRY), 7, 2400)
    rows = {row["state"]: row for row in seeded.history()}
    assert rows["resolved"]["peak"] == pytest.approx(rows["pending"]["peak"], abs=0.2)
    assert rows["resolved"]["peak"] > 0.4
    assert rows["resolved"]["value"] < 0.05

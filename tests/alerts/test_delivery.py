"""HC-56: receivers that are slow, dead, picky or full never touch evaluation or each other."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from made_calls import START, Seeded, at, judge, run, states, steady
from receivers import Inbox, Posts, wait_for

from fuseboard.clock import SystemClock
from fuseboard.errors import ConfigurationError
from fuseboard_alerts.evaluator import Evaluator
from fuseboard_alerts.notifiers import Courier, RefusedError, TemporaryDeliveryError, Webhook
from fuseboard_alerts.notifiers.delivery import Patience

RETRY = "ToolCallRetryRateHigh/warning"
QUICK = Patience(first=0.01, longest=0.05)


class Shifted(SystemClock):
    """The machine's clock, set to some seconds after the start of the made-up calls."""

    def __init__(self, seconds: float) -> None:
        self._offset = round(START.timestamp() * 1e9 + seconds * 1e9) - time.time_ns()

    def time_ns(self) -> int:  # type: ignore[override]
        return time.time_ns() + self._offset


def test_hc_56_a_receiver_that_hangs_delays_nobody_and_gets_it_later(seeded: Seeded) -> None:
    # Retries of a scaled window and hold: fires about 2 s after the evaluator starts.
    seeded.calls(steady(0, 400, 20, special=300, attempts=2))
    hanging, working = Inbox("hanging"), Inbox("working")
    hanging.gate.clear()
    evaluator = judge(
        seeded,
        RETRY,
        notifiers=[hanging, working],
        time_scale=0.01,
        interval=0.2,
        clock=Shifted(100),
    )
    evaluator.start()
    try:
        wait_for(lambda: working.messages)
        wait_for(lambda: hanging.tries == 1)
        assert hanging.messages == []
        before = evaluator.status().ticked_at
        wait_for(lambda: evaluator.status().ticked_at != before, deadline=5)
        assert evaluator.status().receivers[0].waiting >= 1
        hanging.gate.set()
        wait_for(lambda: hanging.messages)
        assert hanging.summary()[0] == working.summary()[0] == ("ToolCallRetryRateHigh", "firing")
    finally:
        hanging.gate.set()
        evaluator.stop()


def test_hc_56_stopping_does_not_wait_for_a_receiver_that_hangs(seeded: Seeded) -> None:
    hanging = Inbox()
    hanging.gate.clear()
    courier = Courier(hanging, on_settled=lambda: None)
    courier.start()
    courier.offer([{"n": 1}])
    wait_for(lambda: hanging.tries)
    begun = time.monotonic()
    courier.stop(timeout=0.1)
    assert time.monotonic() - begun < 10
    assert courier.waiting() == [{"n": 1}]
    hanging.gate.set()


def test_hc_56_order_is_kept_over_failures_and_failures_are_counted() -> None:
    inbox = Inbox()
    inbox.is_failing = True
    courier = Courier(inbox, on_settled=lambda: None, patience=QUICK)
    courier.offer([{"n": number, "alerts": []} for number in range(3)])
    courier.start()
    wait_for(lambda: courier.status().failures >= 2)
    inbox.is_failing = False
    wait_for(lambda: courier.status().delivered == 3)
    courier.stop()
    assert [message["n"] for message in inbox.messages] == [0, 1, 2]
    status = courier.status()
    assert (status.waiting, status.dropped, status.last_error) == (0, 0, "told to fail")


def test_hc_56_a_full_queue_loses_its_oldest_and_counts_it() -> None:
    courier = Courier(Inbox(), on_settled=lambda: None, capacity=2)
    courier.offer([{"n": 1}, {"n": 2}, {"n": 3}])
    assert courier.waiting() == [{"n": 2}, {"n": 3}]
    assert courier.status().dropped == 1


def test_hc_56_a_refused_message_makes_way_for_the_next(posts: Posts) -> None:
    posts.answers = [400]
    courier = Courier(Webhook(posts.url), on_settled=lambda: None, patience=QUICK)
    courier.offer([{"n": 1}, {"n": 2}])
    courier.start()
    wait_for(lambda: posts.bodies)
    courier.stop()
    assert posts.bodies == [{"n": 2}]
    assert courier.status().dropped == 1
    assert "answered 400" in str(courier.status().last_error)


def test_hc_56_an_unexpected_fault_of_a_receiver_is_tried_again() -> None:
    class Odd(Inbox):
        def send(self, message: dict[str, Any]) -> None:
            self.tries += 1
            if self.tries == 1:
                raise ZeroDivisionError("secret in here")
            self.messages.append(message)

    odd = Odd()
    courier = Courier(odd, on_settled=lambda: None, patience=QUICK)
    courier.offer([{"n": 1}])
    courier.start()
    wait_for(lambda: odd.messages)
    courier.stop()
    assert courier.status().last_error == "inbox: ZeroDivisionError"


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_answers_that_pass_are_tried_again(posts: Posts, status: int) -> None:
    posts.answers = [status]
    with pytest.raises(TemporaryDeliveryError, match=f"answered {status}"):
        Webhook(posts.url).send({})


@pytest.mark.parametrize("status", [302, 400, 401, 404, 410])
def test_answers_that_stay_are_given_up(posts: Posts, status: int) -> None:
    posts.answers = [status]
    with pytest.raises(RefusedError, match=f"answered {status}"):
        Webhook(posts.url).send({})
    assert len(posts.raw) == 1, "a redirect is not followed"


def test_a_dead_port_is_tried_again(free_port: int) -> None:
    with pytest.raises(TemporaryDeliveryError, match="ConnectionRefusedError"):
        Webhook(f"http://127.0.0.1:{free_port}").send({})


def test_end_to_end_a_web_receiver_gets_firing_before_resolved(
    seeded: Seeded, posts: Posts
) -> None:
    seeded.calls(
        steady(0, 600, 2, special=300, attempts=2, error_message="CANARY in a message"),
        steady(600, 1500, 2),
    )
    evaluator = judge(
        seeded,
        RETRY,
        notifiers=[Webhook(posts.url + "/hook/token?key=1")],
        external_url="http://board:8501",
        runbook_base="https://wiki/runbooks/",
    )
    assert states(run(evaluator, 7, 1500), RETRY) == ["pending", "firing", "resolved"]
    evaluator = judge(
        seeded, RETRY, notifiers=[Webhook(posts.url + "/hook/token?key=1")], interval=3600
    )
    evaluator.start()
    wait_for(lambda: len(posts.bodies) == 2)
    evaluator.stop()

    firing, resolved = posts.bodies
    assert (firing["status"], resolved["status"]) == ("firing", "resolved")
    assert firing["version"] == "4"
    assert firing["groupKey"] == '{}:{alertname="ToolCallRetryRateHigh"}'
    assert firing["externalURL"] == "http://board:8501"
    (alert,) = firing["alerts"]
    assert alert["labels"] == {
        "alertname": "ToolCallRetryRateHigh",
        "job": "trip",
        "region": "eu-west",
        "severity": "warning",
        "tool": "weather",
    }
    assert alert["annotations"]["runbook_url"] == "https://wiki/runbooks/ToolCallRetryRateHigh.md"
    assert "of the calls of weather in eu-west (job trip)" in alert["annotations"]["description"]
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"
    (ended,) = resolved["alerts"]
    assert ended["fingerprint"] == alert["fingerprint"]
    assert ended["startsAt"] == alert["startsAt"] < ended["endsAt"]
    assert ended["eventId"] != alert["eventId"]
    assert posts.paths == ["/hook/token?key=1"] * 2
    assert all(headers["Content-Type"] == "application/json" for headers in posts.headers)


def test_no_data_reads_differently_from_resolved(seeded: Seeded) -> None:
    seeded.calls(steady(0, 600, 2, special=300, attempts=2))
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox], time_scale=1.0)
    assert states(run(evaluator, 7, 1800), RETRY) == ["pending", "firing", "no_data"]
    again = judge(seeded, RETRY, notifiers=[inbox], interval=3600, clock=Shifted(1800))
    again.start()
    wait_for(lambda: len(inbox.messages) == 2)
    again.stop()
    message = inbox.messages[1]
    assert message["status"] == message["alerts"][0]["status"] == "firing"
    assert message["alerts"][0]["state"] == "no_data"
    assert message["alerts"][0]["annotations"]["summary"].startswith("No data: ")


def test_a_message_that_is_built_again_has_the_same_event_id(seeded: Seeded) -> None:
    seeded.calls(steady(0, 1200, 2, special=300, attempts=2))
    ids = []
    for _ in range(2):
        seeded.store.execute("alert_memory_save", {"saved_at": at(0), "document": "{}"})
        evaluator = judge(seeded, RETRY, notifiers=[Inbox()])
        run(evaluator, 307, 600)
        (courier,) = evaluator._couriers
        ids += [courier.waiting()[0]["alerts"][0]["eventId"]]
    assert ids[0] == ids[1]


def test_no_message_argument_or_address_of_a_call_leaves(seeded: Seeded, posts: Posts) -> None:
    canary = "CANARY-7f3a"
    fields = {
        "error_message": f"{canary} token",
        "error_type": canary,
        "cause_type": canary,
        "args_hash": canary,
        "upstream": canary,
        "session": canary,
        "agent": canary,
        "call_id": canary,
    }
    seeded.calls(
        steady(0, 900, 2, special=1000, outcome="error", error_class="L5_semantic", attempts=3,
               duration_seconds=9.0, **fields)
    )  # fmt: skip
    evaluator = Evaluator(seeded.store, [Webhook(posts.url)], interval=3600, clock=Shifted(900))
    run(evaluator, 7, 900, step=30)
    evaluator.start()
    wait_for(lambda: len({body["alerts"][0]["labels"]["alertname"] for body in posts.bodies}) >= 4)
    evaluator.stop()
    assert all(canary.encode() not in body for body in posts.raw)
    document = seeded.store.query("alert_memory_load", {}).to_pylist()[0]["document"]
    assert canary not in document


def test_secrets_of_an_address_are_in_no_name_log_or_error(
    posts: Posts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = posts.url.replace("http://", "http://user:s3cret@") + "/T0KEN?key=QU3RY"
    webhook = Webhook(address)
    posts.answers = [500, 403]
    courier = Courier(webhook, on_settled=lambda: None, patience=QUICK)
    courier.offer([{"n": 1}])
    courier.start()
    wait_for(lambda: courier.status().dropped)
    courier.stop()
    told = f"{webhook!r} {webhook.name} {courier.status()} {caplog.text}"
    assert "answered 500" in told
    assert "answered 403" in told
    assert not [secret for secret in ("s3cret", "T0KEN", "QU3RY", "user") if secret in told]
    assert posts.headers[0]["Authorization"] == "Basic dXNlcjpzM2NyZXQ="
    assert posts.paths[0] == "/T0KEN?key=QU3RY"


@pytest.mark.parametrize(
    "address",
    ["", "hooks.example/x", "ftp://host/x", "http://", "http://host:99999/", "http://host/a b"],
)
def test_addresses_that_can_not_work_are_refused_at_once(address: str) -> None:
    with pytest.raises(ConfigurationError, match="url must be http://"):
        Webhook(address)


def test_a_refused_address_does_not_show_its_secret() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Webhook("ftp://user:s3cret@host/T0KEN")
    assert "s3cret" not in str(raised.value)
    assert "T0KEN" not in str(raised.value)


@pytest.mark.parametrize("deadline", [0, -1, 301, float("nan")])
def test_deadlines_have_a_range(deadline: float) -> None:
    with pytest.raises(ConfigurationError, match="deadline="):
        Webhook("http://host", deadline=deadline)


@pytest.mark.parametrize(
    "settings", [{"time_scale": 0}, {"time_scale": 11}, {"interval": 0}, {"interval": 3601}]
)
def test_settings_of_the_evaluator_have_a_range(seeded: Seeded, settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ConfigurationError, match=f"{name}="):
        Evaluator(seeded.store, **settings)


def test_the_same_receiver_twice_is_refused(seeded: Seeded) -> None:
    with pytest.raises(ConfigurationError, match="twice"):
        Evaluator(seeded.store, [Webhook("http://a/x"), Webhook("http://a/x")])

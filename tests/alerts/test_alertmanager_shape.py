"""Our messages next to those that a real Alertmanager sends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from live_prometheus import wait_for
from made_calls import at
from receivers import Posts

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.notifiers.message import Change, Wording, fingerprint, messages, timestamp
from fuseboard_alerts.state import Instance, State

RETRY = next(rule for rule in CATALOGUE if rule.name == "ToolCallRetryRateHigh")


def change(tool: str = "weather", state: State = State.FIRING) -> Change:
    labels = (("job", "trip"), ("tool", tool), ("region", "eu-west"))
    instance = Instance(labels, State.FIRING, at(0), at(100), 0.25, fired_at=at(60))
    return Change(RETRY, instance, state, at(100))


@pytest.mark.prometheus
def test_alertmanager_sends_what_we_send(
    alertmanager_binary: Path, tmp_path: Path, free_port: int, posts: Posts
) -> None:
    (ours,) = messages([change()], Wording())
    config = {
        "route": {"receiver": "hook", "group_wait": "0s", "group_by": ["alertname"]},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": posts.url}]}],
    }
    (tmp_path / "am.yml").write_text(json.dumps(config))
    address = f"http://127.0.0.1:{free_port}"
    process = subprocess.Popen(
        [
            str(alertmanager_binary),
            f"--config.file={tmp_path / 'am.yml'}",
            f"--storage.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{free_port}",
            "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: urlopen(f"{address}/-/ready").status == 200, "Alertmanager to start")
        alert = ours["alerts"][0]
        given = [{"labels": alert["labels"], "annotations": alert["annotations"]}]
        body = json.dumps(given).encode()
        urlopen(Request(f"{address}/api/v2/alerts", body, {"Content-Type": "application/json"}))
        wait_for(lambda: bool(posts.bodies), "the webhook")
    finally:
        process.kill()
        process.wait()
    theirs = posts.bodies[0]
    assert theirs.keys() == ours.keys()
    assert set(theirs["alerts"][0]) == set(ours["alerts"][0]) - {"state", "eventId"}
    same = ("version", "status", "groupKey", "groupLabels", "commonLabels", "commonAnnotations")
    assert {key: theirs[key] for key in same} == {key: ours[key] for key in same}
    for key in ("status", "labels", "annotations", "fingerprint", "endsAt"):
        assert theirs["alerts"][0][key] == ours["alerts"][0][key], key


def test_an_alert_starts_when_it_fires_as_prometheus_has_it() -> None:
    (ours,) = messages([change()], Wording())
    assert ours["alerts"][0]["startsAt"] == timestamp(at(60))


def test_one_message_per_alert_name_and_state() -> None:
    made = messages([change("b"), change("a"), change("c", State.RESOLVED)], Wording())
    assert [(one["status"], len(one["alerts"])) for one in made] == [("firing", 2), ("resolved", 1)]
    firing: dict[str, Any] = made[0]
    assert [alert["labels"]["tool"] for alert in firing["alerts"]] == ["a", "b"]
    assert "tool" not in firing["commonLabels"]
    assert firing["commonLabels"]["region"] == "eu-west"


def test_a_time_scale_is_said_in_each_message() -> None:
    (scaled,) = messages([change()], Wording(time_scale=0.1))
    assert "× 0.1" in scaled["commonAnnotations"]["time_scale"]
    (plain,) = messages([change()], Wording())
    assert "time_scale" not in plain["commonAnnotations"]


def test_fingerprint_does_not_depend_on_the_order_of_labels() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})
    assert fingerprint({"a": "1"}) != fingerprint({"a": "2"})

from __future__ import annotations

import time
from pathlib import Path

from fuseboard_server.demo.model import Model
from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.services import CITIES

HOTELS: dict[str, object] = {"city": "Oslo", "nights": 2, "region": "us-east"}


def make(folder: Path, faults: str = "", seed: int = 1) -> Model:
    path = folder / "scenario.toml"
    path.write_text("length = 1e6\nloop_from = 0\n" + faults)
    plan = Plan(str(path), time.time(), 4.0, seed, str(folder), "http://127.0.0.1:1")
    return Model(plan, plan.load_scenario(), "us-east")


def fault(kind: str) -> str:
    return f'[[fault]]\ntool = "hotels"\nfrom = 0\nuntil = 1e6\nkind = "{kind}"\n'


def test_trips_repeat_with_the_seed_and_differ_without(tmp_path: Path) -> None:
    def trips(seed: int) -> list[object]:
        model = make(tmp_path, seed=seed)
        return [model.next_trip() for _ in range(20)]

    assert trips(1) == trips(1)
    assert trips(1) != trips(2)


def test_a_trip_leads_elsewhere(tmp_path: Path) -> None:
    model = make(tmp_path)
    for trip in (model.next_trip() for _ in range(50)):
        assert trip.origin != trip.city
        assert trip.city in CITIES
        assert 1 <= trip.nights <= 30


def test_pauses_keep_the_rate_above_two_calls_a_second(tmp_path: Path) -> None:
    from fuseboard_server.demo.agent import SECONDS_BETWEEN_TRIPS

    model = make(tmp_path)
    pauses = [model.pause(SECONDS_BETWEEN_TRIPS) for _ in range(500)]
    assert sum(pauses) / len(pauses) < 0.45


def test_a_model_without_faults_gives_the_right_arguments(tmp_path: Path) -> None:
    assert make(tmp_path).arguments("hotels", HOTELS) == HOTELS


def test_a_faulty_model_invents_an_argument(tmp_path: Path) -> None:
    wrong = make(tmp_path, fault("bad_arguments")).arguments("hotels", HOTELS)
    assert wrong == {**HOTELS, "nights": 0}


def test_a_faulty_model_forgets_an_argument(tmp_path: Path) -> None:
    wrong = make(tmp_path, fault("missing_argument")).arguments("hotels", HOTELS)
    assert wrong == {"city": "Oslo", "region": "us-east"}

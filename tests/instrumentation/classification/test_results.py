"""What a returned value gives away, and what it is spared."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import mcp_types
import pytest
import requests

import fuseboard
from fuseboard import ConfigurationError, ErrorClass, Verdict
from fuseboard.classification import is_empty, judge_exception, judge_result
from fuseboard.classification.user import forget_classifiers
from fuseboard.record import Fault

L1, L2, L3, L4, L5 = list(ErrorClass)[:5]


@dataclass
class Batch:
    rows: list[int] = field(default_factory=list)
    partial_failures: list[dict[str, str]] = field(default_factory=list)


@dataclass
class Order:
    status: int = 503
    error: str = "none of your business"


def response_of_requests(status: int) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    return response


FAULTY: list[tuple[Any, ErrorClass, str, int | None]] = [
    ({"ok": False}, L5, "error_packet", None),
    ({"ok": False, "error_code": "SOLD_OUT", "message": "m"}, L5, "SOLD_OUT", None),
    ({"ok": False, "status": 503}, L3, "error_packet", 503),
    ({"ok": False, "http_status": 401}, L2, "error_packet", 401),
    ({"ok": False, "error": {"code": 404, "message": "m"}}, L1, "error_packet", 404),
    ({"ok": False, "error_code": "rate_limit_exceeded"}, L3, "rate_limit_exceeded", None),
    ({"ok": False, "status": 429, "error_code": "insufficient_quota"},
     L2, "insufficient_quota", 429),
    ({"status": 429, "error": {"code": "insufficient_quota", "message": "pay"}},
     L2, "insufficient_quota", 429),
    ({"ok": False, "error_class": "L4_persistent"}, L4, "error_packet", None),
    ({"error": {"code": "invalid_api_key", "message": "m"}}, L2, "invalid_api_key", None),
    ({"error": {"message": "m"}}, L5, "error_packet", None),
    ({"error": "no such city"}, L5, "error_packet", None),
    ({"error": "down", "status_code": 502, "data": []}, L3, "error_packet", 502),
    ({"isError": True, "content": []}, L5, "tool_error", None),
    ({"is_error": True, "structured_content": {"ok": False, "status": 503}},
     L3, "mcp_is_error", 503),
    (mcp_types.CallToolResult(content=[], is_error=True), L5, "tool_error", None),
    (mcp_types.CallToolResult(content=[], is_error=True, structured_content={"code": 403}),
     L2, "mcp_is_error", 403),
    (httpx.Response(503), L3, "503", 503),
    (response_of_requests(404), L1, "404", 404),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "cls", "code", "status"), FAULTY, ids=[str(n) for n in range(len(FAULTY))]
)
def test_faults_in_values(value: Any, cls: ErrorClass, code: str, status: int | None) -> None:
    finding = judge_result(value, 0.0)
    assert finding is not None
    assert finding.partial_failures is None
    assert (finding.verdict.error_class, finding.code) == (cls, code)
    assert finding.verdict.http_status == status
    assert finding.verdict.retryable is (cls is L3)


SOUND = [
    None,
    "",
    "error: 503",
    0,
    [],
    {},
    {"ok": True},
    {"ok": True, "error": {"code": 500}},
    {"ok": 0},
    {"error": None, "rows": []},
    {"error": "", "rows": []},
    {"error": "typo in row 7", "rows": [1]},
    {"error": 0.01, "mean": 7},
    {"status": 503, "city": "Oslo"},
    {"isError": False},
    {"partial_failures": []},
    {"partial_failures": "none"},
    Order(),
    Batch(),
    httpx.Response(200),
    httpx.Response(302),
    mcp_types.CallToolResult(content=[]),
]


@pytest.mark.parametrize("value", SOUND, ids=[str(n) for n in range(len(SOUND))])
def test_sound_values(value: Any) -> None:
    assert judge_result(value, 0.0) is None


@pytest.mark.parametrize(
    "value", [{"partial_failures": [1, 2]}, Batch(partial_failures=[{"item": "a"}, {"item": "b"}])]
)
def test_partial_failures(value: Any) -> None:
    finding = judge_result(value, 0.0)
    assert finding is not None
    assert finding.partial_failures == 2
    assert finding.verdict.error_class is L5


def test_retry_after_of_a_returned_response() -> None:
    finding = judge_result(httpx.Response(429, headers={"retry-after": "3"}), 0.0)
    assert finding is not None
    assert finding.verdict.retry_after == 3


def test_one_shot_results_are_not_consumed() -> None:
    touched = []

    class Lazy:
        def __iter__(self) -> Iterator[int]:
            touched.append("iter")
            return iter(())

        @property
        def rows(self) -> None:
            touched.append("rows")

        def __getattr__(self, name: str) -> Any:
            touched.append(name)
            raise AttributeError(name)

    assert judge_result(Lazy(), 0.0) is None
    assert touched == []


@pytest.mark.parametrize("value", [None, "", " \n", b"", [], {}, set(), ()])
def test_empty(value: Any) -> None:
    assert is_empty(value)


@pytest.mark.parametrize("value", [0, False, "x", [None], {"a": None}, object()])
def test_not_empty(value: Any) -> None:
    assert not is_empty(value)


# --- Users' classifiers ---------------------------------------------------------------------


@pytest.fixture
def _forget() -> Iterator[None]:
    yield
    forget_classifiers()


class HouseError(Exception):
    pass


@pytest.mark.usefixtures("_forget")
def test_users_come_first_and_the_newest_of_them() -> None:
    @fuseboard.classifier
    def old(error: BaseException) -> ErrorClass | None:
        return L2 if isinstance(error, KeyError) else None

    assert verdict_of(KeyError()) == Verdict(L2, "old", False)

    @fuseboard.classifier()
    def new(error: BaseException) -> Verdict | None:
        return Verdict(L3, "mine", True) if isinstance(error, KeyError) else None

    assert verdict_of(KeyError()).classifier_id == "mine"
    assert verdict_of(IndexError()).classifier_id == "python_defect_matcher"


@pytest.mark.usefixtures("_forget")
def test_users_are_asked_about_causes_and_leaves() -> None:
    @fuseboard.classifier
    def house(error: BaseException) -> ErrorClass | None:
        return L3 if isinstance(error, HouseError) else None

    wrapped = RuntimeError()
    wrapped.__cause__ = HouseError()
    assert verdict_of(wrapped).classifier_id == "house"
    assert verdict_of(ExceptionGroup("g", [HouseError()])).retryable


@pytest.mark.parametrize("client", ["httpx", "httpx2"])
def test_responses_of_httpx_and_its_successor(client: str) -> None:
    module = pytest.importorskip(client)
    answer = module.Response(503, headers={"retry-after": "4"})
    finding = judge_result(answer, 0.0)
    assert finding is not None
    assert (finding.verdict.http_status, finding.verdict.retry_after) == (503, 4.0)
    assert judge_result(module.Response(200), 0.0) is None


@pytest.mark.usefixtures("_forget")
def test_users_judge_results() -> None:
    @fuseboard.classifier(on="result")
    def stale(value: object) -> ErrorClass | None:
        return L5 if value == "stale" else None

    finding = judge_result("stale", 0.0)
    assert finding is not None
    assert finding.verdict.classifier_id == "stale"
    assert judge_result("fresh", 0.0) is None


@pytest.mark.usefixtures("_forget")
def test_entry_points_are_loaded_behind_decorators(monkeypatch: pytest.MonkeyPatch) -> None:
    def packaged(error: BaseException) -> ErrorClass | None:
        return L2 if isinstance(error, HouseError) else None

    class Point:
        name = "packaged"

        def load(self) -> Any:
            return packaged

    class BrokenPoint(Point):
        name = "broken"

        def load(self) -> Any:
            raise ImportError(self.name)

    def entry_points(*, group: str) -> list[Point]:
        assert group == "fuseboard.classifiers"
        return [BrokenPoint(), Point()]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    forget_classifiers()
    assert verdict_of(HouseError()).classifier_id == "packaged"
    fuseboard.classifier(lambda error: L4 if isinstance(error, HouseError) else None)
    assert verdict_of(HouseError()).error_class is L4
    fuseboard.guard.forget_faults()


def packaged_module(names: list[str]) -> Callable[..., list[Any]]:
    """Return an ``entry_points`` that gives a module with two classifiers in it."""

    class Point:
        name = "packaged"

        def load(self) -> Any:
            names.append("loaded")

            @fuseboard.classifier(on="result")
            def packaged_result(value: object) -> ErrorClass | None:
                return L5 if value == "stale" else None

            @fuseboard.classifier
            def packaged_error(error: BaseException) -> ErrorClass | None:
                return L2 if isinstance(error, HouseError) else None

            return types.ModuleType("packaged")

    return lambda *, group: [Point()]


@pytest.mark.usefixtures("_forget")
def test_result_classifiers_of_packages_act_on_the_first_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads: list[str] = []
    monkeypatch.setattr("importlib.metadata.entry_points", packaged_module(loads))
    forget_classifiers()
    finding = judge_result("stale", 0.0)
    assert finding is not None
    assert finding.verdict.classifier_id == "packaged_result"
    assert judge_result("fresh", 0.0) is None
    assert judge_result(None, 0.0) is None
    assert loads == ["loaded"]


@pytest.mark.usefixtures("_forget")
def test_what_the_application_registers_comes_before_what_a_module_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", packaged_module([]))
    forget_classifiers()
    fuseboard.classifier(lambda error: L4 if isinstance(error, HouseError) else None)
    assert verdict_of(HouseError()).error_class is L4

    @fuseboard.classifier(on="result")
    def own(value: object) -> ErrorClass | None:
        return L1 if value == "stale" else None

    finding = judge_result("stale", 0.0)
    assert finding is not None
    assert finding.verdict.classifier_id == "own"


@pytest.mark.usefixtures("_forget")
def test_init_loads_the_classifiers_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    monkeypatch.setattr("importlib.metadata.entry_points", packaged_module(loads))
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    forget_classifiers()
    fuseboard.init(service="x")
    fuseboard.shutdown()
    assert loads == ["loaded"]


def test_wrong_registrations_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="on='both'"):
        fuseboard.classifier(on="both")  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="must be a function"):
        fuseboard.classifier(7)  # type: ignore[call-overload]


def verdict_of(error: BaseException) -> Verdict:
    fault = judge_exception(error, 0.0)
    assert isinstance(fault, Fault)
    return fault.verdict

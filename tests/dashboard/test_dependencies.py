"""The page on dependencies: the graph, its folding, impact, shared fates, and what they lead to."""

from __future__ import annotations

import base64
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta

import pandas as pd
import pytest

from fuseboard_collector.store import Batch, BreakerTransition, Store, ToolCall
from fuseboard_dashboard.charts import dependencies as charts
from fuseboard_dashboard.dependencies import Fate, Graph, graph, held, shared_fates

from .conftest import SINCE, at, html, open_page, serve, stat

Ask = Callable[..., list[dict[str, object]]]
NODE = re.compile(
    r'data-testid="fb-node" data-column="(\w+)" data-name="([^"]*)" data-folded="(\d+)" '
    r'data-level="(\w+)" data-calls="([\d.]+)" data-errors="([\d.]+)"'
)


def call(tool: str, second: float, upstream: str | None = "db", **more: object) -> ToolCall:
    values = {"agent": "planner", "service": "svc", "session": "s1", "region": "eu", **more}
    return ToolCall(tool, end=at(second), upstream=upstream, **values)  # type: ignore[arg-type]


def failing(tool: str, second: float, **more: object) -> ToolCall:
    return call(tool, second, outcome="error", error_class="L3_transient", **more)


def world() -> Batch:
    """Return calls of two tools that fail at once at ``db``, and of three others."""
    calls = [
        *(call("read", 60 + i, session=f"s{i}") for i in range(6)),
        *(failing("read", 300 + i, session="s9") for i in range(3)),
        *(call("write", 60 + i, agent=None) for i in range(4)),
        *(failing("write", 305 + i, session="s8") for i in range(2)),
        call("write", 320, outcome="degraded", error_class="L3_transient", fallback_tool="queue"),
        call("write", 330, outcome="error", error_class="L1_input"),
        call("mail", 400, "smtp", outcome="cancelled"),
        *(call("mail", 401 + i, "smtp") for i in range(2)),
        *(call("think", 500 + i, None) for i in range(5)),
    ]  # fmt: skip
    opened = BreakerTransition(at(310), "write/eu/db", "write", "closed", "open", region="eu",
                               upstream="db", service="svc")  # fmt: skip
    return Batch(calls=calls, transitions=[opened])


@pytest.fixture
def filled(empty_store: Store) -> Store:
    empty_store.append(world()).result(30)
    return empty_store


@pytest.fixture
def store(filled: Store) -> Store:  # so that ``ask`` reads these calls
    return filled


def test_calls_between_callers_tools_and_upstreams(ask: Ask) -> None:
    names = ("caller", "tool", "upstream", "calls", "judged", "errors", "degraded")
    assert [tuple(row[name] for name in names) for row in ask("page_dependencies")] == [
        ("planner", "read", "db", 9, 9, 3, 0), ("planner", "write", "db", 4, 4, 2, 1),
        ("planner", "think", None, 5, 5, 0, 0), ("svc", "write", "db", 4, 4, 0, 0),
        ("planner", "mail", "smtp", 3, 2, 0, 0),
    ]  # fmt: skip
    rows = ask("page_dependencies", classes=["L2_access"])
    assert {(row["tool"], row["errors"]) for row in rows} == {
        ("read", 0), ("write", 0), ("think", 0), ("mail", 0),
    }  # fmt: skip


def test_what_depends_on_an_upstream(ask: Ask) -> None:
    (row,) = ask("page_upstream_reach", upstream="db")
    assert row == {
        "tools": 2, "callers": 2, "sessions": 8, "failing_sessions": 2, "calls": 17, "judged": 17,
        "errors": 5,
    }  # fmt: skip
    read, write = ask("page_upstream_tools", upstream="db")
    assert (read["tool"], read["sessions"], read["fallbacks"]) == ("read", 7, None)
    assert (write["tool"], write["errors"], write["degraded"]) == ("write", 2, 1)
    assert (write["sessions"], write["failing_sessions"], write["fallbacks"]) == (2, 1, "queue")
    (row,) = ask("page_upstream_reach", upstream="nobody")
    assert (row["tools"], row["calls"]) == (0, 0)


def test_calls_of_an_upstream_are_all_or_those_that_failed(ask: Ask) -> None:
    rows = ask("page_upstream_calls", upstream="db", kind="faults")
    assert [r["tool"] for r in rows] == ["write", "write", "read", "read", "read"]
    assert all(r["error_class"] == "L3_transient" for r in rows)
    rows = ask("page_upstream_calls", upstream="db")
    assert len(rows) == 17
    assert rows == sorted(rows, key=lambda r: r["end"], reverse=True)  # type: ignore[arg-type, return-value]


def test_tools_that_fail_at_once_share_a_fate(ask: Ask) -> None:
    series = pd.DataFrame(ask("page_upstream_series"))
    assert shared_fates(series) == [Fate("db", "eu", ("read", "write"), 1, 1)]


@pytest.mark.parametrize(
    ("failures", "together"),
    [
        ({0: "ab", 1: "ab", 2: "a"}, 2),
        ({0: "ab", 1: "a", 2: "b"}, None),  # mostly apart
        ({0: "a", 1: "a"}, None),  # one tool alone
    ],
)
def test_a_fate_is_shared_in_half_of_the_failing_stretches_or_more(
    failures: dict[int, str], together: int | None
) -> None:
    rows = [
        {"bucket": SINCE + timedelta(minutes=minute), "upstream": "u", "region": "eu",
         "tool": tool, "judged": 10.0, "errors": 5.0}
        for minute, tools in failures.items() for tool in tools
    ]  # fmt: skip
    found = shared_fates(pd.DataFrame(rows))
    assert [fate.together for fate in found] == ([] if together is None else [together])


@pytest.mark.parametrize(("errors", "judged"), [(1.0, 2.0), (4.0, 100.0)])
def test_a_blip_or_a_small_share_is_no_failing(errors: float, judged: float) -> None:
    rows = [{"bucket": SINCE, "upstream": "u", "region": "eu", "tool": tool, "judged": judged,
             "errors": errors} for tool in "ab"]  # fmt: skip
    assert shared_fates(pd.DataFrame(rows)) == []


def test_the_same_tools_failing_in_other_regions_share_none() -> None:
    rows = [{"bucket": SINCE, "upstream": "u", "region": region, "tool": tool, "judged": 10.0,
             "errors": 5.0} for region, tool in (("eu", "a"), ("us", "b"))]  # fmt: skip
    assert shared_fates(pd.DataFrame(rows)) == []


def random_frame(seed: int, tools: int) -> pd.DataFrame:
    dice = random.Random(seed)
    rows = [
        {"caller": dice.choice([None, *(f"agent {i}" for i in range(25))]), "tool": f"tool {i}",
         "upstream": dice.choice([None, *(f"up {i}" for i in range(40))]),
         "calls": (calls := dice.randint(1, 500)), "judged": calls,
         "errors": dice.randint(0, calls) if dice.random() < 0.1 else 0}
        for i in range(tools)
    ]  # fmt: skip
    return pd.DataFrame(rows).astype({"calls": float, "judged": float, "errors": float})


@pytest.mark.parametrize("tools", [1, 5, 300])
def test_a_graph_keeps_every_call_on_both_sides(tools: int) -> None:
    frame = random_frame(tools, tools)
    made = graph(frame)
    for column in ("caller", "tool", "upstream"):
        mine = [made.nodes[place] for place in made.column(column)]
        assert sum(node.calls for node in mine) == frame["calls"].sum()
        assert sum(node.errors for node in mine) == frame["errors"].sum()
        named = sum(node.name is not None for node in mine)
        assert named + sum(node.folded for node in mine) == frame[column].nunique()
    sides: dict[str, float] = defaultdict(float)
    flow: Counter[int] = Counter()
    for edge in made.edges:
        sides[made.nodes[edge.source].column] += edge.calls
        flow[edge.source] += edge.calls  # type: ignore[assignment]
    assert set(sides.values()) == {frame["calls"].sum()}
    assert all(flow[place] == node.calls for place, node in enumerate(made.nodes)
               if node.column != "upstream")  # fmt: skip


def test_the_worst_and_the_busiest_keep_their_names() -> None:
    frame = random_frame(3, 500)
    frame.loc[499, ["calls", "judged", "errors"]] = [90_000.0, 90_000.0, 0.0]
    frame.loc[498, ["calls", "judged", "errors"]] = [600.0, 600.0, 600.0]
    frame.loc[497, ["calls", "judged", "errors"]] = [1.0, 1.0, 0.0]
    made = graph(frame, held={("tool", "tool 497")})
    nodes = {node.name: node for node in made.nodes if node.column == "tool"}
    assert {"tool 499", "tool 498", "tool 497"} <= set(nodes)
    assert [nodes[f"tool {n}"].level for n in (499, 498, 497)] == ["fine", "failing", "tripped"]
    assert len(nodes) == 19
    assert nodes[None].folded == 482
    assert {column: len(made.column(column)) for column in ("caller", "upstream")} == {
        "caller": 12, "upstream": 16,
    }  # fmt: skip


def test_a_name_that_looks_like_a_key_is_itself() -> None:
    frame = random_frame(1, 3).assign(caller=["o", "u", "n"])
    callers = {node.name for node in graph(frame).nodes if node.column == "caller"}
    assert callers == {"o", "u", "n"}


def test_a_graph_of_nothing_is_empty() -> None:
    assert graph(random_frame(1, 1).head(0)) == Graph((), ())
    assert "fb-graph" in charts.draw(Graph((), ()), lambda node: "")


def test_ten_thousand_tools_are_drawn_as_few() -> None:
    frame = random_frame(5, 10_000)
    drawn = charts.draw(graph(frame), lambda node: "x")
    assert drawn.count('data-testid="fb-node"') == 12 + 19 + 16
    assert len(drawn) < 200_000
    assert "9982 other tools" in drawn


def test_breakers_that_are_not_closed_hold_their_tool_and_upstream(ask: Ask) -> None:
    assert held(pd.DataFrame(ask("page_breaker_states"))) == {("tool", "write"), ("upstream", "db")}


def test_the_page_draws_nodes_with_their_numbers(filled: Store) -> None:
    serve(filled)
    app = open_page("dependencies")
    assert not app.exception
    assert "fb-problem" not in html(app)
    assert sorted(NODE.findall(html(app))) == [
        ("caller", "planner", "0", "failing", "21.0", "5.0"),
        ("caller", "svc", "0", "fine", "4.0", "0.0"),
        ("tool", "mail", "0", "fine", "3.0", "0.0"),
        ("tool", "read", "0", "failing", "9.0", "3.0"),
        ("tool", "think", "0", "fine", "5.0", "0.0"),
        ("tool", "write", "0", "tripped", "8.0", "2.0"),
        ("upstream", "", "0", "fine", "5.0", "0.0"),
        ("upstream", "db", "0", "tripped", "17.0", "5.0"),
        ("upstream", "smtp", "0", "fine", "3.0", "0.0"),
    ]


def test_edges_in_trouble_differ_in_more_than_colour(filled: Store) -> None:
    serve(filled)
    markup = html(open_page("dependencies"))
    (source,) = re.findall(
        r'class="fb-edges" alt="" src="data:image/svg\+xml;base64,([^"]+)"', markup
    )
    svg = base64.b64decode(source).decode()
    assert svg.count('stroke-dasharray="12 4"') == 4  # planner → read, write; read, write → db
    assert svg.count('stroke-dasharray="none"') == 5
    assert sorted(re.findall(r'class="fb-edge-share"[^>]*>([^<]+)<', markup)) == [
        "✖ 25.0 %", "✖ 33.3 %", "✖ 33.3 %", "✖ 50.0 %",
    ]  # fmt: skip


def test_the_page_tells_shared_fate_and_tools_without_upstream(filled: Store) -> None:
    serve(filled)
    markup = html(open_page("dependencies"))
    assert 'data-testid="fb-fate" data-upstream="db" data-region="eu" data-together="1"' in markup
    assert "Shared fate: read, write fail at the same time in eu" in markup
    assert "1 tool tells no upstream (20.0 % of calls): think." in markup
    assert "@fuseboard.tool(upstream=&quot;search-api&quot;)" in markup


def test_impact_is_of_the_worst_upstream_until_another_is_chosen(filled: Store) -> None:
    serve(filled)
    app = open_page("dependencies")
    assert app.selectbox(key="fb_pick_upstream").value == "db"
    assert (stat(app, "impact-tools"), stat(app, "impact-callers")) == (2, 2)
    assert (stat(app, "impact-sessions"), stat(app, "impact-calls")) == (8, 17)
    assert stat(app, "impact-error-ratio") == pytest.approx(5 / 17)
    assert stat(app, "impact-explains") == 1
    assert "write/eu/db" in html(app)
    assert "queue" in html(app)
    app.selectbox(key="fb_pick_upstream").select("smtp").run()
    assert app.query_params["upstream"] == "smtp"
    assert stat(app, "impact-calls") == 3
    assert stat(app, "impact-explains") == 0
    assert "No breaker is known here." in html(app)
    assert len(app.dataframe[0].value) == 3  # none failed, so all


def test_nodes_lead_on_and_a_caller_narrows_the_picture(filled: Store) -> None:
    serve(filled)
    markup = html(open_page("dependencies"))
    for href in ("tool?tool=read", "dependencies?upstream=smtp", "dependencies?caller=svc",
                 "errors?tool=read"):  # fmt: skip
        assert f'href="{href}"' in markup, href
    app = open_page("dependencies", {"caller": "svc"})
    assert {(column, name) for column, name, *_ in NODE.findall(html(app))} == {
        ("caller", "svc"), ("tool", "write"), ("upstream", "db"),
    }  # fmt: skip
    assert "Only calls of svc." in html(app)


@pytest.mark.parametrize("query", [{"upstream": "gone"}, {"caller": "gone"}])
def test_a_stale_link_shows_the_whole_picture(filled: Store, query: dict[str, str]) -> None:
    serve(filled)
    app = open_page("dependencies", query)
    assert "fb-problem" not in html(app)
    assert "fb-narrowed" not in html(app)
    assert stat(app, "impact-calls") == 17


def test_calls_without_any_upstream_say_what_sets_it(empty_store: Store) -> None:
    empty_store.append(Batch(calls=[ToolCall("bare", end=at(60))])).result(30)
    serve(empty_store)
    app = open_page("dependencies")
    assert "fb-problem" not in html(app)
    assert "1 tool tells no upstream (100 % of calls): bare." in html(app)
    assert "impact-calls" not in html(app)

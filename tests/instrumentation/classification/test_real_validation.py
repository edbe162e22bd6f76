"""Exceptions of validating libraries and of MCP, and wrappers of which the cause decides."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import jsonschema
import pydantic
import pydantic_core
import pytest
import tenacity
from mcp.shared.exceptions import MCPError
from tests.instrumentation.classification.expected import AMBIGUOUS, SAFE, Row, each, l1, l2, l3, l4
from tests.instrumentation.classification.places import Places, patience_for

import fuseboard
from fuseboard import Policy, Retry
from fuseboard.classification.inspecting import qualified_name


class Trip(pydantic.BaseModel):
    nights: int


class ToolError(Exception):
    """What a tool makes of everything."""


def raise_(error: BaseException) -> None:
    raise error


def get(url: str) -> None:
    httpx.get(url, trust_env=False, timeout=patience_for(url)).raise_for_status()


def wrapped(url: str) -> None:
    try:
        get(url)
    except httpx.HTTPError as error:
        raise ToolError("the weather could not be had") from error


def wrapped_twice(url: str) -> None:
    try:
        wrapped(url)
    except ToolError as error:
        raise RuntimeError("no answer") from error


def retried(url: str) -> None:
    tenacity.Retrying(stop=tenacity.stop_after_attempt(2))(get, url)


def grouped(*urls: str) -> None:
    async def fetch(url: str) -> None:
        await asyncio.to_thread(get, url)

    async def gather() -> None:
        results = await asyncio.gather(*map(fetch, urls), return_exceptions=True)
        raise ExceptionGroup("several", [e for e in results if isinstance(e, Exception)])

    asyncio.run(gather())


def unserializable(places: Places) -> None:
    pydantic_core.to_json(object())


VALIDATION = "pydantic_core._pydantic_core.ValidationError"
MCP = qualified_name(MCPError)
ROWS = [
    Row("pydantic: wrong type", lambda at: Trip(nights="many"),  # type: ignore[arg-type]
        VALIDATION, l1("schema_validation_matcher")),
    Row("pydantic: missing", lambda at: Trip(), VALIDATION,  # type: ignore[call-arg]
        l1("schema_validation_matcher")),
    Row("pydantic: wrong arguments", lambda at: pydantic.validate_call(get)(),  # type: ignore[call-arg]
        VALIDATION, l1("schema_validation_matcher")),
    Row("pydantic: no JSON of it", unserializable,
        "pydantic_core._pydantic_core.PydanticSerializationError",
        l4("python_defect_matcher", AMBIGUOUS)),
    Row("jsonschema: missing", lambda at: jsonschema.validate({}, {"required": ["city"]}),
        "jsonschema.exceptions.ValidationError", l1("schema_validation_matcher")),
    Row("jsonschema: no schema", lambda at: jsonschema.validate({}, {"type": 1}),
        "jsonschema.exceptions.SchemaError", l4("schema_matcher")),
    Row("mcp: wrong parameters", lambda at: raise_(MCPError(-32602, "?")), MCP,
        l1("json_rpc_matcher")),
    Row("mcp: no such method", lambda at: raise_(MCPError(-32601, "?")), MCP,
        l1("json_rpc_matcher")),
    Row("mcp: internal error", lambda at: raise_(MCPError(-32603, "?")), MCP,
        l3("json_rpc_matcher", AMBIGUOUS)),
    Row("mcp: time-out", lambda at: raise_(MCPError(-32001, "?")), MCP,
        l3("json_rpc_matcher", AMBIGUOUS)),
    Row("mcp: connection closed", lambda at: raise_(MCPError(-32000, "?")), MCP,
        l3("json_rpc_matcher", AMBIGUOUS)),
    Row("mcp: the status of its server", lambda at: raise_(MCPError(-32603, "?", {"status": 403})),
        MCP, l2("http_4xx_matcher", 403)),
    Row("wrapped: 503", lambda at: wrapped(at.http(503)), qualified_name(ToolError),
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("wrapped twice: 429", lambda at: wrapped_twice(at.http(429, headers={"retry-after": "3"})),
        "RuntimeError", l3("http_4xx_matcher", SAFE, 429, 3.0)),
    Row("wrapped: untrusted certificate", lambda at: wrapped(at.untrusted),
        qualified_name(ToolError), l4("certificate_matcher")),
    Row("tenacity: tried until 503", lambda at: retried(at.http(503)), "tenacity.RetryError",
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("tenacity: tried until 401", lambda at: retried(at.http(401)), "tenacity.RetryError",
        l2("http_4xx_matcher", 401)),
    Row("group: 503 and refused", lambda at: grouped(at.http(503), at.refused), "ExceptionGroup",
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
]  # fmt: skip


@each(ROWS)
def test_hc_20_exceptions_of_validation_and_wrappers(row: Row, places: Places) -> None:
    row.check(places)


@pytest.mark.parametrize(("url", "attempts"), [("refused", 2), ("hanging", 1)])
def test_what_is_said_drives_the_retry(url: str, attempts: int, places: Places) -> None:
    made: list[Any] = []

    @fuseboard.tool(policy=Policy(retry=Retry(attempts=2, wait_initial=0)))
    def weather() -> None:
        made.append(1)
        wrapped(getattr(places, url))

    with pytest.raises(ToolError):
        weather()
    assert len(made) == attempts

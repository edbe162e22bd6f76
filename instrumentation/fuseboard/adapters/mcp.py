"""MCP's Python SDK, 1 and 2: calls that clients make, and tools that servers run.

Both sides of a call are calls of their own, in one trace: the client's tells how long the agent
waited and names the server as upstream, the server's tells what the tool itself did.
"""

from __future__ import annotations

import json
import re
import weakref
from importlib.metadata import version
from typing import Any, Final

from opentelemetry.propagate import inject

from fuseboard import guard
from fuseboard.adapters import mcp_server
from fuseboard.adapters.findings import checked, report
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import UNKNOWN_TOOL, FrameworkCalls, OnError, Policies
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.judging import JudgedEnd, ReturnedFault
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import BINDING, ResultFinding
from fuseboard.classification.inspecting import probe
from fuseboard.classification.results import MCP_IS_ERROR
from fuseboard.conventions import Outcome

PACKAGE: Final = Package("mcp", extra="mcp", oldest="1.12", below="3")

_OWNER: Final = "instrument_mcp"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:
    if invocation.is_remote or invocation.is_known is None:
        return error_result(packet)
    # What a server's tool raises becomes a result in the place where that is made.
    if is_first():
        from mcp.server.fastmcp.exceptions import ToolError
    else:
        from mcp.server.mcpserver.exceptions import ToolError
    raise ToolError(words_of(packet))


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
# A server that wants the user to visit an address first.
_URL_ELICITATION: Final = -32042
# The SDKs' own words for calls that they refuse; a tool's words decide nothing.
_UNKNOWN: Final = re.compile(r"Unknown tool: ")
_MISFIT: Final = re.compile(
    r"Input validation error: |(Error executing tool .{1,128}: )?\d+ validation errors? for "
    r"(\w+Arguments|call\[.*\])\n"
)
_servers: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def instrument_mcp(
    policy: Policies = None,
    *,
    on_error: OnError = "raise",
    client: bool = True,
    server: bool = True,
) -> None:
    """Record the tool calls that MCP clients make and those that MCP servers run.

    A policy guards a tool on either side. A second call changes policies and sides.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a result with ``isError``.
        client: Whether calls of clients are recorded.
        server: Whether calls that servers get are recorded.

    Raises:
        ConfigurationError: If mcp is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    targets = client_targets(_CALLS) if client else []
    if server:
        targets += mcp_server.targets(_CALLS, judged, as_result, is_first())
    _INSTALLATION.remove()  # a side that is left out now may have been wrapped before
    _INSTALLATION.install(targets)


def uninstrument_mcp() -> None:
    """Let MCP's clients and servers work as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def is_first() -> bool:
    """Return whether version 1 of the SDK is installed."""
    return version("mcp").startswith("1.")


def client_targets(calls: FrameworkCalls) -> list[Target]:
    """Return what the calls of a client pass through.

    Args:
        calls: Where they are recorded.
    """

    async def call_tool(original: Any, session: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if calls.is_recorded(name, is_remote=True):
            result = await original(session, name, *args, **kwargs)
            report(result, _finding)
            return result

        async def proceed() -> Any:
            return await _request(original, session, name, *args, **kwargs)

        arguments = args[0] if args else kwargs.get("arguments")
        known = _is_listed(session, name)
        invocation = Invocation(
            name, arguments, upstream=_server_of(session), is_known=known, is_remote=True
        )
        return as_result(await calls.run_async(invocation, proceed))

    module = "mcp.client.session"
    found = [Target(module, "ClientSession.call_tool", call_tool)]
    if is_first():
        found.append(Target(module, "ClientSession.initialize", _initialize))
        found.append(Target(module, "ClientSession.send_request", _send_request))
    return found


async def _request(original: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return judged(await original(*args, **kwargs))
    except Exception as error:
        if probe(probe(error, "error"), "code") == _URL_ELICITATION:
            raise JudgedEnd(Outcome.INTERRUPTED, error=error) from error
        raise


def judged(result: Any) -> Any:
    """Return a tool's result, unless it reports an error or asks the user something.

    Args:
        result: What the tool or the server returned.

    Raises:
        ReturnedFault: If it reports an error.
        JudgedEnd: If it asks for more input.
    """
    if type(result).__name__ == "InputRequiredResult":
        raise JudgedEnd(Outcome.INTERRUPTED, value=result)
    inner = result.root if type(result).__name__ == "ServerResult" else result
    try:
        checked(inner, _finding)
    except ReturnedFault as fault:
        raise ReturnedFault(fault.finding, result) from None
    return result


def as_result(value: Any) -> Any:
    """Return a result of a tool; what a fallback gave becomes one.

    Args:
        value: A result of the SDK's, or anything else.
    """
    if hasattr(value, "model_dump"):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    structured = {"structuredContent": value} if type(value) is dict else {}
    return _result(text, **structured)


def error_result(packet: ErrorPacket) -> Any:
    """Return a packet as a result that reports an error.

    Args:
        packet: The packet; what is for engineers stays here.
    """
    told = {key: value for key, value in packet.items() if key != "debug_info"}
    return _result(words_of(packet), isError=True, structuredContent=told)


def _result(text: str, **fields: Any) -> Any:
    import mcp.types

    content = [{"type": "text", "text": text}]
    return mcp.types.CallToolResult.model_validate({"content": content, **fields})


def _finding(result: Any) -> ResultFinding | None:
    """Find the error in a result: the SDK's own refusals, else what the tool says."""
    if probe(result, "isError") is not True and probe(result, "is_error") is not True:
        return None
    text = _text_of(result)
    if _UNKNOWN.match(text):
        return ResultFinding(UNKNOWN_TOOL, "unknown_tool", text)
    if _MISFIT.match(text):
        return ResultFinding(BINDING, "invalid_arguments", text)
    return ResultFinding(MCP_IS_ERROR, "tool_error", text)


def _text_of(result: Any) -> str:
    content = probe(result, "content")
    text = probe(content[0], "text") if isinstance(content, list) and content else None
    return text if isinstance(text, str) else ""


def _is_listed(session: Any, name: str) -> bool | None:
    """Tell whether the server has such a tool; None if it was never asked for its tools."""
    listed = getattr(session, "_tool_output_schemas", None)
    return name in listed if listed else None


def _server_of(session: Any) -> str | None:
    info = getattr(session, "server_info", None)
    name = getattr(info, "name", None)
    return name if isinstance(name, str) else _servers.get(session)


async def _initialize(original: Any, session: Any, *args: Any, **kwargs: Any) -> Any:
    result = await original(session, *args, **kwargs)
    _servers[session] = result.serverInfo.name
    return result


async def _send_request(
    original: Any, session: Any, request: Any, *args: Any, **kwargs: Any
) -> Any:
    """Tell a server which trace the call is part of; version 2 of the SDK does so itself."""
    try:
        _add_trace(request.root)
    except Exception as fault:
        guard.swallow("adding the trace to a request of MCP", fault)
    return await original(session, request, *args, **kwargs)


def _add_trace(request: Any) -> None:
    carrier: dict[str, str] = {}
    if request.method == "tools/call":
        inject(carrier)
    if carrier:
        import mcp.types

        kind: Any = getattr(mcp.types.RequestParams, "Meta")  # noqa: B009 - not in version 2
        told = request.params.meta
        given = told.model_dump(exclude_none=True) if told is not None else {}
        request.params.meta = kind.model_validate({**carrier, **given})

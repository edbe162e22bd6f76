"""Exceptions of agents' clients that carry no HTTP status, by qualified name; and our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fuseboard.classification.http import as_status, judge_status
from fuseboard.classification.http_clients import LOST
from fuseboard.classification.inspecting import names_of, probe
from fuseboard.classification.naming import Named
from fuseboard.classification.network import TIMEOUT
from fuseboard.classification.python import MALFORMED
from fuseboard.classification.results import CONTRACT, EMPTY
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    semantic_fault,
    transient_fault,
)
from fuseboard.conventions import ErrorClass, Origin
from fuseboard.errors import (
    AbandonedThreadsError,
    AttemptTimeoutError,
    BudgetExhaustedError,
    CircuitOpenError,
    InvalidResultError,
    LimitExceededError,
    RepeatedCallError,
    SessionBudgetError,
)
from fuseboard.record import Verdict

CIRCUIT_OPEN: Final = "circuit_open"
BUDGET: Final = persistent_fault("budget_exhausted", ambiguous=True, origin=Origin.ORCHESTRATION)
# Rejected before anything was sent, unlike a call that was cut short.
OVER: Final = persistent_fault("budget_exhausted", origin=Origin.ORCHESTRATION)
SESSION_BUDGET: Final = persistent_fault("session_budget_exhausted", origin=Origin.ORCHESTRATION)
REPEATED: Final = replace(input_fault("repeated_call"), origin=Origin.ORCHESTRATION)
THREADS: Final = transient_fault(
    "abandoned_threads_limit", ambiguous=False, origin=Origin.ORCHESTRATION
)
LIMIT: Final = transient_fault("limit_exceeded", ambiguous=False, origin=Origin.ORCHESTRATION)
ATTEMPT_TIMEOUT: Final = transient_fault("attempt_timeout", ambiguous=True)

_CREDENTIALS: Final = access_fault("credentials_matcher")
_MODEL: Final = Verdict(
    ErrorClass.L5_SEMANTIC, "model_output_matcher", False, ambiguous=True, origin=Origin.MODEL
)

_EXACT: Final = Named(
    {
        "openai.LengthFinishReasonError": _MODEL,
        "openai.ContentFilterFinishReasonError": _MODEL,
        "openai.SubjectTokenProviderError": _CREDENTIALS,
        "anthropic.CredentialsError": _CREDENTIALS,
        "google.auth.exceptions.GoogleAuthError": _CREDENTIALS,
        "google.auth.exceptions.TransportError": None,
        "google.auth.exceptions.TimeoutError": TIMEOUT,
        "google.genai.errors.UnknownFunctionCallArgumentError": _MODEL,
        "grpc.FutureTimeoutError": TIMEOUT,
        "langchain_core.exceptions.OutputParserException": _MODEL,
        "pydantic_ai.exceptions.UnexpectedModelBehavior": _MODEL,
        "pydantic_ai.exceptions.ToolFailed": semantic_fault("framework_tool_error"),
        "fastmcp.exceptions.NotFoundError": input_fault("unknown_tool_matcher"),
    }
)
# Names that only give the direction; what they were raised from says more.
_GENERAL: Final = Named(
    {
        "openai.APITimeoutError": TIMEOUT,
        "openai.APIConnectionError": LOST,
        "openai.APIResponseValidationError": MALFORMED,
        "anthropic.APITimeoutError": TIMEOUT,
        "anthropic.APIConnectionError": LOST,
        "anthropic.APIResponseValidationError": MALFORMED,
        "google.auth.exceptions.TransportError": LOST,
        "google.genai.errors.UnknownApiResponseError": MALFORMED,
        "google.api_core.exceptions.RetryError": TIMEOUT,
        "fastmcp.exceptions.ToolError": semantic_fault("mcp_tool_error"),
        "mcp.server.fastmcp.exceptions.ToolError": semantic_fault("mcp_tool_error"),
        "mcp.server.mcpserver.exceptions.ToolError": semantic_fault("mcp_tool_error"),
        "langchain_core.tools.base.ToolException": semantic_fault("framework_tool_error"),
    }
)

_MCP_ERRORS: Final = frozenset({"mcp.shared.exceptions.MCPError", "mcp.shared.exceptions.McpError"})
# JSON-RPC codes, as MCP and its SDK use them.
_JSON_RPC: Final[Mapping[int, Verdict]] = {
    -32700: input_fault("json_rpc_matcher"),
    -32600: input_fault("json_rpc_matcher"),
    -32601: input_fault("json_rpc_matcher"),
    -32602: input_fault("json_rpc_matcher"),
    -32002: input_fault("json_rpc_matcher"),
    -32603: transient_fault("json_rpc_matcher", ambiguous=True),
    -32001: transient_fault("json_rpc_matcher", ambiguous=True),
    -32000: transient_fault("json_rpc_matcher", ambiguous=True),
    -32021: persistent_fault("json_rpc_matcher"),
    -32022: persistent_fault("json_rpc_matcher"),
}


def classify_own(error: BaseException) -> Verdict | None:
    """Judge an exception that a policy of ours raised, here or in a tool within the tool."""
    cls = type(error)
    if issubclass(cls, CircuitOpenError):
        return _judge_open_circuit(error, ErrorClass.UNCLASSIFIED)
    if issubclass(cls, AttemptTimeoutError):
        return ATTEMPT_TIMEOUT
    if issubclass(cls, BudgetExhaustedError):
        return _judge_session(error) if issubclass(cls, SessionBudgetError) else BUDGET
    if issubclass(cls, RepeatedCallError):
        return REPEATED
    if issubclass(cls, InvalidResultError):
        return CONTRACT if probe(error, "problems") else EMPTY
    if issubclass(cls, LimitExceededError):
        return replace(LIMIT, retry_after=_seconds(probe(error, "retry_after")))
    return THREADS if issubclass(cls, AbandonedThreadsError) else None


def classify_sdk(error: BaseException) -> Verdict | None:
    """Judge an exception of a known client that has no HTTP status, or return None."""
    names = names_of(type(error))
    if not _MCP_ERRORS.isdisjoint(names):
        return _judge_mcp(error)
    if "google.auth.exceptions.GoogleAuthError" in names and probe(error, "retryable") is True:
        return None  # the token could not be fetched now; the cause says why
    return _EXACT.of(type(error))


def classify_sdk_connection(error: BaseException) -> Verdict | None:
    """Judge an exception of a known client that only gives the direction, or return None."""
    if "pybreaker.CircuitBreakerError" in names_of(type(error)):
        # The one that opens a breaker is raised from what made it open, which says more.
        return _judge_open_circuit(error, ErrorClass.L3_TRANSIENT)
    return _GENERAL.of(type(error))


def _judge_open_circuit(error: BaseException, default: ErrorClass) -> Verdict:
    found = probe(error, "error_class")
    error_class = found if isinstance(found, ErrorClass) else default
    retry_after = probe(error, "retry_after")
    return Verdict(
        error_class,
        CIRCUIT_OPEN,
        False,
        origin=Origin.ORCHESTRATION,
        retry_after=_seconds(retry_after),
    )


def _judge_session(error: BaseException) -> Verdict:
    return OVER if probe(error, "kind") in ("turn", "session") else SESSION_BUDGET


def _seconds(found: object) -> float | None:
    return found if isinstance(found, float) else None


def _judge_mcp(error: BaseException) -> Verdict | None:
    details = probe(error, "error")
    data = probe(details, "data")
    if isinstance(data, Mapping):
        for name in ("httpStatus", "http_status", "status"):
            status = as_status(data.get(name))
            if status is not None and status >= 400:
                return judge_status(status)
    code = probe(details, "code")
    if not isinstance(code, int):
        return None
    status = as_status(code)
    if status is not None and status >= 400:
        return judge_status(status)
    return _JSON_RPC.get(code)

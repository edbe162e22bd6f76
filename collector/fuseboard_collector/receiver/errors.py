"""Refusals of a request, each with the HTTP status and gRPC code that OTLP asks for."""

from __future__ import annotations

from fuseboard_collector.errors import CollectorError

INVALID_ARGUMENT = 3
RESOURCE_EXHAUSTED = 8
UNAVAILABLE = 14


class RefusedError(CollectorError):
    """The request is answered with an error status.

    Attributes:
        status: HTTP status.
        code: gRPC code for the ``google.rpc.Status`` of the answer.
        retry_after: Seconds after which the client should try again; None if it should not.
    """

    status = 400
    code = INVALID_ARGUMENT
    retry_after: int | None = None


class MalformedError(RefusedError):
    """The body can't be decoded."""


class TooLargeError(RefusedError):
    """The body is over a limit."""

    status = 413
    code = RESOURCE_EXHAUSTED


class UnsupportedError(RefusedError):
    """The content type or encoding is not one of OTLP's."""

    status = 415


class OverloadedError(RefusedError):
    """The same request will be welcome later."""

    status = 503
    code = UNAVAILABLE
    retry_after = 1

"""Refusals of a request, each with the HTTP status and gRPC code that OTLP asks for."""

from __future__ import annotations

from fuseboard_collector.errors import CollectorError

INVALID_ARGUMENT = 3
RESOURCE_EXHAUSTED = 8
UNAVAILABLE = 14
UNAUTHENTICATED = 16


class RefusedError(CollectorError):
    """The request is answered with an error status.

    Attributes:
        status: HTTP status.
        code: gRPC code for the ``google.rpc.Status`` of the answer.
        grpc_code: gRPC code of an answer over gRPC, where it is another one.
        retry_after: Seconds after which the client should try again; None if it should not.
    """

    status = 400
    code = INVALID_ARGUMENT
    grpc_code: int | None = None
    retry_after: int | None = None


class MalformedError(RefusedError):
    """The body can't be decoded."""


class TooLargeError(RefusedError):
    """The body is over a limit."""

    status = 413
    code = RESOURCE_EXHAUSTED


class TooSlowError(RefusedError):
    """The body did not arrive in time."""

    status = 408
    code = UNAVAILABLE


class UnsupportedError(RefusedError):
    """The content type or encoding is not one of OTLP's."""

    status = 415


class UnauthenticatedError(RefusedError):
    """The request has no token, or a wrong one."""

    status = 401
    code = UNAUTHENTICATED


class OverloadedError(RefusedError):
    """The same request will be welcome later."""

    status = 503
    code = UNAVAILABLE
    grpc_code = RESOURCE_EXHAUSTED
    retry_after = 1


class StoppingError(OverloadedError):
    """The server stops; another one, or the next, will take the request."""

    grpc_code = UNAVAILABLE

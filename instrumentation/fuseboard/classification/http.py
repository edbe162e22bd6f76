"""HTTP statuses and their relatives (gRPC codes, error slugs), wherever a client keeps them.

No client is imported. A status is an int of 100 to 599, never text: words in a message say
nothing reliable about a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fuseboard.classification.bodies import codes_in, codes_in_response, wait_asked_in
from fuseboard.classification.inspecting import is_a, probe
from fuseboard.classification.retry_after import retry_after_of
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    transient_fault,
)
from fuseboard.record import Verdict

_QUOTA_SLUGS: Final = frozenset(
    {
        "insufficient_quota",
        "quota_exceeded",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "credit_balance_too_low",
        "insufficient_credits",
        "insufficient_funds",
        "payment_required",
        "spend_limit_reached",
    }
)

# Some servers answer these with 400.
_CREDENTIAL_SLUGS: Final = frozenset(
    {
        "api_key_invalid",
        "authentication_error",
        "expired_api_key",
        "invalid_api_key",
        "permission_error",
    }
)

_SLUGS: Final[Mapping[str, Verdict]] = {
    **{slug: access_fault("http_quota_matcher") for slug in _QUOTA_SLUGS},
    **{slug: access_fault("error_slug_matcher") for slug in _CREDENTIAL_SLUGS},
    "content_filter": input_fault("error_slug_matcher"),
    "content_policy_violation": input_fault("error_slug_matcher"),
    "context_length_exceeded": input_fault("error_slug_matcher"),
    "invalid_request_error": input_fault("error_slug_matcher"),
    "model_not_found": input_fault("error_slug_matcher"),
    "not_found_error": input_fault("error_slug_matcher"),
    "request_too_large": input_fault("error_slug_matcher"),
    "rate_limit_exceeded": transient_fault("error_slug_matcher", ambiguous=False),
    "rate_limit_error": transient_fault("error_slug_matcher", ambiguous=False),
    "api_error": transient_fault("error_slug_matcher", ambiguous=True),
    "overloaded_error": transient_fault("error_slug_matcher", ambiguous=True),
    "server_error": transient_fault("error_slug_matcher", ambiguous=True),
    "timeout_error": transient_fault("error_slug_matcher", ambiguous=True),
}

_GRPC: Final[Mapping[str, Verdict]] = {
    "INVALID_ARGUMENT": input_fault("grpc_matcher"),
    "NOT_FOUND": input_fault("grpc_matcher"),
    "ALREADY_EXISTS": input_fault("grpc_matcher"),
    "FAILED_PRECONDITION": input_fault("grpc_matcher"),
    "OUT_OF_RANGE": input_fault("grpc_matcher"),
    "PERMISSION_DENIED": access_fault("grpc_matcher"),
    "UNAUTHENTICATED": access_fault("grpc_matcher"),
    "RESOURCE_EXHAUSTED": transient_fault("grpc_matcher", ambiguous=False),
    "ABORTED": transient_fault("grpc_matcher", ambiguous=False),
    "DEADLINE_EXCEEDED": transient_fault("grpc_matcher", ambiguous=True),
    "UNAVAILABLE": transient_fault("grpc_matcher", ambiguous=True),
    "INTERNAL": transient_fault("grpc_matcher", ambiguous=True),
    "UNIMPLEMENTED": persistent_fault("grpc_matcher"),
    "DATA_LOSS": persistent_fault("grpc_matcher", ambiguous=True),
    # The server's code raised something that it has no code for: what HTTP calls 500.
    "UNKNOWN": transient_fault("grpc_matcher", ambiguous=True),
    # By the server: a caller that cancels gets another exception.
    "CANCELLED": transient_fault("grpc_matcher", ambiguous=True),
}

# A quota that is used up hides behind these; the server's own code tells.
_SPOKEN: Final = frozenset({400, 429})
_ACCESS: Final = frozenset({401, 402, 403, 407, 511})
_PERSISTENT: Final = frozenset({410, 501, 505, 506, 508, 510, 525, 526})
_TRANSIENT_4XX: Final = frozenset({408, 423, 425, 429})
# The server says that it did not act: too early, locked, too many requests.
_REFUSALS: Final = frozenset({423, 425, 429})
# With Retry-After these are refusals as well; without, a proxy may have passed the request on.
_REFUSALS_IF_TIMED: Final = frozenset({503, 529})


def classify_http(error: BaseException, now: float) -> Verdict | None:
    """Judge an exception by the HTTP status, gRPC code or error slug that it carries.

    Args:
        error: The exception of any client.
        now: Wall time, seconds since the epoch.

    Returns:
        A verdict, or None if the exception carries none of these.
    """
    if is_a(error, SystemExit):
        return None  # its code is the process's
    status = status_of(error)
    slug = slug_of(error)
    if status is not None and status >= 400:
        if slug is None and status in _SPOKEN:
            slug = slug_of_response(probe(error, "response"))
        return judge_status(status, slug, _wait_asked_by(error, now))
    if slug is not None and slug in _SLUGS:
        return _SLUGS[slug]
    return _judge_grpc(error)


def judge_status(status: int, slug: str | None = None, retry_after: float | None = None) -> Verdict:
    """Return the verdict on an HTTP status.

    Args:
        status: 400 to 599.
        slug: The server's own code for the error, which tells an exhausted quota from a rate
            limit.
        retry_after: Seconds that the server asked to wait.
    """
    family = "http_5xx_matcher" if status >= 500 else "http_4xx_matcher"
    if status in _SPOKEN and slug in _QUOTA_SLUGS:
        return access_fault("http_quota_matcher", status=status)
    if status in _SPOKEN and slug in _CREDENTIAL_SLUGS:
        return access_fault("error_slug_matcher", status=status)
    if status in _ACCESS:
        return access_fault(family, status=status)
    if status in _PERSISTENT:
        return persistent_fault(family, status=status)
    if status >= 500 or status in _TRANSIENT_4XX:
        is_refusal = status in _REFUSALS or (
            status in _REFUSALS_IF_TIMED and retry_after is not None
        )
        return transient_fault(
            family, ambiguous=not is_refusal, status=status, retry_after=retry_after
        )
    return input_fault(family, status=status)


def judge_slug(slug: object) -> Verdict | None:
    """Return the verdict on a server's own code for an error, if it is a known one."""
    return _SLUGS.get(slug.lower()) if isinstance(slug, str) else None


def as_status(value: object) -> int | None:
    """Return ``value`` if it is an HTTP status: an int, no bool, of 100 to 599."""
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
        return int(value)
    return None


def status_of(error: object) -> int | None:
    """Return the HTTP status of an exception of any client, or None."""
    response = probe(error, "response")
    if isinstance(response, Mapping):
        # botocore
        metadata = response.get("ResponseMetadata")
        if isinstance(metadata, Mapping):
            return as_status(metadata.get("HTTPStatusCode"))
    candidates = (
        (response, "status_code"),
        (response, "status"),
        (error, "status_code"),
        (error, "status"),
        (error, "http_status"),
        (error, "code"),
    )
    for owner, name in candidates:
        status = as_status(probe(owner, name)) if owner is not None else None
        if status is not None:
            return status
    return None


def slug_of(error: object) -> str | None:
    """Return the server's own code for an error, lower case: ``insufficient_quota``."""
    own = (probe(error, "code"), probe(error, "type"))
    answers = (probe(error, "body"), probe(error, "response"), probe(error, "details"))
    return known_slug((*own, *(code for answer in answers for code in codes_in(answer))))


def slug_of_response(response: object) -> str | None:
    """Return the server's own code for an error from a body that has been read already."""
    return known_slug(codes_in_response(response))


def known_slug(codes: Iterable[object]) -> str | None:
    """Return that of several codes which says most, lower case, or None if none is known."""
    known = [code.lower() for code in codes if isinstance(code, str) and code.lower() in _SLUGS]
    # "rate_limit_exceeded" beside "insufficient_quota" is the wider word for the same.
    return next((code for code in known if code in _QUOTA_SLUGS), known[0] if known else None)


def _wait_asked_by(error: object, now: float) -> float | None:
    in_headers = retry_after_of(_headers_of(error), now)
    return wait_asked_in(probe(error, "details")) if in_headers is None else in_headers


def _headers_of(error: object) -> object:
    response = probe(error, "response")
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        return metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None
    headers = probe(response, "headers") if response is not None else None
    return headers if headers is not None else probe(error, "headers")


def _judge_grpc(error: object) -> Verdict | None:
    # Both methods, so that no other client's code() is called by mistake.
    code = probe(error, "code")
    if not callable(code) or not callable(probe(error, "details")):
        return None
    try:
        name = probe(code(), "name")
    except Exception:
        return None
    return _GRPC.get(name) if isinstance(name, str) else None

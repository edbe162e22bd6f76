"""Exceptions of botocore: AWS says most with its own codes, often behind the status 400."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.classification.http import as_status
from fuseboard.classification.http_clients import CONNECT_FAILED, LOST
from fuseboard.classification.inspecting import names_of, probe
from fuseboard.classification.naming import Named
from fuseboard.classification.network import CONNECT_TIMEOUT, RESET, TIMEOUT, TLS
from fuseboard.classification.retry_after import retry_after_of
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    transient_fault,
)
from fuseboard.record import Verdict

_CREDENTIALS: Final = access_fault("credentials_matcher")
_SET_UP: Final = persistent_fault("client_configuration_matcher")
_PARAMETERS: Final = input_fault("schema_validation_matcher")

_THROTTLED: Final = frozenset({
    "throttling", "throttlingexception", "throttledexception", "requestthrottled",
    "requestthrottledexception", "toomanyrequestsexception", "requestlimitexceeded",
    "provisionedthroughputexceededexception", "bandwidthlimitexceeded", "limitexceededexception",
    "slowdown", "priorrequestnotcomplete", "ec2throttledexception", "modelnotreadyexception",
})  # fmt: skip
# Another transaction was in the way; this one has been undone.
_CONFLICTS: Final = frozenset({
    "transactionconflictexception", "transactioninprogressexception",
})  # fmt: skip
_AWAY: Final = frozenset({
    "requesttimeout", "requesttimeoutexception", "internalfailure", "internalerror",
    "internalservererror", "internalserverexception", "serviceunavailable",
    "serviceunavailableexception", "idpcommunicationerror", "modeltimeoutexception",
    "modelerrorexception", "modelstreamerrorexception",
})  # fmt: skip
_DENIED: Final = frozenset({
    "accessdenied", "accessdeniedexception", "authfailure", "expiredtoken",
    "expiredtokenexception", "incompletesignature", "invalidaccesskeyid", "invalidclienttokenid",
    "invalidsignatureexception", "missingauthenticationtoken",
    "missingauthenticationtokenexception", "notauthorized", "notauthorizedexception",
    "optinrequired", "requestexpired", "signaturedoesnotmatch", "tokenrefreshrequired",
    "unauthorizedoperation", "unrecognizedclientexception",
})  # fmt: skip
_QUOTAS: Final = frozenset({"servicequotaexceededexception", "servicequotaexceeded"})
_REFUSED: Final = frozenset({"validationexception", "validationerror"})

_EXACT: Final = Named(
    {
        "botocore.exceptions.ConnectTimeoutError": CONNECT_TIMEOUT,
        "botocore.exceptions.ReadTimeoutError": TIMEOUT,
        "botocore.exceptions.ConnectionClosedError": RESET,
        "botocore.exceptions.ResponseStreamingError": RESET,
        "botocore.exceptions.IncompleteReadError": RESET,
        "botocore.exceptions.NoCredentialsError": _CREDENTIALS,
        "botocore.exceptions.NoAuthTokenError": _CREDENTIALS,
        "botocore.exceptions.PartialCredentialsError": _CREDENTIALS,
        "botocore.exceptions.CredentialRetrievalError": _CREDENTIALS,
        "botocore.exceptions.TokenRetrievalError": _CREDENTIALS,
        "botocore.exceptions.SSOError": _CREDENTIALS,
        "botocore.exceptions.LoginError": _CREDENTIALS,
        "botocore.exceptions.ProfileNotFound": _CREDENTIALS,
        "botocore.exceptions.ParamValidationError": _PARAMETERS,
        "botocore.exceptions.InvalidRegionError": _SET_UP,
        "botocore.exceptions.ValidationError": _PARAMETERS,
        "botocore.exceptions.BaseEndpointResolverError": _SET_UP,
        "botocore.exceptions.DataNotFoundError": _SET_UP,
        "botocore.exceptions.EndpointProviderError": _SET_UP,
    }
)

_GENERAL: Final = Named(
    {
        "botocore.exceptions.SSLError": TLS,
        "botocore.exceptions.EndpointConnectionError": CONNECT_FAILED,
        "botocore.exceptions.ProxyConnectionError": CONNECT_FAILED,
        "botocore.exceptions.ConnectionError": LOST,
        "botocore.exceptions.HTTPClientError": LOST,
    }
)


def classify_aws(error: BaseException, now: float) -> Verdict | None:
    """Judge an exception of botocore that says exactly what happened, or return None.

    Args:
        error: Any exception.
        now: Wall time, seconds since the epoch.
    """
    if "botocore.exceptions.ClientError" in names_of(type(error)):
        return _judge_answer(probe(error, "response"), now)
    return _EXACT.of(type(error))


def classify_aws_connection(error: BaseException) -> Verdict | None:
    """Judge an exception of botocore that only says that the connection failed."""
    return _GENERAL.of(type(error))


def _judge_answer(response: object, now: float) -> Verdict | None:
    """Return the verdict that the code in an answer allows; its status may say enough."""
    if not isinstance(response, Mapping):
        return None
    described, metadata = response.get("Error"), response.get("ResponseMetadata")
    code = described.get("Code") if isinstance(described, Mapping) else None
    if not isinstance(code, str):
        return None
    status: int | None = None
    wait: float | None = None
    if isinstance(metadata, Mapping):
        status = as_status(metadata.get("HTTPStatusCode"))
        wait = retry_after_of(metadata.get("HTTPHeaders"), now)
    return _judge_code(code.lower(), status, wait)


def _judge_code(code: str, status: int | None, wait: float | None) -> Verdict | None:
    name = "aws_code_matcher"
    if code in _THROTTLED or code in _CONFLICTS:
        return transient_fault(name, ambiguous=False, status=status, retry_after=wait)
    if code in _AWAY:
        return transient_fault(name, ambiguous=True, status=status, retry_after=wait)
    if code in _DENIED:
        return access_fault(name, status=status)
    if code in _QUOTAS:
        return access_fault("http_quota_matcher", status=status)
    return input_fault(name, status=status) if code in _REFUSED and status is None else None

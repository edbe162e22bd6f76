"""Find a server's own code for an error in the body of its answer, if that has been read already.

Clients keep a body that they have read as plain bytes or text on the response object (httpx,
requests: ``_content``; aiohttp, urllib3: ``_body``). Only such stored values are looked at, in the
instance's own dictionary: a property (``requests.Response.content``) might read from the network,
and a stream that is read here would be empty for the caller.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from fuseboard.classification.inspecting import stored_in

MAX_BODY: Final = 16_384
"""Bytes or characters; what is longer is no error message."""

MAX_DETAILS: Final = 8

_BODIES: Final = ("_content", "_body", "content", "body", "text")
# Where servers nest the error within the answer.
_ENVELOPES: Final = ("error", "Error", "detail")
_CODES: Final = ("code", "type", "Code", "error", "detail", "reason", "error_code")
# What Google lists beside an error; Anthropic has a single one.
_DETAILS: Final = "details"
_SECONDS: Final = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,16})?)s")


def codes_in_response(response: object) -> Iterator[str]:
    """Yield the codes that the JSON body of a response gives, most telling first.

    Args:
        response: The response of any client. Nothing is read from the network, no code of
            the response runs, and nothing is raised.
    """
    stored = stored_in(response)
    body = next((stored[name] for name in _BODIES if type(stored.get(name)) in (bytes, str)), None)
    yield from codes_in(body)


def codes_in(answer: object) -> Iterator[str]:
    """Yield the codes in an answer, JSON text or parsed: within its error, then beside it."""
    if isinstance(answer, bytes | str):
        answer = _parse(answer)
    if not isinstance(answer, Mapping):
        return
    for name in _ENVELOPES:
        inner = answer.get(name)
        if isinstance(inner, Mapping):
            yield from _codes_of(inner)
    yield from _codes_of(answer)


def wait_asked_in(answer: object) -> float | None:
    """Return the seconds that an answer of Google's asks to wait (``RetryInfo``), or None."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if not isinstance(error, Mapping):
        return None
    for detail in _details_of(error):
        found = detail.get("retryDelay")
        asked = _SECONDS.fullmatch(found) if isinstance(found, str) else None
        if asked:
            return float(asked[1])
    return None


def _codes_of(container: Mapping[object, object]) -> Iterator[str]:
    for source in (container, *_details_of(container)):
        for name in _CODES:
            code = source.get(name)
            if isinstance(code, str):
                yield code.lower()


def _details_of(error: Mapping[object, object]) -> Iterator[Mapping[object, object]]:
    details = error.get(_DETAILS)
    listed = details[:MAX_DETAILS] if isinstance(details, list) else [details]
    yield from (detail for detail in listed if isinstance(detail, Mapping))


def _parse(body: bytes | str) -> object:
    if len(body) > MAX_BODY:
        return None
    try:
        return json.loads(body)
    except Exception:
        return None

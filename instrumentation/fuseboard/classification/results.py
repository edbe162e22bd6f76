"""Faults that hide in a returned value: error packets, MCP ``isError``, partial failures.

A value is looked at, never used: nothing is iterated, called or awaited, and attributes are
read only where a class declares them. A lazily loading or one-shot result stays untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from fuseboard.classification.bodies import codes_in
from fuseboard.classification.http import (
    as_status,
    judge_slug,
    judge_status,
    known_slug,
    slug_of_response,
)
from fuseboard.classification.inspecting import mro_of, names_of, probe
from fuseboard.classification.retry_after import retry_after_of
from fuseboard.classification.verdicts import semantic_fault
from fuseboard.conventions import ErrorClass
from fuseboard.errors import Problem
from fuseboard.record import Verdict

PACKET: Final = semantic_fault("error_packet")
MCP_IS_ERROR: Final = semantic_fault("mcp_is_error")
PARTIAL: Final = semantic_fault("partial_failures")
EMPTY: Final = semantic_fault("empty_result")
CONTRACT: Final = semantic_fault("broken_contract")


@dataclass(frozen=True, slots=True)
class ResultFinding:
    """What is wrong with a returned value.

    Attributes:
        verdict: Its classification.
        code: A short code for ``error.type``.
        message: What the value itself says, or an empty string.
        partial_failures: Number of failed items where the value is usable in part, else None.
        refusal: Where the tool's policy refuses the value: what the tool did, in words that
            follow its name.
        problems: What is wrong with a refused value.
    """

    verdict: Verdict
    code: str
    message: str = ""
    partial_failures: int | None = None
    refusal: str | None = None
    problems: tuple[Problem, ...] = ()


_SIMPLE: Final = frozenset(
    {str, int, float, bool, bytes, type(None), list, tuple, set, frozenset, complex, bytearray}
)
_RESPONSES: Final = frozenset(
    {
        "httpx.Response",
        "httpx2.Response",
        "requests.models.Response",
        "aiohttp.client_reqrep.ClientResponse",
        "urllib3.response.BaseHTTPResponse",
        "http.client.HTTPResponse",
        "urllib.response.addinfourl",
    }
)
_CLASS_NAMES: Final = frozenset(error_class.value for error_class in ErrorClass)
_STATUS_KEYS: Final = ("http_status", "status_code", "status", "code")
_CODE_KEYS: Final = ("error_code", "code", "type", "error_type")
_TEXT_KEYS: Final = ("message", "detail", "error", "reason")
# A dict made of nothing but these is about an error and nothing else.
_PACKET_KEYS: Final = frozenset(
    {*_STATUS_KEYS, *_CODE_KEYS, *_TEXT_KEYS, "suggestion", "recoverable", "debug_info"}
)


def inspect_result(value: object, now: float) -> ResultFinding | None:
    """Return what is wrong with a returned value, or None.

    Args:
        value: What the tool returned.
        now: Wall time, seconds since the epoch.
    """
    cls = type(value)
    if cls in _SIMPLE:
        return None
    if cls is dict:
        return _inspect_mapping(value)  # type: ignore[arg-type]
    shape = _shape_of(cls)
    return _inspect_object(value, shape, now) if shape else None


def is_empty(value: object) -> bool:
    """Tell whether a returned value holds nothing: None, blank text, an empty container."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, bytes | list | tuple | set | frozenset | dict) and not value


def describe_empty(value: object) -> str:
    """Return words for a value that :func:`is_empty` calls empty."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return "blank text" if value else "an empty text"
    return f"an empty {type(value).__name__}"


def _inspect_mapping(value: Mapping[object, object]) -> ResultFinding | None:
    if value.get("ok") is False:
        return _read_packet(value, PACKET)
    if value.get("isError") is True or value.get("is_error") is True:
        return _read_mcp(value.get("structuredContent", value.get("structured_content")))
    error = value.get("error")
    if error and value.get("ok") is not True and _is_packet(value, error):
        return _read_packet(value, PACKET)
    return _find_partial(value.get("partial_failures"))


def _is_packet(value: Mapping[object, object], error: object) -> bool:
    """Tell an error packet from data that happens to have a field named ``error``."""
    if isinstance(error, Mapping):
        return _judge_codes(error) is not None or value.keys() <= _PACKET_KEYS
    if not isinstance(error, str):
        return False
    return _judge_codes(value) is not None or value.keys() <= _PACKET_KEYS


def _read_packet(value: Mapping[object, object], default: Verdict) -> ResultFinding:
    inner = value.get("error")
    sources = [value, inner] if isinstance(inner, Mapping) else [value]
    verdict = next((found for found in map(_judge_codes, sources) if found), default)
    code = _first_text(sources, _CODE_KEYS) or default.classifier_id
    return ResultFinding(verdict, code[:64], _first_text(reversed(sources), _TEXT_KEYS) or "")


def _read_mcp(structured: object) -> ResultFinding:
    if isinstance(structured, Mapping):
        return _read_packet(structured, MCP_IS_ERROR)
    # The name that the MCP convention gives to a tool's own error.
    return ResultFinding(MCP_IS_ERROR, "tool_error")


def _judge_codes(packet: Mapping[object, object]) -> Verdict | None:
    """Return the verdict that a packet's own class, status or code allows, if any."""
    own = packet.get("error_class") or _class_in(packet.get("debug_info"))
    if isinstance(own, str) and own in _CLASS_NAMES:
        error_class = ErrorClass(own)
        is_final = packet.get("recoverable") is False
        return Verdict(
            error_class,
            PACKET.classifier_id,
            error_class is ErrorClass.L3_TRANSIENT and not is_final,
            ambiguous=error_class is not ErrorClass.L1_INPUT,
        )
    for key in _STATUS_KEYS:
        status = as_status(packet.get(key))
        if status is not None and status >= 400:
            codes = (packet.get("error_code"), packet.get("error_type"), *codes_in(packet))
            return judge_status(status, known_slug(codes))
    slugs = [packet.get(key) for key in _CODE_KEYS]
    return next((verdict for verdict in map(judge_slug, slugs) if verdict), None)


def _class_in(debug_info: object) -> object:
    """Return the class that a packet of our own gives to engineers."""
    return debug_info.get("error_class") if isinstance(debug_info, Mapping) else None


def _first_text(sources: Iterable[Mapping[object, object]], keys: tuple[str, ...]) -> str | None:
    for source in sources:
        for key in keys:
            text = source.get(key)
            if isinstance(text, str) and text:
                return text
    return None


def _find_partial(failures: object) -> ResultFinding | None:
    if isinstance(failures, list | tuple) and failures:
        return ResultFinding(PARTIAL, "partial_failures", "", len(failures))
    return None


def _find_shape(cls: type) -> str | None:
    """Return how to look at objects of a class; None for the many that say nothing of faults."""
    if issubclass(cls, dict):
        return "mapping"
    if not _RESPONSES.isdisjoint(names_of(cls)):
        return "response"
    declared = _declared_names(cls)
    if "isError" in declared or "is_error" in declared:
        return "mcp"
    if "partial_failures" in declared:
        return "partial"
    return "response" if {"status_code", "headers"} <= declared else None


_shape_of: Callable[[type], str | None] = lru_cache(maxsize=2048)(_find_shape)


def _declared_names(cls: type) -> set[str]:
    declared: set[str] = set()
    for base in mro_of(cls):
        namespace = type.__dict__["__dict__"].__get__(base)
        declared.update(namespace)
        for listing in ("__annotations__", "model_fields", "__pydantic_fields__", "__slots__"):
            names = namespace.get(listing)
            if isinstance(names, dict | tuple | list):
                declared.update(name for name in names if isinstance(name, str))
    return declared


def _inspect_object(value: object, shape: str, now: float) -> ResultFinding | None:
    if shape == "mapping":
        return _inspect_mapping(value)  # type: ignore[arg-type]
    if shape == "response":
        return _read_response(value, now)
    if shape == "mcp" and (probe(value, "isError") is True or probe(value, "is_error") is True):
        structured = probe(value, "structuredContent") or probe(value, "structured_content")
        return _read_mcp(structured)
    return _find_partial(probe(value, "partial_failures"))


def _read_response(value: object, now: float) -> ResultFinding | None:
    status = as_status(probe(value, "status_code")) or as_status(probe(value, "status"))
    if status is None or status < 400:
        return None
    retry_after = retry_after_of(probe(value, "headers"), now)
    verdict = judge_status(status, slug_of_response(value), retry_after)
    return ResultFinding(verdict, str(status))

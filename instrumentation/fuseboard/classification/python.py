"""Python's own exceptions: defects of the tool, files, broken text."""

from __future__ import annotations

import errno
from typing import Final

from fuseboard.classification.inspecting import is_a, names_of, probe
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    semantic_fault,
)
from fuseboard.record import Verdict

# A defect may show after the tool has acted, so whether it took effect is unknown.
DEFECT: Final = persistent_fault("python_defect_matcher", ambiguous=True)
EXIT: Final = persistent_fault("system_exit_matcher", ambiguous=True)
MALFORMED: Final = semantic_fault("malformed_data_matcher")
FILE: Final = input_fault("file_not_found_matcher")
PERMISSION: Final = access_fault("file_permission_matcher")
STORAGE: Final = persistent_fault("storage_full_matcher", ambiguous=True)

# ValueError, RuntimeError and OSError are not among them: tools raise them for faults of any
# class, so they say nothing.
_DEFECTS: Final = (
    LookupError,
    AttributeError,
    NameError,
    TypeError,
    ArithmeticError,
    AssertionError,
    ImportError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    MemoryError,
    StopIteration,
    StopAsyncIteration,
)
_MALFORMED: Final = frozenset(
    {
        "json.decoder.JSONDecodeError",
        "UnicodeDecodeError",
        "orjson.JSONDecodeError",
        "msgspec.DecodeError",
        "httpx.DecodingError",
        "requests.exceptions.JSONDecodeError",
        "requests.exceptions.ContentDecodingError",
        "aiohttp.client_exceptions.ContentTypeError",
        "xml.etree.ElementTree.ParseError",
    }
)
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def is_defect(error: BaseException) -> bool:
    """Tell whether an exception is of a kind that a mistake in the tool's code raises."""
    return is_a(error, *_DEFECTS)


def classify_data(error: BaseException) -> Verdict | None:
    """Judge an answer that cannot be decoded, or return None."""
    return None if _MALFORMED.isdisjoint(names_of(type(error))) else MALFORMED


def classify_python(error: BaseException) -> Verdict | None:
    """Judge a defect of the tool or a fault of its files, or return None."""
    if is_defect(error):
        return DEFECT
    if is_a(error, SystemExit):
        return EXIT
    if is_a(error, FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError):
        return FILE
    if is_a(error, PermissionError):
        return PERMISSION
    if is_a(error, OSError) and probe(error, "errno") in _FULL:
        return STORAGE
    return None

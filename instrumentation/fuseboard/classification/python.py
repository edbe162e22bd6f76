"""Python's own exceptions: defects of the tool, files, broken text."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Final

from fuseboard.classification.inspecting import is_a, probe
from fuseboard.classification.naming import Named
from fuseboard.classification.network import POOL, RESET, TIMEOUT
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    semantic_fault,
    transient_fault,
)
from fuseboard.record import Verdict

# A defect may show after the tool has acted, so whether it took effect is unknown.
DEFECT: Final = persistent_fault("python_defect_matcher", ambiguous=True)
EXIT: Final = persistent_fault("system_exit_matcher", ambiguous=True)
MALFORMED: Final = semantic_fault("malformed_data_matcher")
FILE: Final = input_fault("file_not_found_matcher")
PERMISSION: Final = access_fault("file_permission_matcher")
STORAGE: Final = persistent_fault("storage_full_matcher", ambiguous=True)
_NOT_BEGUN: Final = transient_fault("cancelled_work_matcher", ambiguous=False)
_PATTERN: Final = input_fault("schema_validation_matcher")
_UNFIT: Final = input_fault("invalid_request_matcher")

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
_NAMED: Final = Named(
    {
        **dict.fromkeys(
            (
                "json.decoder.JSONDecodeError",
                "UnicodeDecodeError",
                "orjson.JSONDecodeError",
                "msgspec.DecodeError",
                "httpx.DecodingError",
                "requests.exceptions.JSONDecodeError",
                "requests.exceptions.ContentDecodingError",
                "urllib3.exceptions.DecodeError",
                "aiohttp.client_exceptions.ContentTypeError",
                "asyncio.exceptions.LimitOverrunError",
                "xml.etree.ElementTree.ParseError",
                "xml.parsers.expat.ExpatError",
                "tomllib.TOMLDecodeError",
                "_csv.Error",
                "_pickle.UnpicklingError",
                "zlib.error",
                "gzip.BadGzipFile",
                "zipfile.BadZipFile",
                "tarfile.ReadError",
                "binascii.Error",
            ),
            MALFORMED,
        ),
        "asyncio.exceptions.IncompleteReadError": RESET,
        "asyncio.queues.QueueFull": POOL,
        "queue.Full": POOL,
        "asyncio.queues.QueueEmpty": TIMEOUT,
        "_queue.Empty": TIMEOUT,
        # Only what has not begun can be cancelled in an executor.
        "concurrent.futures._base.CancelledError": _NOT_BEGUN,
        "concurrent.futures._base.BrokenExecutor": DEFECT,
        "asyncio.exceptions.InvalidStateError": DEFECT,
        "concurrent.futures._base.InvalidStateError": DEFECT,
        "pydantic_core._pydantic_core.PydanticSerializationError": DEFECT,
        "pydantic.errors.PydanticUserError": DEFECT,
        "re.error": _PATTERN,
        "re.PatternError": _PATTERN,
    }
)
_ERRNOS: Final[Mapping[object, Verdict]] = {
    errno.ENOSPC: STORAGE,
    errno.EDQUOT: STORAGE,
    errno.EROFS: STORAGE,
    errno.EIO: STORAGE,
    errno.ENOEXEC: persistent_fault("program_not_found_matcher"),
    errno.E2BIG: _UNFIT,
    errno.ENAMETOOLONG: _UNFIT,
}


def is_defect(error: BaseException) -> bool:
    """Tell whether an exception is of a kind that a mistake in the tool's code raises."""
    return is_a(error, *_DEFECTS)


def classify_data(error: BaseException) -> Verdict | None:
    """Judge broken data, and what queues and executors raise, or return None."""
    return _NAMED.of(type(error))


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
    return _ERRNOS.get(probe(error, "errno")) if is_a(error, OSError) else None

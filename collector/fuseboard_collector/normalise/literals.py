"""Values as Python prints them, which some emitters send in place of JSON."""

from __future__ import annotations

import ast
import warnings

# A sender's text would be warned about on the server's standard error, line by line.
warnings.filterwarnings("ignore", module=r"<unknown>\Z")


def literal(text: str, most: int) -> object:
    """Return the value that Python printed so; None for what is no literal, or is too long.

    Args:
        text: What was printed; it is never run.
        most: Characters.
    """
    if len(text) > most:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None

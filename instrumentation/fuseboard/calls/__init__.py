"""What surrounds a tool's own code: wrappers, records, drivers of policies."""

from fuseboard.calls.current import CurrentCall, current_call
from fuseboard.calls.manual import call
from fuseboard.calls.wrapping import tool, wrap

__all__ = ["CurrentCall", "call", "current_call", "tool", "wrap"]

"""What surrounds a tool's own code: wrappers, records, drivers of policies."""

from fuseboard.calls.current import CurrentCall, current_call
from fuseboard.calls.from_file import reload
from fuseboard.calls.manual import call
from fuseboard.calls.switching import configure
from fuseboard.calls.wrapping import tool, wrap

__all__ = ["CurrentCall", "call", "configure", "current_call", "reload", "tool", "wrap"]

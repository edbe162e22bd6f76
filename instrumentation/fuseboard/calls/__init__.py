"""What surrounds a tool's own code: wrappers, records, drivers of policies."""

from fuseboard.calls.current import CurrentCall, current_call
from fuseboard.calls.from_file import reload
from fuseboard.calls.manual import call
from fuseboard.calls.packets import ErrorPacket, error_packet
from fuseboard.calls.switching import configure
from fuseboard.calls.wrapping import tool, wrap

__all__ = [
    "CurrentCall",
    "ErrorPacket",
    "call",
    "configure",
    "current_call",
    "error_packet",
    "reload",
    "tool",
    "wrap",
]

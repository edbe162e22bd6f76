"""The boards that fuseboard ships, one module each."""

from fuseboard_grafana.boards import tool_calls_overview

BOARDS = (tool_calls_overview.board,)
"""Functions that build the boards."""

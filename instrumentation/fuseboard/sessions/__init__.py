"""Sessions and turns: who calls, what they may use up together, and by when they must end."""

from fuseboard.sessions.accounts import Spent
from fuseboard.sessions.blocks import session, turn
from fuseboard.sessions.progress import Progress

__all__ = ["Progress", "Spent", "session", "turn"]

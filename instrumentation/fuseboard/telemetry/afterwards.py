"""What calls report to after ``fuseboard.shutdown``."""

from __future__ import annotations

from fuseboard.record import AttemptRecord, CallRecord, Telemetry
from fuseboard.runtime import NullTelemetry


class Afterwards(NullTelemetry):
    """Lets the calls end that were running at the shutdown; knows nothing of later ones.

    Without it they would count as running for ever, and their spans would be lost uncounted.

    Args:
        ended: What was shut down; it still counts, but sends nothing more.
    """

    def __init__(self, ended: Telemetry) -> None:
        super().__init__()
        self._ended = ended

    def call_started(self, call: CallRecord) -> None:
        """Do nothing, on purpose and hence without a word."""

    def enter(self, call: CallRecord) -> object:
        """Make the span of a call current that was running at the shutdown."""
        return self._ended.enter(call)

    def leave(self, token: object) -> None:
        """Restore what was current."""
        self._ended.leave(token)

    def attempt_started(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Open an attempt of a call that was running."""
        if call.telemetry is not None:
            self._ended.attempt_started(call, attempt)

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Count an attempt of a call that was running."""
        if call.telemetry is not None:
            self._ended.attempt_ended(call, attempt)

    def call_ended(self, call: CallRecord) -> None:
        """Count a call that was running."""
        if call.telemetry is not None:
            self._ended.call_ended(call)

    def finish(self, call: CallRecord) -> None:
        """Count a call that was running, and its only attempt."""
        if call.telemetry is not None:
            self._ended.finish(call)

"""The OTLP receiver."""

from fuseboard_collector.receiver.routes import routes

__all__ = ["routes"]

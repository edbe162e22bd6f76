"""The OTLP receiver: HTTP and gRPC on one intake."""

from fuseboard_collector.receiver.grpc_server import GrpcReceiver
from fuseboard_collector.receiver.intake import Intake
from fuseboard_collector.receiver.routes import routes

__all__ = ["GrpcReceiver", "Intake", "routes"]

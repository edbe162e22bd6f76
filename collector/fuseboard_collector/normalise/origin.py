"""Who sent a group of spans: the columns that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

from fuseboard import conventions as c
from fuseboard_collector.normalise.dialects.dialect import Dialect
from fuseboard_collector.normalise.dialects.recognising import dialect_of_scope
from fuseboard_collector.normalise.frameworks import framework_of
from fuseboard_collector.normalise.incoming import Source
from fuseboard_collector.normalise.values import MAX_NAME

_OLD_ENVIRONMENT = "deployment.environment"
LANGFUSE_ENVIRONMENT = "langfuse.environment"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a resource and a scope say, read once for a group of spans.

    Attributes:
        dialect: That of the scope; None if any may be used.
    """

    service: str | None
    instance: str | None
    environment: str | None
    region: str | None
    framework: str | None
    instrumentation: str | None
    dialect: Dialect | None


def origin_of(source: Source) -> Origin:
    """Return what a group's resource and scope say.

    Args:
        source: The group's.
    """
    return Origin(
        service=source.text(c.SERVICE_NAME),
        instance=source.text(c.SERVICE_INSTANCE_ID),
        environment=(
            source.text(c.DEPLOYMENT_ENVIRONMENT)
            or source.text(_OLD_ENVIRONMENT)
            or source.text(LANGFUSE_ENVIRONMENT)
        ),
        region=source.text(c.CLOUD_REGION),
        framework=framework_of(source.scope),
        instrumentation=source.scope[:MAX_NAME] or None,
        dialect=dialect_of_scope(source.scope),
    )

"""The zone that times are shown in."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st


def viewer_zone() -> tuple[tzinfo, str]:
    """Return the zone of the viewer's browser and its name; UTC where it isn't known."""
    name = st.context.timezone
    if not name:
        return UTC, "UTC"
    try:
        return ZoneInfo(name), name
    except (ZoneInfoNotFoundError, ValueError):
        return UTC, "UTC"

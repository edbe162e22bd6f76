"""Who looks at the dashboard, where the server knows that, and the way out."""

from __future__ import annotations

from urllib.parse import unquote

import streamlit as st

from fuseboard_dashboard import markup, source
from fuseboard_dashboard.language import t


def who() -> str:
    """Return the name of whoever looks; empty where nobody has to log in, or has no name."""
    if not source.current().has_login:
        return ""
    return unquote(st.context.headers.get(source.VIEWER_HEADER) or "")


def draw() -> None:
    """Say at the end of the sidebar who is logged in; nothing where nobody has to be."""
    here = source.current()
    if not here.has_login:
        return
    st.html(markup.visitor(t("Logged in as"), who() or t("somebody without a name")))
    if here.can_log_out and st.button(
        t("Log out"), icon=":material/logout:", width="stretch", key="fb_log_out"
    ):
        st.logout()

"""The dashboard's router: Streamlit runs this file for every session.

The server calls :func:`fuseboard_dashboard.source.configure` before, and sets the options of
:func:`fuseboard_dashboard.theme.streamlit_options`.
"""

from __future__ import annotations

import streamlit as st

from fuseboard_dashboard import markup, sidebar
from fuseboard_dashboard.screens import (
    alerts,
    board,
    breakers,
    errors,
    latency,
    retries,
    tool,
)
from fuseboard_dashboard.view import panel


def main() -> None:
    """Draw the sidebar and the page that the URL names."""
    st.set_page_config(page_title="fuseboard", page_icon="⚡",
                       layout="wide")  # fmt: skip
    st.html(markup.stylesheet())
    pages = [
        st.Page(board.page, title="Board", url_path="board", icon=":material/dashboard:",
                default=True),
        st.Page(tool.page, title="Tool", url_path="tool", icon=":material/build:"),
        st.Page(errors.page, title="Errors", url_path="errors", icon=":material/error:"),
        st.Page(breakers.page, title="Breakers", url_path="breakers",
                icon=":material/toggle_off:"),
        st.Page(retries.page, title="Retries", url_path="retries", icon=":material/replay:"),
        st.Page(latency.page, title="Latency", url_path="latency", icon=":material/timer:"),
        st.Page(alerts.page, title="Alerts", url_path="alerts", icon=":material/notifications:"),
    ]  # fmt: skip
    current = st.navigation(pages, position="hidden")
    with panel():
        sidebar.draw(pages)
    with panel():
        current.run()


main()

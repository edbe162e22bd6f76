"""The dashboard's router: Streamlit runs this file for every session.

The server calls :func:`fuseboard_dashboard.source.configure` before, and sets the options of
:func:`fuseboard_dashboard.theme.streamlit_options`.
"""

from __future__ import annotations

import streamlit as st

from fuseboard_dashboard import markup, sidebar
from fuseboard_dashboard.menu import MENU
from fuseboard_dashboard.view import panel


def main() -> None:
    """Draw the sidebar and the page that the URL names."""
    st.set_page_config(page_title="fuseboard", page_icon="⚡",
                       layout="wide")  # fmt: skip
    st.html(markup.stylesheet())
    pages = [
        st.Page(
            entry.draw, title=entry.title(), url_path=entry.path, default=entry is MENU[0],
            icon=f":material/{entry.icon}:",
        )
        for entry in MENU
    ]  # fmt: skip
    current = st.navigation(pages, position="hidden")
    with panel():
        sidebar.draw(pages)
    with panel():
        current.run()


main()

"""The dashboard's router: Streamlit runs this file for every session.

The server calls :func:`fuseboard_dashboard.source.configure` before, and sets the options of
:func:`fuseboard_dashboard.theme.streamlit_options`.
"""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import Page

from fuseboard_dashboard import language, markup, sidebar
from fuseboard_dashboard.menu import MENU, Entry
from fuseboard_dashboard.view import panel


def main() -> None:
    """Draw the sidebar and the page that the URL names."""
    st.set_page_config(page_title="fuseboard", page_icon="⚡",
                       layout="wide")  # fmt: skip
    language.follow_url(st.query_params.get_all(language.LANGUAGE))
    st.html(markup.stylesheet())
    named = [_page(entry) for entry in MENU]
    # Streamlit knows its default page by the bare address only, so the first has two.
    bare = st.Page(MENU[0].draw, title=named[0].title, icon=named[0].icon, default=True)
    current = st.navigation([bare, *named], position="hidden")
    with panel():
        sidebar.draw([bare, *named[1:]] if current.url_path == bare.url_path else named)
    with panel():
        current.run()


def _page(entry: Entry) -> Page:
    icon = f":material/{entry.icon}:"
    return st.Page(entry.draw, title=entry.title(), url_path=entry.path, icon=icon)


main()

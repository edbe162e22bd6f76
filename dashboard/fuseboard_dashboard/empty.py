"""What a page shows when there is nothing to show: what to do next."""

from __future__ import annotations

import string
from typing import Final
from urllib.parse import urlsplit

import streamlit as st

from fuseboard_dashboard import filters, markup, sidebar
from fuseboard_dashboard.language import t
from fuseboard_dashboard.source import Source
from fuseboard_dashboard.view import View

_WAITED: Final = "fb_waited"
"""Set in sessions that saw the first-run page."""
_DEFAULT_ENDPOINT: Final = "http://127.0.0.1:4318"


def snippet(otlp_endpoint: str) -> str:
    """Return the lines that make an agent report to this server.

    Args:
        otlp_endpoint: Base URL of this server's receiver; named only where it isn't the default.
    """
    settings = 'service="my-agent", region="us-east"'
    if otlp_endpoint != _DEFAULT_ENDPOINT:
        settings = f'\n    {settings},\n    endpoint="{otlp_endpoint}",\n'
    return (
        "import fuseboard\n\n"
        f"fuseboard.init({settings})\n\n\n"
        "@fuseboard.tool\n"
        "def get_weather(city: str) -> dict:\n"
        "    return weather_api(city)   # your code, unchanged\n"
    )


def first_run(of: Source) -> None:
    """Say how to get the first call onto the board."""
    st.session_state[_WAITED] = True
    words = t(
        "This server listens for OTLP at {endpoint} ({port}). Add these lines to an agent and call "
        "the tool once: its fuse appears here within seconds, nothing needs reloading.",
        endpoint=of.otlp_endpoint, port=_port_words(of.otlp_endpoint),
    )  # fmt: skip
    st.html(
        '<div class="fb fb-empty" data-testid="fb-first-run"><h2>'
        f"{markup.esc(t('Waiting for the first call'))}</h2><p>{markup.esc(words)}</p></div>"
    )
    st.code(snippet(of.otlp_endpoint), language="python")
    st.html(
        markup.section(
            t("Already sending OpenTelemetry?"),
            t(
                "Any exporter that speaks OTLP/HTTP will do: spans named by the GenAI convention "
                "(execute_tool) become calls on this board."
            ),
        )
    )
    st.code(f"export OTEL_EXPORTER_OTLP_ENDPOINT={of.otlp_endpoint}", language="bash")


def greet(view: View) -> None:
    """Welcome the first call if this session waited for it, once."""
    if not st.session_state.pop(_WAITED, False):
        return
    found = view.ask("page_tools")
    name = markup.shorten(str(found["tool"].iloc[0]), 40) if len(found) else ""
    words = t("The first call has arrived: {tool}. Welcome to the board.", tool=_plain(name))
    st.toast(words, icon=":material/bolt:", duration="long")


def _plain(name: str) -> str:
    """Return a foreign name that Markdown takes for nothing but text."""
    return "".join(f"\\{c}" if c in string.punctuation else c for c in name if c.isprintable())


def _port_words(endpoint: str) -> str:
    port = urlsplit(endpoint).port
    return t("HTTP, port {port}", port=port) if port else "HTTP"


def no_match(view: View) -> None:
    """Say that the filters exclude everything, and offer the way back."""
    if view.filters.is_narrowed:
        words = t("There was no call with the chosen tools and regions {when}.", when=_when(view))
    else:
        words = t("There was no call {when}.", when=_when(view))
    newest = view.clock(view.ask("page_store")["last_end"][0])
    more = t(
        "The newest call of all ended at {moment} {zone}. Choose a longer time, or start over.",
        moment=newest, zone=view.zone_name,
    )  # fmt: skip
    st.html(
        '<div class="fb fb-empty" data-testid="fb-no-match">'
        f"<h2>{markup.esc(t('No calls match these filters'))}</h2>"
        f"<p>{markup.esc(words)} {markup.esc(more)}</p></div>"
    )
    if st.button(t("Reset filters"), key="fb_empty_reset", on_click=sidebar.reset, type="primary"):
        st.rerun()  # the button lives in a fragment, the filters in the page around it


def _when(view: View) -> str:
    if view.filters.is_custom:
        since, until = view.ends().split(" – ")
        return t("between {since} and {until}", since=since, until=until)
    length = filters.PRESETS[view.filters.range][0]().lower()
    if view.filters.is_live:
        return t("in the {range}", range=length)
    return t("in the {range} before {moment}", range=length, moment=view.clock(view.window.until))

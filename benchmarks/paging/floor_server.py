"""Serves the two lines of ``floor.py`` with the server and the options of ``fuseboard serve``."""

from __future__ import annotations

import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st

from fuseboard_dashboard.theme import streamlit_options
from fuseboard_server import allocator, garbage
from fuseboard_server.composition import SERVER_OPTIONS, _configure_streamlit
from fuseboard_server.running import Server, configured


@asynccontextmanager
async def lifespan(_):
    yield


def main(port: int) -> None:
    allocator.prefer()
    _configure_streamlit({**streamlit_options(), **SERVER_OPTIONS})
    app = st.App(Path(__file__).with_name("floor.py"), lifespan=lifespan)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", port))
        Server(configured(app), garbage.calm).run(sockets=[listening])


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Whether people could come back from a provider to the dashboard that they started from."""

from __future__ import annotations

from urllib.parse import urlsplit

import click

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.login.oidc import CALLBACK, Oidc
from fuseboard_server.public import EXAMPLE, Front
from fuseboard_server.sockets import is_loopback


def check_front(front: Front, host: str) -> None:
    """Refuse an address that nobody could come back to from a provider; warn of one in the clear.

    Args:
        front: How people reach the dashboard.
        host: What it listens on.

    Raises:
        CommandError: If logging in could not work.
    """
    if not isinstance(front.login, Oidc):
        return
    if front.public is None and not is_loopback(host):
        raise CommandError(
            "--oidc-config needs the address that people open, for the way back from the provider: "
            f"name it with --ui-url, like {EXAMPLE}",
            Exit.USAGE,
        )
    wanted = front.login.redirect_uri
    if wanted not in {"", f"{front.address}{CALLBACK}"}:
        raise CommandError(
            f"redirect_uri is {wanted}, and the dashboard is at {front.address}. Say --ui-url "
            f"{wanted.removesuffix(CALLBACK)}, or leave redirect_uri out: it follows from that.",
            Exit.USAGE,
        )
    parts = urlsplit(front.address)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        click.echo(
            f"warning: {front.address} is plain HTTP: whoever can read the network can log in as "
            "anybody who is logged in; give the proxy TLS and --ui-url https://…",
            err=True,
        )

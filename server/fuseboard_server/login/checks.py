"""Whether people could come back from a provider to the dashboard that they started from."""

from __future__ import annotations

from urllib.parse import urlsplit

import click

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.login.oidc import CALLBACK, Oidc
from fuseboard_server.public import EXAMPLE, Front
from fuseboard_server.sockets import is_loopback


def check_front(front: Front, host: str) -> None:
    """Refuse an address that nobody could come back to; warn of one in the clear or open to all.

    Args:
        front: How people reach the dashboard.
        host: What it listens on.

    Raises:
        CommandError: If logging in could not work.
    """
    _warn_of_no_login(front)
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


def _warn_of_no_login(front: Front) -> None:
    # It listens on loopback, and yet a proxy makes it everybody's.
    if front.login is None and front.public is not None and not is_loopback(front.public.host):
        click.echo(
            f"warning: the dashboard asks for no login: whoever can open {front.address} sees "
            "everything and can mute alerts, unless the proxy logs people in. Set --oidc-config "
            "FILE, or --trust-user-header NAME if the proxy says who it is.",
            err=True,
        )

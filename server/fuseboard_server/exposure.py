"""What may be reached from other machines, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field

import click

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.sockets import is_loopback


@dataclass(frozen=True, slots=True)
class Doors:
    """Where a server listens, and what it asks for there.

    Attributes:
        host: Address of OTLP and the read API.
        ui_host: Address of the dashboard.
        token: What senders need; None: nothing.
        read_token: What readers over the read API need; None: nothing.
        has_login: Whether the dashboard lets in only who is logged in.
        ui_flag: What changes ``ui_host``.
    """

    host: str
    ui_host: str
    token: str | None = field(default=None, repr=False)
    read_token: str | None = field(default=None, repr=False)
    has_login: bool = False
    ui_flag: str = "--ui-host"

    def open_ones(self) -> list[str]:
        """Return what anybody on the network could do, in words, each with its remedy."""
        found = []
        if not is_loopback(self.host):
            if self.token is None:
                found.append("send telemetry (set --token or --token-file)")
            if self.read_token is None:
                found.append("read the calls over the read API (set --read-token)")
        if not is_loopback(self.ui_host) and not self.has_login:
            found.append(
                "open the dashboard, which asks for no login (set --oidc-config FILE, or "
                "--trust-user-header NAME behind a proxy that logs people in, or keep it here with "
                f"{self.ui_flag} 127.0.0.1)"
            )
        return found


def check_exposure(doors: Doors, insecure: bool) -> None:
    """Refuse to open a door to the network, or warn of it.

    Args:
        doors: Where the server is about to listen.
        insecure: Whether that was asked for in so many words.

    Raises:
        CommandError: If a door would be open and was not asked to be.
    """
    found = doors.open_ones()
    if not found:
        return
    hosts = " and ".join(
        dict.fromkeys(host for host in (doors.host, doors.ui_host) if not is_loopback(host))
    )
    what = "; ".join(found)
    if not insecure:
        raise CommandError(
            f"listening on {hosts}, without authentication anybody there could {what}. "
            "Keep 127.0.0.1, or accept the risk with --insecure.",
            Exit.USAGE,
        )
    click.echo(
        f"warning: listening on {hosts} without authentication (--insecure): anybody there can "
        f"{what}",
        err=True,
    )

"""The options that say how people log in to the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.settings import ENV_OIDC_CONFIG

if TYPE_CHECKING:
    from fuseboard_server.login import Login
    from fuseboard_server.login.oidc import Oidc
    from fuseboard_server.login.trusted_header import Network


class HeaderName(click.ParamType[str]):
    """The name of a header."""

    name = "header"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check, or fail with an example."""
        from fuseboard_server.login.trusted_header import parse_name

        try:
            return parse_name(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Proxy(click.ParamType["Network"]):
    """The address or network of a proxy."""

    name = "cidr"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Network:
        """Parse, or fail with an example."""
        from fuseboard_server.login.trusted_header import parse_network

        try:
            return parse_network(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class OidcFile(click.ParamType["Oidc"]):
    """A file that says how people log in through OpenID Connect."""

    name = "file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Oidc:
        """Read, or fail without repeating a secret."""
        from fuseboard_server.login.oidc_file import read

        try:
            return read(Path(str(value)).expanduser())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def login(command: Any) -> Any:
    """Add the options to a command."""
    header = click.option(
        "--trust-user-header",
        type=HeaderName(),
        help="Log people in by this header, like X-Forwarded-User, that an authenticating proxy "
        "sets; without it nothing is shown.",
    )
    proxy = click.option(
        "--trusted-proxy",
        "trusted_proxies",
        type=Proxy(),
        multiple=True,
        help="Believe that header on connections from this address or network  "
        "[default: this machine]. May be repeated.",
    )
    oidc = click.option(
        "--oidc-config",
        type=OidcFile(),
        envvar=ENV_OIDC_CONFIG,
        show_envvar=True,
        help="Log people in through OpenID Connect, as this TOML file says.",
    )
    return header(proxy(oidc(command)))


def login_of(
    trust_user_header: str | None, trusted_proxies: tuple[Network, ...], oidc_config: Oidc | None
) -> Login | None:
    """Return the login that a command line asks for; None for none.

    Raises:
        UsageError: If the options exclude each other.
        CommandError: If a package is missing that the login needs.
    """
    if trust_user_header and oidc_config:
        raise click.UsageError("give either --trust-user-header or --oidc-config: one login")
    if trusted_proxies and not trust_user_header:
        raise click.UsageError(
            "--trusted-proxy says whose header is believed; name it with --trust-user-header NAME"
        )
    if oidc_config:
        _require_authlib()
        return oidc_config
    if not trust_user_header:
        return None
    from fuseboard_server.login.trusted_header import LOOPBACK, TrustedHeader

    return TrustedHeader(trust_user_header, trusted_proxies or LOOPBACK)


def _require_authlib() -> None:
    try:
        import authlib.integrations.starlette_client  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f"--oidc-config needs a package that is not installed ({error.name}): "
            "pip install 'fuseboard[oidc]'",
            Exit.MISSING_EXTRA,
        ) from error

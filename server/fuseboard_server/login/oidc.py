"""Log in through an OpenID Connect provider: what was configured, and who is let in.

Streamlit does the exchange with the provider (what ``st.login`` does) and keeps the answer in a
signed cookie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

CALLBACK: Final = "/oauth2callback"
"""Where Streamlit waits for the provider's answer, below the dashboard's address."""
DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Oidc:
    """A provider, and whom of its people the dashboard is for.

    Attributes:
        metadata_url: The provider's ``.well-known/openid-configuration``.
        client_id: What the provider calls this dashboard.
        client_secret: What it proves that by.
        cookie_secret: Signs the cookies of who is logged in.
        domains: Whose e-mail addresses are let in; in lower case.
        emails: Single ones, in lower case.
        trusts_unverified: Whether addresses count of which the provider says nothing.
        admits_anyone: Whether everybody is let in whom the provider knows.
        session_seconds: How long a login lasts.
        client_kwargs: Further parameters of the provider's, as Streamlit has them.
        redirect_uri: As the file has it; empty: follows from the dashboard's address.
    """

    metadata_url: str
    client_id: str
    client_secret: str = field(repr=False)
    cookie_secret: str = field(repr=False)
    domains: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    trusts_unverified: bool = False
    admits_anyone: bool = False
    session_seconds: float = DAY
    client_kwargs: Mapping[str, str] = field(default_factory=dict)
    redirect_uri: str = ""
    can_log_out: ClassVar[bool] = True

    @property
    def provider(self) -> str:
        """Return the provider's host."""
        return urlsplit(self.metadata_url).hostname or ""

    @property
    def words(self) -> str:
        """Return what is on, in words."""
        return f"OpenID Connect at {self.provider}"

    def callback(self, address: str) -> str:
        """Return what the provider has to know as the way back to a dashboard's address."""
        return f"{address}{CALLBACK}"

    def admits(self, claims: Mapping[str, Any]) -> bool:
        """Tell whether somebody is let in.

        Args:
            claims: Of the provider's signed token.
        """
        if self.admits_anyone:
            return True
        email = str(claims.get("email") or "")
        # Providers that check addresses say so. Where one says nothing, people may have typed any.
        is_verified = str(claims.get("email_verified", self.trusts_unverified)).lower() == "true"
        # Other letters become these in lower case, such as the sign of Kelvin a k.
        if not is_verified or email.count("@") != 1 or not email.isascii():
            return False
        email = email.lower()
        return email in self.emails or email.partition("@")[2] in self.domains

    def secrets(self, address: str) -> dict[str, Any]:
        """Return Streamlit's secrets for it.

        Args:
            address: The dashboard's, as people open it.
        """
        own: dict[str, Any] = {
            "redirect_uri": self.callback(address),
            "cookie_secret": self.cookie_secret,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "server_metadata_url": self.metadata_url,
        }
        if self.client_kwargs:
            own["client_kwargs"] = dict(self.client_kwargs)
        return {"auth": own}

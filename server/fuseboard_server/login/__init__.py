"""Who may open the dashboard: told by a trusted proxy, or through OpenID Connect."""

from __future__ import annotations

from typing import TypeAlias

from fuseboard_server.login.oidc import Oidc
from fuseboard_server.login.trusted_header import TrustedHeader

__all__ = ["Login", "Oidc", "TrustedHeader"]

Login: TypeAlias = TrustedHeader | Oidc

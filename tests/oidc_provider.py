"""A small OpenID Connect provider: discovery, consent, codes with PKCE, signed tokens, logging out.

It is strict where providers are: a wrong client, code, verifier or way back is refused.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.processes import free_port, wait_until

CLIENT_ID = "fuseboard"
CLIENT_SECRET = "client-s3cret-of-the-test"


@dataclass
class Provider:
    """One provider, in a thread of this process.

    Attributes:
        people: Login name → claims of whoever may log in at it.
        forges: Whether tokens are signed by a key that the provider does not publish.
    """

    people: dict[str, dict[str, Any]]
    redirect_uri: str = ""
    port: int = field(default_factory=free_port)
    forges: bool = False
    logged_out: list[dict[str, str]] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    _server: uvicorn.Server | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def metadata_url(self) -> str:
        return f"{self.issuer}/.well-known/openid-configuration"

    def start(self) -> Provider:
        config = uvicorn.Config(
            self._app(), host="127.0.0.1", port=self.port, log_level="warning", ws="none"
        )
        self._server = uvicorn.Server(config)
        threading.Thread(target=self._server.run, daemon=True).start()
        server = self._server
        wait_until(lambda: server.started, seconds=20, what="the provider's start")
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
            wait_until(self._is_down, seconds=20, what="the provider's end")

    def _is_down(self) -> bool:
        return (
            self._server is None
            or not self._server.servers
            or not any(server.is_serving() for server in self._server.servers)
        )

    def _app(self) -> Starlette:
        return Starlette(routes=[
            Route("/.well-known/openid-configuration", self._discovery),
            Route("/authorize", self._authorize),
            Route("/as/{name}", self._consent),
            Route("/token", self._token, methods=["POST"]),
            Route("/jwks", self._jwks),
            Route("/end", self._end),
        ])  # fmt: skip

    async def _discovery(self, _: Request) -> Response:
        return JSONResponse({
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/end",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        })  # fmt: skip

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        is_right = (
            asked.get("client_id") == CLIENT_ID
            and asked.get("redirect_uri") == self.redirect_uri
            and asked.get("response_type") == "code"
            and asked.get("code_challenge_method") == "S256"
            and "openid" in asked.get("scope", "").split()
        )
        if not is_right:
            return HTMLResponse(f"<h1>refused</h1><pre>{asked}</pre>", 400)
        links = "".join(
            f'<p><a href="/as/{name}?{urlencode(asked)}">{name}</a></p>' for name in self.people
        )
        nobody = urlencode({"error": "access_denied", "state": asked["state"]})
        cancel = f'<p><a href="{self.redirect_uri}?{nobody}">cancel</a></p>'
        icon = '<link rel="icon" href="data:,">'
        return HTMLResponse(f"{icon}<h1>Who are you?</h1>{links}{cancel}")

    async def _consent(self, request: Request) -> Response:
        asked = dict(request.query_params)
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**asked, "name": request.path_params["name"]}
        answer = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{self.redirect_uri}?{answer}", 302)

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            sent = {key: str(value) for key, value in form.items()}
        given = self._codes.pop(sent.get("code", ""), None)
        verifier = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        own = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {own}":
            return JSONResponse({"error": "invalid_client"}, 401)
        if given is None or challenge != given["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({
            "access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": 600,
            "id_token": self._id_token(given["name"], given["nonce"]),
        })  # fmt: skip

    def _id_token(self, name: str, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT_ID, "sub": name, "nonce": nonce, "iat": now,
            "exp": now + 600, **self.people[name],
        }  # fmt: skip
        key = RSAKey.generate_key(2048) if self.forges else self._key
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)

    async def _jwks(self, _: Request) -> Response:
        return JSONResponse({"keys": [self._key.as_dict(private=False)]})

    async def _end(self, request: Request) -> Response:
        self.logged_out.append(dict(request.query_params))
        return RedirectResponse(request.query_params["post_logout_redirect_uri"], 302)

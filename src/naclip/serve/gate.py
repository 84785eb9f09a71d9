"""Who may come in: names of this host, pages of this origin, holders of the token."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from dataclasses import dataclass

from starlette.datastructures import Headers

from naclip.serve.problems import Problem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
GUARDED = "/v1/"  # what a token protects: what begins so, and these paths
GUARDED_PATHS = ("/metrics", "/health", "/setup", "/predict", "/versions")
FETCHES = ("same-origin", "none")  # Sec-Fetch-Site of our own page, and of a person's typing


@dataclass(frozen=True)
class Gate:
    """hosts: names that the Host header may have; none: any."""

    token: str = ""
    hosts: tuple[str, ...] = ()

    def check(self, path: str, headers: Headers) -> None:
        """Raises the problem of a request that may not come in."""
        host = _host_name(headers.get("host", ""))
        if self.hosts and host not in self.hosts:
            # Another site's name that resolves to this address would pass as our own origin.
            raise Problem(
                403, f"host {host!r} is not served here: start with --allow-host {host}"[:300]
            )
        protected = path.startswith(GUARDED) or path in GUARDED_PATHS
        if protected and not self._own_page(headers):
            raise Problem(403, "requests of other sites' pages are refused")
        if protected and self.token:
            given = headers.get("authorization", "")
            if not hmac.compare_digest(_token_of(given), self.token.encode()):
                detail = "a token is required" if not given else "the token is not the right one"
                raise Problem(
                    401,
                    f"{detail}: send the header Authorization: Bearer TOKEN",
                    headers={"WWW-Authenticate": 'Bearer realm="naclip"'},
                )

    def _own_page(self, headers: Headers) -> bool:
        """What the browser says of the page that asks; plain http to a network says Origin only."""
        if "sec-fetch-site" in headers:
            return headers["sec-fetch-site"] in FETCHES
        if "origin" not in headers:
            return True  # no page at all
        origin = headers["origin"].partition("://")[2].lower()
        return origin == headers.get("host", "").lower() or _host_name(origin) in self.hosts


def _token_of(authorization: str) -> bytes:
    """`Bearer TOKEN`; or the password of `Basic`, which is all that Label Studio can send."""
    scheme, _, sent = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return sent.strip().encode("latin-1")  # the header's bytes as they came
    if scheme.lower() == "basic":
        try:
            return b64decode(sent, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


def _host_name(host: str) -> str:
    """`example.org:8000` -> `example.org`, `[::1]:8000` -> `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()

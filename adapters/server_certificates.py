"""Reads the TLS certificate of a server by a connection of its own, which is trusted as the SDKs trust theirs."""

from __future__ import annotations

import base64
import http.client
import ssl
from urllib.parse import SplitResult, unquote, urlsplit

from adapters.s3.store import require_file
from adapters.sockets import word
from core.errors import Unreachable
from core.installations.server_certificates import ServerCertificate, of_peer

SECONDS = 4.0


def read_certificate(url: str, *, ca_bundle: str = "", proxy: str = "") -> ServerCertificate | None:
    """That of an https address; None for another. `ca_bundle`: a file of the certificates that are trusted, by default
    the system's; `proxy`: an http address. Raises Unreachable, and Invalid for a file that is not there."""
    there = urlsplit(url)
    if there.scheme != "https":
        return None
    require_file(ca_bundle)
    context = ssl.create_default_context(cafile=ca_bundle or None)
    connection = _connection(there, urlsplit(proxy), context)
    try:
        connection.connect()
        return of_peer(connection.sock.getpeercert())
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"the certificate of {there.hostname} is not trusted: {error.verify_message}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"the certificate of {there.hostname} could not be read ({word(error)})") from None
    finally:
        connection.close()


def _connection(there: SplitResult, proxy: SplitResult, context: ssl.SSLContext) -> http.client.HTTPSConnection:
    host, port = there.hostname or "", there.port or 443
    if not proxy.hostname:
        return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
    connection = http.client.HTTPSConnection(proxy.hostname, proxy.port or 80, timeout=SECONDS, context=context)
    connection.set_tunnel(host, port, _who(proxy))
    return connection


def _who(proxy: SplitResult) -> dict[str, str]:
    """The header that lets us through a proxy whose address has a user's name."""
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

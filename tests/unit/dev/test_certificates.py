"""Certificates that TLS accepts, and kubeconfigs that carry them."""

import asyncio
import ssl
from base64 import b64decode
from pathlib import Path

import pytest
import yaml

from listening import drop_connections
from pequod.dev.kubeconfig import kubeconfig
from pequod.dev.pki import Authority, Credential, write_private


def _context(
    folder: Path, purpose: ssl.Purpose, trusted: Authority, own: Credential
) -> ssl.SSLContext:
    context = ssl.create_default_context(purpose, cadata=trusted.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    (folder / "crt").write_bytes(own.certificate)
    (folder / "key").write_bytes(own.key)
    context.load_cert_chain(folder / "crt", folder / "key")
    return context


async def _handshake(tmp_path: Path, trusted: Authority, authority: Authority) -> dict[str, object]:
    """Let a client and a server of one authority meet; the server demands a certificate."""
    server_tls = _context(
        tmp_path,
        ssl.Purpose.CLIENT_AUTH,
        authority,
        authority.server("server", addresses=("127.0.0.1", "localhost")),
    )
    server_tls.verify_mode = ssl.CERT_REQUIRED
    client_tls = _context(
        tmp_path, ssl.Purpose.SERVER_AUTH, trusted, authority.client("me", groups=("us",))
    )
    seen: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(writer.get_extra_info("peercert"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls)
        async with asyncio.timeout(10):
            certificate = await seen
            writer.close()
            await writer.wait_closed()
    await drop_connections(port)
    return certificate


async def test_client_and_server_of_one_authority_trust_each_other(tmp_path: Path) -> None:
    authority = Authority()
    certificate = await _handshake(tmp_path, authority, authority)
    assert certificate["subject"] == ((("organizationName", "us"),), (("commonName", "me"),))


async def test_the_server_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await _handshake(tmp_path, Authority(), Authority())


def test_a_kubeconfig_carries_everything_inline() -> None:
    user = Credential(certificate=b"certificate", key=b"key")
    text = kubeconfig(name="here", server="https://x:1", authority=b"authority", user=user)
    config = yaml.safe_load(text)
    assert config["current-context"] == "here"
    (cluster,), (credential,) = config["clusters"], config["users"]
    assert b64decode(cluster["cluster"]["certificate-authority-data"]) == b"authority"
    assert b64decode(credential["user"]["client-key-data"]) == b"key"


def test_a_private_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"secret")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600

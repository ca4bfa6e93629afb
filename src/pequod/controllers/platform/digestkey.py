"""The key of the digests in statuses: one for all replicas, kept in a Secret of the operator's."""

import secrets
from base64 import b64encode

from pequod.graph.digests import KEY_BYTES
from pequod.kube.client import Client
from pequod.kube.errors import AlreadyExistsError, NotFoundError
from pequod.kube.kinds import SECRETS
from pequod.kube.objects import Secret

NAME = "pequod-digests"
_FIELD = "key"


async def digest_key(client: Client, namespace: str) -> bytes:
    """The key, made when there is none yet."""
    try:
        return await _read(client, namespace)
    except NotFoundError:
        pass
    key = secrets.token_bytes(KEY_BYTES)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": namespace},
        "immutable": True,
        "data": {_FIELD: b64encode(key).decode()},
    }
    try:
        await client.create(SECRETS, secret)
    except AlreadyExistsError:
        # Another replica was faster.
        return await _read(client, namespace)
    return key


async def _read(client: Client, namespace: str) -> bytes:
    found = await client.get(SECRETS, NAME, namespace=namespace, type=Secret)
    key = found.content.get(_FIELD, b"")
    if len(key) < KEY_BYTES:
        raise ValueError(
            f"Secret/{namespace}/{NAME} does not hold a key of {KEY_BYTES} bytes; delete it, and "
            "the next start makes another one"
        )
    return key

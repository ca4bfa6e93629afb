"""Free ports on an address of this machine."""

import errno
import socket
from contextlib import ExitStack, closing

from pequod.dev.components import LOOPBACK
from pequod.dev.failure import DevError
from pequod.dev.layout import Ports


def free_ports(host: str, *, api_server: int = 0) -> Ports:
    """Distinct ports that nobody listens on now; `api_server` insists on one for the API server.

    The API server and the registry listen on `host`, the others on the loopback address.
    """
    with ExitStack() as held:
        return Ports(
            api_server=_bound(held, host, api_server),
            registry=_bound(held, host),
            etcd_client=_bound(held, LOOPBACK),
            etcd_peer=_bound(held, LOOPBACK),
            controller_manager=_bound(held, LOOPBACK),
            scheduler=_bound(held, LOOPBACK),
            operator_health=_bound(held, LOOPBACK),
            operator_metrics=_bound(held, LOOPBACK),
        )


def is_taken(address: str, port: int) -> bool:
    """Whether somebody listens there now."""
    with closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _bound(held: ExitStack, address: str, port: int = 0) -> int:
    listener = held.enter_context(closing(socket.socket()))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        raise DevError(
            f"port {port} of {address} cannot be used: {error.strerror}",
            next_step="Leave --port away to get a free one, or name another.",
        ) from error
    number: int = listener.getsockname()[1]
    return number

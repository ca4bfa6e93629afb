"""Free ports on an address of this machine."""

import errno
import socket
from contextlib import ExitStack, closing

from pequod.dev.failure import DevError
from pequod.dev.layout import Ports


def free_ports(address: str, *, api_server: int = 0) -> Ports:
    """Distinct ports that nobody listens on now; `api_server` insists on one for the API server."""
    with ExitStack() as held:
        wanted = (api_server, 0, 0, 0, 0)
        taken = [_bound(held, address, port) for port in wanted]
    api, etcd_client, etcd_peer, controller_manager, scheduler = taken
    return Ports(
        api_server=api,
        etcd_client=etcd_client,
        etcd_peer=etcd_peer,
        controller_manager=controller_manager,
        scheduler=scheduler,
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


def _bound(held: ExitStack, address: str, port: int) -> int:
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

"""What a real node leaves on the machine when its processes are gone, and its removal."""


def remove_leftovers(name: str) -> None:
    """Remove what outlives the processes of the control plane of that name."""

"""Volumes of the real node, which are directories that belong to root."""

from graphs import Graphs
from instances import Foreground, eventually

CLAIMS = "persistentvolumeclaims"


def own_volume(graphs: Graphs, node: Foreground, claim: str, user: int) -> None:
    """Give the directory of a claim to a user: the node's simple volumes know no fsGroup."""
    eventually(lambda: "volumeName" in (graphs.find(CLAIMS, claim) or {}).get("spec", {}))
    name = graphs.live(CLAIMS, claim)["spec"]["volumeName"]
    volume = graphs.api.get(f"/api/v1/persistentvolumes/{name}").body
    node.execute("chown", f"{user}:{user}", volume["spec"]["hostPath"]["path"])

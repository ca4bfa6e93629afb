"""How programs are told where L1 is: a URL may carry a key, and then it is a secret."""

from pequod.controllers.rollup.components.chain import Chain, Component
from pequod.controllers.rollup.components.objects import from_secret
from pequod.kube.objects import Object

L1_URL = "l1-url"
"""Key of a component's Secret."""


def l1_secret(chain: Chain) -> dict[str, str]:
    """What the Secret of a component holds for it; nothing when the URL is in the spec."""
    if chain.spec.l1.rpc_url_secret_ref is None:
        return {}
    return {L1_URL: chain.configuration.l1_url}


def l1_environment(chain: Chain, component: Component, variable: str) -> Object:
    """The variable that a program reads it from."""
    if chain.spec.l1.rpc_url_secret_ref is None:
        return {"name": variable, "value": chain.configuration.l1_url}
    return from_secret(variable, chain.object_name(component), L1_URL)

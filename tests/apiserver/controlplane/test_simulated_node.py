"""On the simulated node things become ready as they would on a real one, without a container."""

from clusters import Api


def test_a_deployment_becomes_available(api: Api, namespace: str) -> None:
    here = f"--namespace={namespace}"
    api.kubectl("create", "deployment", "web", "--image=any", "--replicas=3", here)
    api.kubectl("wait", "--for=condition=Available", "--timeout=60s", "deployment/web", here)
    pods = api.get(f"/api/v1/namespaces/{namespace}/pods").body["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3


def test_a_job_completes(api: Api, namespace: str) -> None:
    here = f"--namespace={namespace}"
    api.kubectl("create", "job", "once", "--image=any", here)
    api.kubectl("wait", "--for=condition=Complete", "--timeout=60s", "job/once", here)


def test_a_claim_is_bound_and_its_volume_goes_with_it(api: Api, namespace: str) -> None:
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    assert api.create(claims, claim).code == 201
    here = f"--namespace={namespace}"
    bound = "--for=jsonpath={.status.phase}=Bound"
    api.kubectl("wait", bound, "--timeout=60s", "persistentvolumeclaim/data", here)
    volume = api.get(f"{claims}/data").body["spec"]["volumeName"]
    api.kubectl("delete", "persistentvolumeclaim/data", here)
    api.kubectl("wait", "--for=delete", "--timeout=60s", f"persistentvolume/{volume}")

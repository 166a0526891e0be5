"""A large synthetic cluster as `kubectl get nodes,pods -A -o json` prints it; the same seed, the same bytes.

Nodes of eight GPUs under the GPU operator, on each two DaemonSet pods, here and there a system pod, and what
serves: Deployments of vLLM of 1, 2 and 4 GPUs and LeaderWorkerSet groups over two whole nodes. A pod is
about 4 kB, with its probes, volumes and statuses; objects are written one by one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

Object = dict[str, Any]

GPUS_PER_NODE = 8
GPU = "nvidia.com/gpu"
CREATED = "2026-11-01T08:00:00Z"
STARTED = "2026-11-01T08:04:10Z"
MODELS = (
    ("meta-llama/Llama-3.1-8B-Instruct", "llama-31-8b", 1),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen-25-7b", 1),
    ("mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small", 2),
    ("Qwen/Qwen2.5-32B-Instruct", "qwen-25-32b", 2),
    ("meta-llama/Llama-3.1-70B-Instruct", "llama-31-70b", 4),
    ("Qwen/Qwen2.5-72B-Instruct", "qwen-25-72b", 4),
)
TEAMS = tuple(f"team-{number:02}" for number in range(40))
GROUP = ("deepseek-ai/DeepSeek-R1", "deepseek-r1")
NODE_LABELS = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
    "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel",
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
    "node.kubernetes.io/instance-type": "hgx-h100-8",
    "nvidia.com/cuda.driver.major": "550",
    "nvidia.com/cuda.runtime.major": "12",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.count": str(GPUS_PER_NODE),
    "nvidia.com/gpu.deploy.dcgm-exporter": "true",
    "nvidia.com/gpu.deploy.device-plugin": "true",
    "nvidia.com/gpu.deploy.driver": "true",
    "nvidia.com/gpu.family": "hopper",
    "nvidia.com/gpu.machine": "HGX-H100",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.config.state": "success",
    "nvidia.com/mig.strategy": "single",
}


def write_cluster(path: Path, nodes: int, pods: int, indent: bool = False, seed: int = 1) -> None:
    """Write the list of a cluster: an object a line, or indented as kubectl prints it."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": ""}, "items": [\n')
        for number, one in enumerate(objects(nodes, pods, seed)):
            text = json.dumps(one, indent=4) if indent else json.dumps(one, separators=(",", ":"))
            file.write(",\n" * (number > 0) + (text.replace("\n", "\n        ") if indent else text))
        file.write("]}\n")


def objects(nodes: int, pods: int, seed: int = 1) -> Iterator[Object]:
    """The nodes, then the pods."""
    chance = random.Random(seed)
    names = [f"gpu-{number:05}.example.com" for number in range(nodes)]
    for number, name in enumerate(names):
        yield node(name, number, chance)
    count = 0
    for count, one in enumerate(all_pods(names, pods, chance), start=1):  # noqa: B007
        yield one
    assert count == pods, (count, pods)


def all_pods(names: list[str], pods: int, chance: random.Random) -> Iterator[Object]:
    """First what runs on every node, then what serves, then what waits for room."""
    count = 0
    for name in names:
        for daemon in ("nvidia-dcgm-exporter", "node-exporter"):
            yield pod(chance, "gpu-operator", f"{daemon}-{tag(count)}", ("DaemonSet", daemon), name)
            count += 1
    grouped = len(names) // 10 // 2 * 2
    for group in range(grouped // 2):
        for worker in range(2):
            yield group_pod(chance, group, worker, names[2 * group + worker])
            count += 1
    waiting = []
    for name in names[grouped:]:
        left = GPUS_PER_NODE
        while left:
            model, short, gpus = chance.choice(MODELS)
            if chance.random() < 0.1:
                waiting.append((model, short, gpus))
            if gpus > left or chance.random() < 0.1:
                left -= min(left, 1)  # stays free
                continue
            if count < pods:
                yield server(chance, count, model, short, gpus, name)
                count += 1
            left -= gpus
    while count < pods:
        if waiting and chance.random() < 0.05:
            yield server(chance, count, *waiting.pop(), None)
        else:
            owner = ("ReplicaSet", "gateway-7d9c6b5f48")
            yield pod(chance, "kube-system", f"{owner[1]}-{tag(count)}", owner, chance.choice(names))
        count += 1


def tag(number: int) -> str:
    """What Kubernetes puts behind a pod's name: five of its 27 signs, another for each number."""
    signs = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(signs[number // 27**place % 27] for place in range(5))


def uid(chance: random.Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


def node(name: str, number: int, chance: random.Random) -> Object:
    """A node; a few are cordoned, not ready, or have a GPU withdrawn."""
    odd = chance.random()
    labels = NODE_LABELS | {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"eu-{number % 3}",
    }
    capacity = {
        "cpu": "192",
        "ephemeral-storage": "3750561928Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "2113409268Ki",
        GPU: "8",
        "pods": "110",
    }
    allocatable = capacity | {"cpu": "191450m", "memory": "2108214516Ki", GPU: "7" if odd < 0.01 else "8"}
    spec: Object = {"podCIDR": "10.0.0.0/24", "providerID": f"bare://{name}"}
    if 0.01 < odd < 0.02:
        spec["unschedulable"] = True
        spec["taints"] = [{"effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable"}]
    ready = "Unknown" if 0.02 < odd < 0.025 else "True"
    conditions = [condition(kind, "False") for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")] + [
        condition("Ready", ready)
    ]
    images = [
        {"names": [f"registry.example.com/serving/image-{i}@sha256:{i:064x}"], "sizeBytes": 9_000_000_000 + i}
        for i in range(12)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "creationTimestamp": CREATED,
            "labels": labels,
            "name": name,
            "resourceVersion": str(10_000 + number),
            "uid": uid(chance),
        },
        "spec": spec,
        "status": {
            "addresses": [{"address": name, "type": "Hostname"}],
            "allocatable": allocatable,
            "capacity": capacity,
            "conditions": conditions,
            "images": images,
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.32.4", "operatingSystem": "linux"},
        },
    }


def condition(kind: str, status: str) -> Object:
    return {
        "lastHeartbeatTime": STARTED,
        "lastTransitionTime": CREATED,
        "message": f"kubelet reports {kind} {status}",
        "reason": f"Kubelet{kind}",
        "status": status,
        "type": kind,
    }


def server(chance: random.Random, number: int, model: str, short: str, gpus: int, on: str | None) -> Object:
    """A pod of a Deployment of vLLM; without a node one that waits."""
    team = chance.choice(TEAMS)
    owner = ("ReplicaSet", f"{short}-{chance.randrange(16**9):09x}")
    args = ["--model", model, "--tensor-parallel-size", str(gpus), "--max-model-len", "32768"]
    args += ["--gpu-memory-utilization", "0.92", "--port", "8000", "--enable-prefix-caching"]
    return pod(chance, team, f"{owner[1]}-{tag(number)}", owner, on, args=args, gpus=gpus, app=short)


def group_pod(chance: random.Random, group: int, worker: int, on: str) -> Object:
    """One of the two pods of a LeaderWorkerSet group."""
    model, short = GROUP
    name = f"{short}-{group}" if worker == 0 else f"{short}-{group}-{worker}"
    owner = ("StatefulSet", short if worker == 0 else f"{short}-{group}")
    args = ["--model", model, "--tensor-parallel-size", "8", "--pipeline-parallel-size", "2"]
    found = pod(chance, "reasoning", name, owner, on, args=args, gpus=GPUS_PER_NODE, app=short)
    found["metadata"]["labels"] |= {
        "leaderworkerset.sigs.k8s.io/name": short,
        "leaderworkerset.sigs.k8s.io/group-index": str(group),
        "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
    }
    found["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/size"] = "2"
    return found


def pod(
    chance: random.Random,
    namespace: str,
    name: str,
    owner: tuple[str, str],
    on: str | None,
    *,
    args: list[str] | None = None,
    gpus: int = 0,
    app: str = "",
) -> Object:
    """A pod as long as real ones are."""
    requests = {"cpu": f"{4000 * gpus or 150}m", "memory": f"{64 * gpus}Gi" if gpus else "256Mi"}
    limits = {"memory": requests["memory"]}
    if gpus:
        requests[GPU] = limits[GPU] = str(gpus)
    probe = {
        "failureThreshold": 120,
        "httpGet": {"path": "/health", "port": 8000, "scheme": "HTTP"},
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 5,
    }
    container = {
        "args": args or ["--log-level", "info"],
        "env": [
            {"name": "HF_HOME", "value": "/cache/huggingface"},
            {"name": "NCCL_DEBUG", "value": "WARN"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"key": "token", "name": "huggingface"}}},
        ],
        "image": "docker.io/vllm/vllm-openai:v0.11.0" if gpus else "registry.example.com/infra/agent:4.2.1",
        "imagePullPolicy": "IfNotPresent",
        "name": "vllm" if gpus else "agent",
        "ports": [{"containerPort": 8000, "name": "http", "protocol": "TCP"}],
        "readinessProbe": probe,
        "resources": {"limits": limits, "requests": requests},
        "startupProbe": probe,
        "volumeMounts": [{"mountPath": "/cache", "name": "cache"}, {"mountPath": "/dev/shm", "name": "shm"}],
    }
    tolerations = [
        {
            "effect": "NoExecute",
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
    spec: Object = {
        "containers": [container],
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 1000 if gpus else 2_000_001_000,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [*tolerations, {"effect": "NoSchedule", "key": GPU, "operator": "Exists"}],
        "volumes": [{"emptyDir": {}, "name": "cache"}, {"emptyDir": {"medium": "Memory"}, "name": "shm"}],
    }
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    status: Object = {"phase": "Pending", "qosClass": "Burstable"}
    if on is not None:
        spec["nodeName"] = on
        status = {
            "conditions": [condition(kind, "True") for kind in kinds],
            "containerStatuses": [
                {
                    "containerID": f"containerd://{chance.getrandbits(256):064x}",
                    "image": container["image"],
                    "imageID": f"docker.io/image@sha256:{7:064x}",
                    "name": container["name"],
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "state": {"running": {"startedAt": STARTED}},
                }
            ],
            "hostIP": "192.0.2.10",
            "phase": "Running",
            "podIP": f"198.51.100.{chance.randrange(1, 255)}",
            "qosClass": "Burstable",
            "startTime": STARTED,
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"prometheus.io/port": "8000", "prometheus.io/scrape": "true"},
            "creationTimestamp": CREATED,
            "labels": {"app": app or owner[1], "pod-template-hash": "7d9c6b5f48"},
            "name": name,
            "namespace": namespace,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": owner[0],
                    "name": owner[1],
                    "uid": uid(chance),
                }
            ],
            "resourceVersion": str(chance.randrange(10**6, 10**7)),
            "uid": uid(chance),
        },
        "spec": spec,
        "status": status,
    }

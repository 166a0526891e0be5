"""What is read of a cluster, and which of it the API server has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sizing.syncing.client import CONNECTING, Cluster
from sizing.syncing.failures import SyncFailure

JSON = "application/json"
FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects at its path. Of `metadata_only` ones only names, labels and owners are asked for.

    Without a `required` one there is no inventory; without another a part of it is missing.
    """

    kind: str
    plural: str
    api_version: str
    required: bool = False
    metadata_only: bool = False

    @property
    def path(self) -> str:
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/{self.plural}"

    def accept(self, form: str) -> str:
        """The Accept header for a list (`PartialObjectMetadataList`) or watch (`PartialObjectMetadata`)."""
        return f"{JSON};as={form};g=meta.k8s.io;v=v1,{JSON}" if self.metadata_only else JSON


@dataclass(frozen=True, slots=True)
class _Optional:
    kind: str
    plural: str
    group: str
    versions: tuple[str, ...] = ("v1",)
    metadata_only: bool = False


# The versions of dynamic resource allocation that clusters in use serve, the best first.
_DRA = ("v1", "v1beta2", "v1beta1")

REQUIRED = (
    Resource("Node", "nodes", "v1", required=True),
    Resource("Pod", "pods", "v1", required=True),
)
_OPTIONAL = (
    _Optional("ResourceSlice", "resourceslices", "resource.k8s.io", _DRA),
    _Optional("ResourceClaim", "resourceclaims", "resource.k8s.io", _DRA),
    _Optional("DeviceClass", "deviceclasses", "resource.k8s.io", _DRA),
    _Optional("DeviceTaintRule", "devicetaintrules", "resource.k8s.io", ("v1alpha3",)),
    _Optional("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    _Optional("PriorityClass", "priorityclasses", "scheduling.k8s.io"),
    _Optional("ReplicaSet", "replicasets", "apps", metadata_only=True),
    _Optional("Job", "jobs", "batch", metadata_only=True),
    _Optional("LeaderWorkerSet", "leaderworkersets", "leaderworkerset.x-k8s.io"),
    _Optional("RayCluster", "rayclusters", "ray.io"),
)


def find(cluster: Cluster) -> tuple[list[Resource], list[str]]:
    """Nodes and pods, and what else counts and this API server has; with warnings. Raises `SyncFailure`."""
    found, warnings = list(REQUIRED), []
    served: dict[str, list[str]] = {}
    try:
        served = _served(cluster.get("/apis", {}, CONNECTING, JSON))
    except SyncFailure as failure:
        if failure.status != FORBIDDEN:
            raise
        warnings.append("only nodes and pods are read: the cluster does not tell what else it has (403)")
    for optional in _OPTIONAL:
        version = next((v for v in optional.versions if v in served.get(optional.group, ())), None)
        if version is not None:
            api_version = f"{optional.group}/{version}"
            found.append(
                Resource(optional.kind, optional.plural, api_version, metadata_only=optional.metadata_only)
            )
    return found, warnings


def _served(groups: Mapping[str, Any]) -> dict[str, list[str]]:
    """The versions of each API group, of an APIGroupList."""
    try:
        return {
            group["name"]: [version["version"] for version in group["versions"]]
            for group in groups["groups"] or ()
        }
    except (KeyError, TypeError):
        raise SyncFailure(
            "the answer is not a list of API groups; is this a Kubernetes API?", CONNECTING
        ) from None

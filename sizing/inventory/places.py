"""Where in a file an object stands. None: the file does not say this object."""

from __future__ import annotations

from sizing.inventory.document import GpuEntry, ModelEntry, NodeEntry, ReplicaEntry, VariantEntry
from sizing.inventory.words import quoted


class FilePlaces:
    """Paths into the file that is being loaded."""

    def node(self, node: NodeEntry) -> str | None:
        return None if node.at is None else f"nodes[{node.at}]"

    def gpu(self, node: NodeEntry, gpu: GpuEntry) -> str | None:
        return None if node.at is None or gpu.at is None else f"nodes[{node.at}].gpus[{gpu.at}]"

    def model(self, model: ModelEntry) -> str | None:
        return None if model.at is None else f"models[{model.at}]"

    def variant(self, model: ModelEntry, variant: VariantEntry) -> str | None:
        if model.at is None or not variant.in_file:
            return None
        return f"models[{model.at}].variants[{variant.position}]"

    def replica(self, replica: ReplicaEntry, node: str | None = None, gpu: int | None = None) -> str | None:
        """The replica, or in it one of its nodes, or in that one of its GPUs."""
        if replica.at is None:
            return None
        spot = replica.spots.get((node, gpu)) if node is not None else None
        return spot or f"replicas[{replica.at}]"

    def placement(self, replica: ReplicaEntry, node: str | None = None) -> str | None:
        """The replica's list of nodes, or one node's list of GPUs."""
        if replica.at is None:
            return None
        spot = replica.spots.get((node, None)) if node is not None else None
        return f"{spot.removesuffix('.node')}.gpus" if spot else f"replicas[{replica.at}].placement"


class StoredPlaces(FilePlaces):
    """Names in place of paths, for what is in the tables."""

    def node(self, node: NodeEntry) -> str | None:
        return f"node {quoted(node.name)}"

    def gpu(self, node: NodeEntry, gpu: GpuEntry) -> str | None:
        return f"GPU {gpu.index} of node {quoted(node.name)}"

    def model(self, model: ModelEntry) -> str | None:
        return f"model {quoted(model.name)}"

    def variant(self, model: ModelEntry, variant: VariantEntry) -> str | None:
        return f"model {quoted(model.name)} variant {quoted(variant.name)}"

    def replica(self, replica: ReplicaEntry, node: str | None = None, gpu: int | None = None) -> str | None:
        return f"replica {quoted(replica.name)}"

    def placement(self, replica: ReplicaEntry, node: str | None = None) -> str | None:
        return self.replica(replica)

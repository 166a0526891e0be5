"""The GPUs of a node while replicas are given them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sizing.inventory.document import GpuEntry
from sizing.inventory.kubernetes.counted import Device, NodeCount
from sizing.inventory.kubernetes.wants import WHOLE, Claim, mib_of

UNKNOWN_MIB = 2048
"""Stands for all of a GPU whose memory is not known: more than a whole GPU may have in use outside."""


class Rows:
    """The GPUs of a node in the order of its pools, and what is held of each."""

    def __init__(
        self, node: NodeCount, stored: Mapping[int, GpuEntry], reserved: Collection[tuple[str, str]] = ()
    ) -> None:
        self.devices: list[Device] = []
        self.spans: dict[str, range] = {}
        self.withdrawn: dict[str, int] = {}
        self.index_of: dict[tuple[str, str], int] = {}
        for pool in node.pools:
            start = len(self.devices)
            self.devices += pool.devices
            self.spans[pool.resource] = range(start, len(self.devices))
            self.withdrawn[pool.resource] = pool.withdrawn
            for index in self.spans[pool.resource]:
                for name in (self.devices[index].name, self.devices[index].uuid):
                    if name:
                        self.index_of.setdefault((pool.resource, name), index)
        # What nothing new gets, though not all of it may be held.
        self.shut = {i for i, device in enumerate(self.devices) if device.closed}
        self.shut.update(self.index_of[name] for name in reserved if name in self.index_of)
        self.held: list[int] = [0] * len(self.devices)
        self.full: list[bool] = [False] * len(self.devices)
        self.unhealthy = {i for i, device in enumerate(self.devices) if not device.healthy}
        # Where devices were withdrawn before, so that the same ones stay the bad ones.
        self.doubtful = {
            i
            for resource, span in self.spans.items()
            if self.withdrawn[resource]
            for i in span
            if i in stored and not stored[i].healthy and i not in self.unhealthy
        }

    def fits(self, index: int, claim: Claim) -> bool:
        """Whether so much of the GPU is free, by what replicas hold."""
        if self.full[index]:
            return False
        if claim == WHOLE:
            return not self.held[index]
        memory = self.devices[index].memory_mib
        return memory is not None and self.held[index] + mib_of(claim, memory) <= memory

    def take(self, index: int, claim: Claim) -> None:
        """Hold so much of the GPU."""
        memory = self.devices[index].memory_mib
        if claim == WHOLE or memory is None:
            self.full[index] = True
        self.held[index] += 1 if memory is None else mib_of(claim, memory)

    def release(self, index: int, claim: Claim) -> None:
        """Undo `take`."""
        memory = self.devices[index].memory_mib
        self.full[index] = False
        self.held[index] -= 1 if memory is None else mib_of(claim, memory)

    def free(self, index: int) -> bool:
        """Whether nobody holds any of the GPU."""
        return not self.full[index] and not self.held[index]

    def lowest(self, resource: str, claim: Claim, taken: set[int], sound: bool = False) -> int | None:
        """The lowest GPU with room, sound and open ones first; with `sound` only such."""
        second = None
        for index in self.spans.get(resource, ()):
            if index in taken or not self.fits(index, claim):
                continue
            if index not in self.unhealthy and index not in self.doubtful and index not in self.shut:
                return index
            if second is None:
                second = index
        return None if sound else second

    def outside(self) -> dict[int, int]:
        """MiB of each GPU that nothing new gets, beside what is held of it."""
        return {index: left for index in sorted(self.shut) if (left := self._left(index))}

    def _left(self, index: int) -> int:
        memory = self.devices[index].memory_mib
        if self.full[index]:
            return 0
        return UNKNOWN_MIB if memory is None else max(0, memory - self.held[index])

    def withdraw(self) -> None:
        """Mark as many GPUs unhealthy as were withdrawn: free ones first, then held ones."""
        for resource, span in self.spans.items():
            sound = [i for i in span if i not in self.unhealthy]
            sound.sort(key=lambda i: (not self.free(i), i not in self.doubtful, -i))
            self.unhealthy.update(sound[: self.withdrawn[resource]])
        self.doubtful.clear()

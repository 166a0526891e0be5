"""A node's picture in cells: what each GPU's story is, and which neighbors share one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import zip_longest
from zlib import crc32

from sizing.admin.picture.cells import Cell, Kind, Part, Row
from sizing.domain.picture import GpuPicture, Holder, NodePicture

HUES = 8
NAMES_IN_A_CELL = 5


def hues(models: Iterable[str]) -> dict[str, int]:
    """Each model's color, of its name alone: the same on every page, also when other models come and go."""
    return {name: crc32(name.encode()) % HUES for name in models}


def row_of(
    picture: NodePicture,
    *,
    url: str,
    hues: Mapping[str, int],
    new: Mapping[int, str] = {},
    stops: Collection[str] = (),
) -> Row:
    """A node as a row. new: by GPU index, the name of a replica that would go there. stops: names of
    replicas that would stop."""
    mixed = len({gpu.type for gpu in picture.gpus}) > 1
    cells: list[Cell] = []
    run: list[GpuPicture] = []
    for gpu, after in zip_longest(picture.gpus, picture.gpus[1:]):
        run.append(gpu)
        if after is None or not _one_story(gpu, after, new):
            says = _says(run, mixed, new.get(gpu.index), stops)
            cells.append(_cell(gpu, len(run), says, hues, new.get(gpu.index), stops))
            run = []
    return Row(picture.name, url, ", ".join(picture.closed), tuple(cells), note(picture))


def note(picture: NodePicture) -> str:
    """A few words on a node: what closes it, else what is left."""
    if picture.closed:
        return ", ".join(picture.closed)
    if not picture.gpus:
        return "no GPUs"
    free = sum(gpu.whole for gpu in picture.gpus)
    if free:
        return f"{free} free"
    return "parts free" if any(gpu.free_mib > 0 and gpu.healthy for gpu in picture.gpus) else "full"


def _one_story(gpu: GpuPicture, other: GpuPicture, new: Mapping[int, str]) -> bool:
    """Whether neighbors are drawn as one cell: the same replicas hold the same of both. What nobody holds
    stays apart, so that it can be counted."""
    if new.get(gpu.index) != new.get(other.index):
        return False
    if not gpu.holders and gpu.index not in new:
        return False
    return replace(gpu, index=other.index) == other


def _cell(
    gpu: GpuPicture,
    gpus: int,
    says: str,
    hues: Mapping[str, int],
    new: str | None,
    stops: Collection[str],
) -> Cell:
    parts = tuple(
        Part(
            hues.get(holder.replica.model, 0),
            _share(holder, gpu),
            holder.replica.name in stops,
        )
        for holder in gpu.holders
    )
    kind = _kind(gpu, new, parts)
    drawn_whole = kind in (Kind.HELD, Kind.STOPS) and len(parts) == 1 and parts[0].share == 1
    named = new or (gpu.holders[0].replica.model if len(gpu.holders) == 1 else "")
    return Cell(
        kind=kind,
        says=says,
        gpus=gpus,
        hue=parts[0].hue if parts else 0,
        label=named.rpartition("/")[2],
        unhealthy=not gpu.healthy,
        parts=() if drawn_whole else parts,
    )


def _kind(gpu: GpuPicture, new: str | None, parts: tuple[Part, ...]) -> Kind:
    if new is not None:
        return Kind.NEW
    if any(part.stops for part in parts):
        return Kind.STOPS
    if len(parts) > 1 or (parts and parts[0].share < 1):
        return Kind.SHARED
    if parts:
        return Kind.HELD
    if not gpu.healthy:
        return Kind.UNHEALTHY
    return Kind.FREE if gpu.whole else Kind.OUTSIDE


def _share(holder: Holder, gpu: GpuPicture) -> float:
    if holder.claim_mib is None or not gpu.memory_mib:
        return 1.0
    return min(holder.claim_mib / gpu.memory_mib, 1.0)


def _says(run: list[GpuPicture], mixed: bool, new: str | None, stops: Collection[str]) -> str:
    gpu = run[0]
    where = f"GPU {gpu.index}" if len(run) == 1 else f"GPUs {gpu.index}–{run[-1].index}"
    if mixed:
        where += f" ({gpu.type})"
    story = [_held(holder, gpu, stops) for holder in gpu.holders[:NAMES_IN_A_CELL]]
    if len(gpu.holders) > NAMES_IN_A_CELL:
        story.append(f"and {len(gpu.holders) - NAMES_IN_A_CELL:,} more replicas")
    if not story:
        story.append("free" if gpu.whole else "held by no replica")
    if gpu.holders and gpu.free_mib > 0:
        story.append(f"{gpu.free_mib:,} MiB free")
    if gpu.used_outside_mib:
        story.append(f"{gpu.used_outside_mib:,} MiB used outside of replicas")
    if not gpu.healthy:
        story.append("unhealthy")
    if new is not None:
        story.append(f"{new} would go here")
    return f"{where}: {'; '.join(story)}"


def _held(holder: Holder, gpu: GpuPicture, stops: Collection[str]) -> str:
    replica = holder.replica
    if holder.claim_mib is None or holder.claim_mib == gpu.memory_mib:
        claim = "all of it"
    else:
        claim = f"{holder.claim_mib:,} MiB"
    state = "" if replica.state == "ready" else f", {replica.state}"
    ends = ", would stop" if replica.name in stops else ""
    return f"{replica.name} of {replica.model} holds {claim}{state}{ends}"

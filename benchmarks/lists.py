"""The admin's lists at 50,000 rows beside the same lists at 100 rows.

Run: python -m benchmarks.lists [--rows 50000] [--rounds 15]

Each row of a table is one of each other: a node with one GPU, which one replica holds, of a model and a
variant of its own with one measurement, one target and one refresh that is done.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from benchmarks.desk import Desk, Took, running
from benchmarks.target_http import Server

FEW = 100
ZONES = 6
TYPES = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L4", "NVIDIA-A100-SXM4-80GB")
FILL = "from benchmarks.lists import fill; fill({rows})"
DAY = datetime(2026, 1, 1, tzinfo=UTC)

LISTS = (
    ("node", ""),
    ("node", "?zone=zone-1"),
    ("node", "?gpu_type=NVIDIA-L4"),
    ("node", "?state=cordoned"),
    ("node", "?p=2"),
    ("gpu", ""),
    ("gpu", "?zone=zone-1"),
    ("gpu", "?held=no"),
    ("replica", ""),
    ("replica", "?state__exact=ready"),
    ("servedmodel", ""),
    ("variant", ""),
    ("benchprofile", ""),
    ("measurement", ""),
    ("target", ""),
    ("refresh", ""),
    ("benchimport", ""),
    ("clusterimport", ""),
    ("inventoryload", ""),
)


def fill(rows: int) -> None:
    """Fill an empty desk (runs inside of it)."""
    from django.db import connection

    from sizing.domain.picture import ZONE_LABEL
    from sizing.models import (
        BenchImport,
        BenchProfile,
        ClusterImport,
        Gpu,
        InventoryLoad,
        Measurement,
        Node,
        Placement,
        Refresh,
        Replica,
        ServedModel,
        Target,
        Variant,
    )

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA synchronous = OFF")
    every = range(rows)

    def make(model, values):
        return model.objects.bulk_create([model(**one) for one in values], batch_size=5_000)

    profile = BenchProfile.objects.create(name="chat", input_tokens=1024, output_tokens=256, ttft_ms=500)
    make(
        BenchProfile,
        ({"name": f"p-{n:06}", "input_tokens": 1, "output_tokens": 1, "ttft_ms": 1} for n in every[1:]),
    )
    nodes = make(
        Node,
        ({"name": f"node-{n:06}", "labels": {ZONE_LABEL: f"zone-{n % ZONES}"}, "schedulable": n % 50 != 0}
         for n in every),
    )  # fmt: skip
    gpus = make(
        Gpu,
        ({"node": node, "index": 0, "type": TYPES[n % len(TYPES)], "memory_mib": 81559}
         for n, node in enumerate(nodes)),
    )  # fmt: skip
    models = make(
        ServedModel, ({"name": f"model-{n:06}", "default_profile": profile, "priority": n % 5} for n in every)
    )
    variants = make(Variant, ({"model": model, "name": "g1", "gpus": 1, "position": 0} for model in models))
    make(
        Measurement,
        (
            {"variant": v, "profile": profile, "tok_per_sec": Decimal(10), "measured_at": DAY}
            for v in variants
        ),
    )
    replicas = make(
        Replica,
        ({"name": f"replica-{n:06}", "variant": v, "started_at": DAY} for n, v in enumerate(variants)),
    )
    pairs = list(zip(replicas, gpus, strict=True))
    make(Placement, ({"replica": replica, "gpu": gpu} for replica, gpu in pairs[: rows - rows // 10]))
    make(
        Target,
        ({"model": model, "profile": profile, "tokens_per_sec": Decimal(10 if n % 2 else 1000)}
         for n, model in enumerate(models)),
    )  # fmt: skip
    make(Refresh, ({"variant": v, "profile": profile, "state": "done", "trigger": "api"} for v in variants))
    make(BenchImport, ({"state": "failed", "trigger": "api"} for _ in every))
    make(ClusterImport, ({"name": f"file-{n:06}", "state": "failed", "trigger": "api"} for n in every))
    make(InventoryLoad, ({"name": f"file-{n:06}", "state": "loaded", "trigger": "api"} for n in every))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()

    def filled(rows: int) -> Desk:
        def with_rows(server: Server, folder: Path) -> None:
            server.manage("shell", "-v0", "-c", FILL.format(rows=rows))

        return stack.enter_context(running(with_rows))

    with ExitStack() as stack:
        few, many = filled(FEW), filled(asked.rows)
        print(f"lists at {asked.rows:,} rows beside those at {FEW}; medians of {asked.rounds}")
        for name, query in LISTS:
            path = f"/admin/sizing/{name}/"
            first = many.timed(path + query)[1]
            # A filter leaves few of the 100 rows: what there is to compare with is the page of all.
            show(
                f"{name}{query}",
                first,
                few.beside_login(path, asked.rounds),
                many.beside_login(path + query, asked.rounds),
            )


def show(what: str, first: float, few: Took, many: Took) -> None:
    ratio, by_login = many.processor / few.processor, many.ratio / few.ratio
    print(
        f"{what:<28}{few.processor:>8.1f} ms, {many.processor:>9.1f} ms of the processor: {ratio:>6.1f} x"
        f" ({by_login:.1f} x beside the login page), the first time {first:>7.1f} ms,"
        f" {many.size / 1000:>4.0f} kB",
        flush=True,
    )


if __name__ == "__main__":
    main()

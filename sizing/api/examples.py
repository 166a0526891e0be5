"""Examples for the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

ANSWER = OpenApiExample(
    "fits by preempting",
    response_only=True,
    value={
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "tok_per_sec": 5000.0,
        "per_replica_tok_per_sec": 1180.5,
        "profile": "chat",
        "variant": "h100-tp4",
        "utilization": 1.0,
        "needed": 5,
        "current": 2,
        "more": 3,
        "surplus": 0,
        "room": 3,
        "free_room": 1,
        "by_preempting": 2,
        "fits": True,
        "preempts": ["batch-embed"],
        "preemption": {
            "victims": [
                {
                    "replica": "batch-embed-3",
                    "model": "batch-embed",
                    "priority": 0,
                    "nodes": ["gpu-a2"],
                    "tok_per_sec": 900.0,
                },
                {
                    "replica": "batch-embed-4",
                    "model": "batch-embed",
                    "priority": 0,
                    "nodes": ["gpu-a3"],
                    "tok_per_sec": 900.0,
                },
            ],
            "models": [{"model": "batch-embed", "stopped": 2, "left": 4, "min_replicas": 1}],
            "optimal": True,
        },
        "current_tok_per_sec": 2361.0,
        "measurement": {
            "measured_at": "2026-11-02T09:00:00Z",
            "age_s": 3600,
            "stale": False,
            "source": "manual",
            "bound": "edge",
        },
        "reasons": [],
        "warnings": [],
    },
)
NOT_MEASURED = OpenApiExample(
    "not measured",
    response_only=True,
    value={
        "error": "qwen2.5:7b has not been measured; run `manage.py bench qwen2.5:7b --save` first",
        "code": "not_measured",
    },
)
_REFRESH = {
    "id": 17,
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "variant": "h100-tp4",
    "profile": "chat",
    "replica": None,
    "state": "queued",
    "trigger": "api",
    "requested_by": "ada",
    "save_result": True,
    "attempts": 0,
    "progress": 0,
    "message": "",
    "live": None,
    "levels": [],
    "measurement": None,
    "cancel_requested": False,
    "queued_at": "2026-11-02T08:40:00Z",
    "started_at": None,
    "heartbeat_at": None,
    "finished_at": None,
    "error": "",
}
_LEVEL = {
    "position": 1,
    "load": 0.5,
    "arrival": "poisson",
    "verdict": "pass",
    "why": "24 of 24 requests (100 %) met the SLO",
    "tok_per_sec": 128.4,
    "requests_per_sec": 0.502,
    "sent_per_sec": 0.5,
    "delay_p95_s": 0.001,
    "duration_s": 47.8,
    "sent": 24,
    "completed": 24,
    "failed": 0,
    "cut": 1,
    "conform": 24,
    "failures": {},
    "input_tokens": 1024.0,
    "output_tokens": 256.0,
    "ttft_ms": {"mean": 141.2, "p50": 139.8, "p95": 160.3, "p99": 171.0},
    "tpot_ms": {"mean": 21.4, "p50": 21.3, "p95": 22.6, "p99": 23.1},
    "e2e_ms": {"mean": 5598.2, "p50": 5571.3, "p95": 5923.3, "p99": 6061.5},
    "streamed": True,
    "counted": False,
    "cancelled": False,
    "warnings": [],
}
QUEUED = OpenApiExample("queued", response_only=True, status_codes=["202"], value=_REFRESH)
RUNNING = OpenApiExample(
    "running",
    response_only=True,
    status_codes=["200"],
    value=_REFRESH
    | {
        "replica": "llama-70b-0",
        "state": "running",
        "attempts": 1,
        "progress": 12,
        "message": "level 2, 1 requests/s: looking for a load that fails",
        "live": {
            "level": 2,
            "most": 8,
            "load": 1.0,
            "arrival": "poisson",
            "purpose": "looking for a load that fails",
            "seconds": 12.4,
            "sent": 12,
            "completed": 7,
            "failed": 0,
            "tok_per_sec": 214.6,
        },
        "levels": [_LEVEL],
        "started_at": "2026-11-02T08:40:01Z",
        "heartbeat_at": "2026-11-02T08:41:09Z",
    },
)
NOT_BENCHABLE = OpenApiExample(
    "not benchable",
    response_only=True,
    value={"error": "no replica of qwen2.5:7b (l40s) is marked benchable", "code": "not_benchable"},
)
ACTIVE_ALREADY = OpenApiExample(
    "active already",
    response_only=True,
    value={
        "error": "refresh 17 is running for meta-llama/Llama-3.1-70B-Instruct (h100-tp4) on chat already",
        "code": "conflict",
    },
)
_SWEEP = {
    "arrival": "poisson",
    "levels": 3,
    "tok_per_sec": 2498.7,
    "bound": "edge",
    "load": 40.2,
    "bracket": "2,499 tok/s; the next level tried, 4,596, failed",
    "warnings": [],
    "counts": True,
}
PREVIEW = OpenApiExample(
    "a broken file beside a right one",
    response_only=True,
    status_codes=["200"],
    value={
        "files": [
            {
                "file": "stage_1_lifecycle_metrics.json",
                "tool": "inference-perf",
                "points": [{"output_tok_s": 2498.7, "verdict": "pass", "why": "every limit met at p95"}],
                "warnings": [],
                "error": None,
            },
            {
                "file": "rate4.json",
                "tool": None,
                "points": [],
                "warnings": [],
                "error": "rate4.json: line 1: the JSON that begins here is cut off; its end was expected",
            },
        ],
        "sweeps": [_SWEEP],
        "storable": False,
        "refused": ["rate4.json: line 1: the JSON that begins here is cut off; its end was expected"],
        "warnings": [],
        "levels": [
            {
                "file": "stage_1_lifecycle_metrics.json",
                "place": "",
                "verdict": "pass",
                "why": "every limit met at p95",
                "observed": {"arrival": "poisson", "load": 4.0, "tok_per_sec": 2498.7},
            }
        ],
        "slo": {"ttft_ms": 500.0, "itl_ms": 50.0, "e2e_ms": None, "percentile": 95.0},
        "measured_at": "2026-11-30T10:00:00Z",
        "declared_at": None,
    },
)
BROKEN_FILES = OpenApiExample(
    "broken files",
    response_only=True,
    value={
        "error": "rate4.json: line 1: the JSON that begins here is cut off; its end was expected;"
        " nothing was stored",
        "code": "invalid",
        "fields": {
            "rate4.json": ["rate4.json: line 1: the JSON that begins here is cut off; its end was expected"]
        },
    },
)
IMPORT_QUEUED = OpenApiExample(
    "queued",
    response_only=True,
    status_codes=["202"],
    value={
        "id": 5,
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "variant": "h100-tp4",
        "profile": "chat",
        "force": False,
        "leave_out_broken": False,
        "store_when_right": True,
        "state": "queued",
        "trigger": "api",
        "requested_by": "ada",
        "progress": 0,
        "files": [{"name": "benchmarks.json", "size": 31457280, "sha256": "9f86d081884c7d65..."}],
        "measurement": None,
        "queued_at": "2026-11-02T08:40:00Z",
        "finished_at": None,
        "error": "",
        "preview": None,
    },
)

CLUSTER_OUTCOME = OpenApiExample(
    "a node is added",
    response_only=True,
    value={
        "dry_run": True,
        "refusals": [],
        "changes": {
            "nodes": {
                "added": ["gpu-a2"],
                "gone": [],
                "changed": ["gpu-a1"],
                "moved": [],
                "details": {"gpu-a1": ["schedulable true → false"]},
            },
            "replicas": {
                "added": ["llm/llama-70b-7c9f-x2x4z"],
                "gone": [],
                "changed": [],
                "moved": [],
                "details": {},
            },
            "models": {
                "added": ["meta-llama/Llama-3.1-70B-Instruct"],
                "gone": [],
                "changed": [],
                "moved": [],
                "details": {},
            },
            "rows": None,
        },
        "ignored": [
            {"kind": "ConfigMap", "reason": "says nothing about capacity", "count": 41, "examples": []}
        ],
        "warnings": [],
        "report": {
            "nodes": {
                "gpu-a2": {
                    "vendor": "nvidia",
                    "type": "H100-80GB-HBM3",
                    "memory_mib_per_device": 81559,
                    "physical_devices": 8,
                    "resources": {"nvidia.com/gpu": {"capacity": 8, "allocatable": 8, "used": 4, "free": 4}},
                    "schedulable": True,
                    "blocked_by": [],
                    "say": "8 H100-80GB-HBM3, 4 used, 4 free",
                }
            },
            "warnings": [],
        },
    },
)
CLUSTER_REFUSED = OpenApiExample(
    "an incomplete list",
    response_only=True,
    value={
        "error": "the list is incomplete: metadata.continue is set, 412 more items are missing; "
        "nothing was changed",
        "code": "invalid",
    },
)

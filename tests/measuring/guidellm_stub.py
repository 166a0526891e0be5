"""Stands in for GuideLLM's command where it is not installed: `guidellm_stub.py run -c level.json ...`.

What it does is asked by the model's name. Its report is one of GuideLLM 0.8.1, shortened.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPORT = Path(__file__).with_name("guidellm_report.json")
SAID = "INFO | progress: compile | elapsed=8.0s | successful=8 errored=3 incomplete=1 | "
SAID += "requests/s=2.59 output_tokens/s=18.43"

SLEEPER = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)",
]


def main() -> int:
    if sys.argv[1] == "--version":
        print("guidellm version: 0.8.1")
        return 0
    assert sys.argv[1:3] == ["run", "-c"]
    level = Path(sys.argv[3])
    spec = json.loads(level.read_text())["spec"]
    match spec["backend"]["model"]:
        case "reports":
            shutil.copy(REPORT, spec["outputs"][0]["path"])
        case "tells progress, then reports":
            print(SAID, flush=True)
            time.sleep(0.6)
            shutil.copy(REPORT, spec["outputs"][0]["path"])
        case "gives up in the warm-up":
            report = json.loads(REPORT.read_text())
            report["benchmarks"][0] |= {
                "duration": -0.8,
                "end_time": report["benchmarks"][0]["start_time"] - 0.8,
            }
            Path(spec["outputs"][0]["path"]).write_text(json.dumps(report))
        case "never keeps its schedule":
            report_delay(1796059460.28, spec)
        case "keeps its schedule at last":
            report_delay(1796059460.28 if spec["seed"]["value"] == 5 else 0.01, spec)
        case "reports nonsense":
            Path(spec["outputs"][0]["path"]).write_text('{"benchmarks": [{"type_": "generative_benchmark"}]}')
        case "takes no such option":
            print("Usage: guidellm run\n\nError: No such option '-c'", file=sys.stderr)
            return 2
        case "is interrupted":
            said = f"Traceback\n\x1b[31mKeyboardInterrupt: {spec['backend']['api_key']}\x1b[0m\n"
            print(said, file=sys.stderr)
            return 1
        case "tells what others could see":
            mode = oct(level.stat().st_mode & 0o777)
            seen = {"mode": mode, "argv": sys.argv[1:], "environment": sorted(os.environ)}
            print(json.dumps(seen))
            return 3
        case "leaves a process behind":
            print(subprocess.Popen(SLEEPER).pid)
            return 1
        case "hangs":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            subprocess.run(SLEEPER)
    return 0


def report_delay(seconds: float, spec: dict[str, Any]) -> None:
    report = json.loads(REPORT.read_text())
    report["benchmarks"][0]["metrics"]["request_dispatch_delay"]["total"]["percentiles"]["p95"] = seconds
    Path(spec["outputs"][0]["path"]).write_text(json.dumps(report))


if __name__ == "__main__":
    sys.exit(main())

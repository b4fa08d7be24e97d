"""What machine this is, for files of results.

    machine_data()    {"system": "Linux-6.1…", "processor": "AMD EPYC", "instructions": ["avx2", …], "cores": 2, "memory": 25…, …}
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

# Of the many that a processor has, those that decide how fast products are.
_TELLING = ("avx2", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "bf16")


def machine_data() -> dict[str, Any]:
    """What times depend on."""
    from importlib.metadata import version

    info = _processor_info()
    return {"system": platform.platform(), "processor": info.get("model name") or platform.processor() or platform.machine(),
            "instructions": [name for name in _TELLING if name in info.get("flags", info.get("Features", "")).split()],
            "cores": processors(), "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "python": platform.python_version(),
            "lmc": version("lmc"), "load": os.getloadavg()}


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_line() -> str:
    """For people."""
    data = machine_data()
    return (f"{data['processor']} with {', '.join(data['instructions'])}; {data['cores']} cores, {data['memory'] / 2**30:.0f} GiB; "
            f"{data['system']}; Python {data['python']}; load {data['load'][0]:.1f}")


def _processor_info() -> dict[str, str]:
    """Of the first processor, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}

"""The processor that figures were measured on."""
import os
import pathlib

# Instruction-set levels by oneDNN's names (ONEDNN_MAX_CPU_ISA), lowest first, and the flags that Linux shows for each.
LEVELS = {
    "AVX2": {"avx2", "fma"},
    "AVX512_CORE": {"avx512f", "avx512bw", "avx512vl", "avx512dq"},
    "AVX512_CORE_BF16": {"avx512_bf16"},
    "AVX512_CORE_AMX": {"amx_tile", "amx_bf16", "amx_int8"},
}


def facts():
    """What Linux says of the first core."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", maxsplit=1)[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def levels():
    """Each level needs those below it."""
    flags, found = set(facts().get("flags", "").split()), []
    for name, needed in LEVELS.items():
        if not needed <= flags:
            break
        found.append(name)
    return found


def congestion_control():
    """Of TCP, loopback included."""
    return pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="utf-8").strip()


def describe():
    """One line. Virtual machines often hide the model's name; family and model still say which design it is."""
    found = facts()
    return (f"{found.get('model name', 'unknown processor')}, family {found.get('cpu family', '?')} model {found.get('model', '?')}, "
            f"{len(os.sched_getaffinity(0))} cores; {', '.join(levels()) or 'below AVX2'}")

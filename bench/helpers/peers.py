"""Where benchmarks find the programs that they compare with, and what makes those fast."""
import os
import pathlib
import subprocess

FOLDER = pathlib.Path(os.environ.get("FLEETRUN_PEERS_TORCH") or pathlib.Path.home() / ".cache" / "fleetrun" / "peers-torch")
NEWEST_TORCH = FOLDER / "bin" / "python3"
DEBIAN_TORCH = pathlib.Path("/usr/bin/python3")  # whose modules are the distribution's
HOW_TO_INSTALL = "scripts/setup --peers"


def has_torch(python, modules="torch, torchvision"):
    """Whether this Python can import PyTorch; a benchmark says so when it cannot."""
    found = python.exists() and subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode == 0
    if not found:
        print(f"{python} cannot import {modules}: {HOW_TO_INSTALL}", flush=True)
    return found


# The memory allocator keeps what it has. Without this PyTorch gives its activations back to the kernel in every step.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "99999999999", "MALLOC_TOP_PAD_": "268435456"}


def environment(threads, settings=None):
    """For programs that compute with OpenMP. OPENBLAS_CORETYPE halves the speed of OpenBLAS where it names an older processor.
    Threads are not pinned (OMP_PROC_BIND): a pinned thread waits where something else has its core, any other moves on."""
    kept = {key: value for key, value in os.environ.items() if key not in ("OPENBLAS_CORETYPE", "OMP_PROC_BIND")}
    return kept | {"OMP_NUM_THREADS": str(threads)} | (settings or {})

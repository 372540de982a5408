#!/usr/bin/env python3
"""Checks which part of the project includes which other part, and where heavy third-party headers are used.

usage: scripts/check_includes.py [ROOT]     prints file:line and the rule of every violation; ends with 1 if there is one
       scripts/check_includes.py --self-test
"""
import re
import sys
import tempfile
from pathlib import Path

# Parts of the project, and what each may include besides itself. Most specific folder first.
MAY_INCLUDE = {
    "lib/base": [],
    "lib/job": ["lib/base"],
    "lib/prototxt": ["lib/job", "lib/base"],
    "lib/comm": ["lib/base"],
    "lib/launch": ["lib/job", "lib/base"],
    "lib/runtime": ["lib/comm", "lib/job", "lib/base"],
    "lib/cuda": ["lib/runtime", "lib/comm", "lib/base"],
    "apps": ["lib/launch", "lib/runtime", "lib/comm", "lib/job", "lib/base"],
}

# The rooms of a large folder, from the ground up: a room may include itself and the rooms before it. Files that lie directly in the
# folder are on top and may include every room. docs/architecture.md says what each room owns.
ROOMS = {
    "lib/base": ["text", "error", "json", "system", "number", "run"],
    "lib/job": ["spec", "keys", "read", "strategy_files", "checks"],
    "lib/launch": ["loop", "process", "cli", "store", "host", "logs", "evidence", "console", "schedulers", "plan", "starters", "render", "supervise", "report", "page", "nodes", "serve", "doctor", "run"],
    "lib/launch/cli": ["flags"],
    "lib/comm": ["rendezvous", "collective", "gloo", "shared"],
    # What describes a computation comes first: it knows no device, no kernel and no executor.
    "lib/runtime": ["tensor", "data", "graph", "ops", "optim", "models", "passes", "kernels", "exec", "compile", "observe", "checkpoint", "tune", "plan", "eval", "training", "predict"],
    "lib/runtime/data": ["order", "decode", "formats"],
    "lib/runtime/ops": ["rules"],
    "lib/runtime/passes": ["shared", "pipeline"],
    "lib/runtime/training": ["setup", "ranks", "trainer", "save", "evaluation", "tuning"],
    "lib/runtime/kernels/cpu": ["threads", "onednn", "loops", "updates"],
}

# The launcher must start in milliseconds and outlive compute libraries: only files of the worker use these.
WORKER_ONLY = ["lib/runtime", "lib/comm"]
WORKER_FILE = re.compile(r"^apps/fleetrun/worker_\w+\.(cpp|h)$")

# Third-party headers: who uses them. Heavy ones cost seconds per includer: they stand in .cpp files, or in a header that
# only .cpp files of the same library include.
HEAVY, LIGHT = True, False
THIRD_PARTY = [
    (re.compile(r"^boost/"), ["lib/launch"], HEAVY),
    (re.compile(r"^CLI/"), ["lib/launch", "apps"], HEAVY),
    (re.compile(r"^nlohmann/"), ["lib/base"], HEAVY),  # everybody else uses base/json_value.h
    (re.compile(r"^gloo/"), ["lib/comm"], HEAVY),
    (re.compile(r"^google/"), ["lib/prototxt"], LIGHT),
    (re.compile(r"^(dnnl|oneapi/dnnl/)"), ["lib/runtime"], LIGHT),
    (re.compile(r"^(turbojpeg|jpeglib|jerror|png|zlib|xxhash)\.h$"), ["lib/runtime"], HEAVY),
    (re.compile(r"^(cuda|cudnn|cublas|nccl)\w*\.h$"), ["lib/cuda"], LIGHT),
    (re.compile(r"^sodium"), ["lib/base"], LIGHT),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]')
SUFFIXES = {".h", ".hpp", ".cpp", ".cu", ".cuh"}


def part_of(path):
    """The part of the project that a path below the root belongs to, or None."""
    return next((part for part in MAY_INCLUDE if path.startswith(part + "/")), None)


def room_of(folder, path):
    """The room of `folder` that a path lies in; "" for a file directly in the folder, None for one outside of it."""
    if not path.startswith(folder + "/"):
        return None
    room, slash, _ = path[len(folder) + 1:].partition("/")
    return room if slash else ""


def check_rooms(path, target):
    """Words for the rule that `path` breaks by including a file of a higher room, or None."""
    for folder, rooms in ROOMS.items():
        here, there = room_of(folder, path), room_of(folder, target)
        if here is None or there is None or here in ("", there):
            continue
        if here not in rooms:
            return f"{folder}/{here} is no room of {folder}; see ROOMS"
        allowed = rooms[:rooms.index(here)]
        if there not in allowed:
            return f"{folder}/{here} may include only {', '.join([here, *allowed])} of {folder}"
    return None


def check_project_include(path, target):
    """Words for the rule that `path` breaks by including `target` (both below the root), or None."""
    here, there = part_of(path), part_of(target)
    if there != here and there not in MAY_INCLUDE[here]:
        allowed = ", ".join([here, *MAY_INCLUDE[here]])
        return f"{here} may include only {allowed}"
    if here == "apps" and there in WORKER_ONLY and not WORKER_FILE.match(path):
        return f"only apps/fleetrun/worker_* may include {there}: the launcher does not link it"
    return check_rooms(path, target)


def third_party(name):
    """The line of THIRD_PARTY for a header, or one that allows everything."""
    return next((entry for entry in THIRD_PARTY if entry[0].match(name)), (None, None, LIGHT))


def check_third_party(path, name):
    users = third_party(name)[1]
    if users is not None and part_of(path) not in users:
        return f"<{name}> belongs to {' and '.join(users)}"
    return None


def resolve(root, path, name):
    """Where the file of a quoted include lies below the root: from lib/, or beside the including file in apps/."""
    if (root / "lib" / name).is_file():
        return f"lib/{name}"
    beside = Path(path).parent / name
    if part_of(path) == "apps" and "/" not in name and (root / beside).is_file():
        return str(beside)
    return None


def read_includes(root):
    """Every include of the project as (path, line number, bracket, name), in order."""
    includes = []
    for top in ("lib", "apps"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    includes.append((path, number, match[1], match[2]))
    return includes


def heavy_headers(includes):
    """Our headers that include a heavy third-party one, each with the name of that."""
    return {path: name for path, _, bracket, name in includes
            if bracket == "<" and not path.endswith(".cpp") and third_party(name)[2]}


def check_include(root, heavy, path, bracket, name):
    """Words for the rule that one include breaks, or None."""
    target = resolve(root, path, name)
    if bracket == "<":
        if target is not None:
            return f'write "{name}", not <{name}>: it is ours'
        return check_third_party(path, name)
    if target is None:
        return f'"{name}" is not a file under lib/; third-party headers go in <>'
    if target in heavy and not (path.endswith(".cpp") and part_of(path) == part_of(target)):
        return f"it includes <{heavy[target]}>, which is heavy: only .cpp files of its own library may include it"
    return check_project_include(path, target)


def check_tree(root):
    """Every violation as "file:line: ...", in order."""
    includes = read_includes(root)
    heavy = heavy_headers(includes)
    found = []
    for path, number, bracket, name in includes:
        if part_of(path) is None:
            found.append(f"{path}:{number}: this folder is not a part of the project; see MAY_INCLUDE")
            continue
        rule = check_include(root, heavy, path, bracket, name)
        if rule:
            found.append(f"{path}:{number}: includes {name}: {rule}")
    return found


SELF_TEST_FILES = {
    "lib/base/error.h": "#include <string>\n",
    "lib/base/upwards.cpp": '#include "base/error.h"\n#include "job/spec.h"\n',
    "lib/job/spec.h": '#include "base/error.h"\n',
    "lib/job/parsed.h": "#include <nlohmann/json.hpp>\n",
    "lib/job/parsed.cpp": '#include <nlohmann/json.hpp>\n#include "job/parsed.h"\n',
    "lib/job/use.h": '#include "job/parsed.h"\n',
    "lib/comm/gloo/gloo.cpp": '#include <gloo/context.h>\n#include "job/spec.h"\n',
    "lib/comm/rendezvous/store.h": '#include "comm/gloo/gloo.h"\n',
    "lib/comm/gloo/gloo.h": '#include "comm/rendezvous/store.h"\n',
    "lib/comm/cellar/store.h": '#include "comm/rendezvous/store.h"\n',
    "lib/launch/launch.h": '#include "launch/run/run.h"\n',
    "lib/launch/loop/loop.h": "#include <boost/asio.hpp>\n",
    "lib/launch/loop/loop.cpp": '#include "launch/loop/loop.h"\n#include "launch/plan/plan.h"\n',
    "lib/launch/plan/plan.h": '#include <string>\n#include "launch/loop/loop.h"\n',
    "lib/launch/plan/plan.cpp": '#include "launch/plan/plan.h"\n  #  include "runtime/training/run_job.h"\n',
    "lib/launch/run/run.h": '#include "launch/plan/plan.h"\n#include "launch/launch.h"\n',
    "lib/runtime/training/run_job.h": '#include "launch/plan/plan.h"\n',
    "lib/runtime/graph/program.h": '#include "runtime/exec/executor.h"\n#include "runtime/training/run_job.h"\n',
    "lib/runtime/exec/executor.h": '#include "runtime/graph/program.h"\n#include <boost/asio.hpp>\n',
    "lib/runtime/training/run_job.cpp": '#include <base/error.h>\n#include "runtime/exec/executor.h"\n#include "dnnl.hpp"\n',
    "lib/runtime/kernels/cpu/onednn/primitive.h": '#include "runtime/kernels/cpu/loops/lanes.h"\n',
    "lib/runtime/kernels/cpu/loops/lanes.h": '#include "runtime/kernels/cpu/onednn/primitive.h"\n',
    "apps/fleetrun/main.cpp": '#include "launch/plan/plan.h"\n#include "local.h"\n#include "runtime/training/run_job.h"\n',
    "apps/fleetrun/local.h": "#include <vector>\n",
    "apps/fleetrun/worker_main.cpp": '#include "runtime/training/run_job.h"\n',
}
SELF_TEST_VIOLATIONS = [
    "lib/base/upwards.cpp:2",
    "lib/comm/cellar/store.h:1",
    "lib/comm/gloo/gloo.cpp:2",
    "lib/comm/rendezvous/store.h:1",
    "lib/job/parsed.cpp:1",
    "lib/job/parsed.h:1",
    "lib/job/use.h:1",
    "lib/launch/loop/loop.cpp:2",
    "lib/launch/plan/plan.cpp:2",
    "lib/launch/plan/plan.h:2",
    "lib/launch/run/run.h:2",
    "lib/runtime/exec/executor.h:2",
    "lib/runtime/graph/program.h:1",
    "lib/runtime/graph/program.h:2",
    "lib/runtime/kernels/cpu/onednn/primitive.h:1",
    "lib/runtime/training/run_job.cpp:1",
    "lib/runtime/training/run_job.cpp:3",
    "lib/runtime/training/run_job.h:1",
    "apps/fleetrun/main.cpp:3",
]


def self_test():
    """A small tree with one violation of every kind: exactly those are found."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SELF_TEST_FILES.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = check_tree(Path(folder))
    places = [line.split(": ")[0] for line in found]
    if places == SELF_TEST_VIOLATIONS:
        print(f"check_includes: self-test passed, {len(places)} violations found as planted")
        return 0
    print("check_includes: self-test failed; found:", *found, "wanted:", *SELF_TEST_VIOLATIONS, sep="\n  ")
    return 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments and arguments[0].startswith("-") or len(arguments) > 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "lib").is_dir():
        print(f"check_includes: error: {root} has no folder lib", file=sys.stderr)
        return 66
    found = check_tree(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

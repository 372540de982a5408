// Unmodified scripts of PyTorch and PaddlePaddle with the real packages (scripts/test --peers installs them).
// Where a package is missing its test says that it is skipped.
#include <cstdlib>

#include "e2e/launcher.h"

namespace fleetrun::peers_test {
namespace {

constexpr auto kImportTime = 120s;  // both packages take seconds to import on an idle machine

// Runs a script with the Python of `folder`, on `ranks` ranks.
ChildResult run_python(const Launch& launch, const std::string& folder, int ranks,
                       const std::string& script) {
  ChildOptions options = launch.options();
  const char* path = std::getenv("PATH");
  options.environment = {{"PATH", folder + ":" + (path == nullptr ? "" : path)}};
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=" + std::to_string(ranks), "--console=all",
                        "--log_level=ERROR", script},
                       options);
  return process.wait(kImportTime);
}

bool has_package(const std::string& folder, const std::string& name) {
  const ChildResult found = run_child({"/bin/sh", "-c",
                                       "test -x " + folder + "/python3 && " + folder +
                                           "/python3 -c 'import importlib.util, sys; "
                                           "sys.exit(importlib.util.find_spec(\"" +
                                           name + "\") is None)'"});
  if (found.code == 0) return true;
  MESSAGE("skipped: " << folder << "/python3 has no package " << name
                      << "; scripts/test --peers installs it");
  return false;
}

// As scripts/test --peers makes it.
std::string paddle_folder() {
  const char* chosen = std::getenv("FLEETRUN_PEERS");
  const char* home = std::getenv("HOME");
  if (chosen != nullptr) return std::string(chosen) + "/bin";
  return std::string(home == nullptr ? "" : home) + "/.cache/fleetrun/peers/bin";
}

TEST_CASE("an unmodified PyTorch script meets its ranks on env://") {
  const std::string python = "/usr/bin";
  if (!has_package(python, "torch")) return;
  const Launch launch;
  launch.folder.write("train.py",
                      "import torch\n"
                      "import torch.distributed as dist\n"
                      "dist.init_process_group('gloo')\n"
                      "tensor = torch.ones(4) * (dist.get_rank() + 1)\n"
                      "dist.all_reduce(tensor)\n"
                      "print('sum', tensor[0].item(), 'of', dist.get_world_size())\n"
                      "print('torchelastic', dist.is_torchelastic_launched())\n");
  const ChildResult result = run_python(launch, python, 3, "train.py");
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  for (const char* rank : {"0", "1", "2"}) {
    CHECK(contains(result.out, "[" + std::string(rank) + "] sum 6.0 of 3\n"));
    CHECK(contains(result.out, "[" + std::string(rank) + "] torchelastic True\n"));
  }
}

TEST_CASE("a PyTorch script under @record leaves its exception to the report") {
  const std::string python = "/usr/bin";
  if (!has_package(python, "torch")) return;
  const Launch launch;
  launch.folder.write("train.py",
                      "import os\n"
                      "from torch.distributed.elastic.multiprocessing.errors import record\n"
                      "@record\n"
                      "def main():\n"
                      "    if os.environ['RANK'] == '1':\n"
                      "        raise ValueError('no such sample')\n"
                      "main()\n");
  const ChildResult result = run_python(launch, python, 2, "train.py");
  CHECK(result.code == 1);
  CHECK(contains(launch.folder.read("log/error.1.json"), "no such sample"));
  CHECK_MESSAGE(contains(result.err, "ValueError: no such sample"), result.err);
}

TEST_CASE("an unmodified PaddlePaddle script with fleet.init meets its ranks") {
  const std::string python = paddle_folder();
  if (!has_package(python, "paddle")) return;
  const Launch launch;
  launch.folder.write("train.py",
                      "import paddle\n"
                      "import paddle.distributed as dist\n"
                      "from paddle.distributed import fleet\n"
                      "fleet.init(is_collective=True)\n"
                      "tensor = paddle.ones([4]) * (fleet.worker_index() + 1)\n"
                      "dist.all_reduce(tensor)\n"
                      "print('sum', float(tensor[0]), 'of', fleet.worker_num())\n");
  const ChildResult result = run_python(launch, python, 2, "train.py");
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  CHECK(contains(result.out, "[0] sum 3.0 of 2\n"));
  CHECK(contains(result.out, "[1] sum 3.0 of 2\n"));
}

}  // namespace
}  // namespace fleetrun::peers_test

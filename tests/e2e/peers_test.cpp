// Unmodified scripts of PyTorch and PaddlePaddle with the real packages (scripts/test --peers installs them).
// Where a package is missing its test says that it is skipped.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "e2e/launcher.h"
#include "e2e/peers.h"
#include "support/leave_out.h"

namespace fleetrun::peers_test {
namespace {

constexpr auto kImportTime = 120s;  // both packages take seconds to import on an idle machine

// Runs a launch with the Python of `folder`. On a busy machine PyTorch 2.15 sometimes aborts after the end of a script, in the destructor
// of a thread; under its own torchrun it does so, too. Such a run says nothing about ours and is repeated.
ChildResult run_with(const Launch& launch, const std::string& folder, const Words& command) {
  constexpr int kMostRuns = 5;
  ChildOptions options = launch.options();
  const char* path = std::getenv("PATH");
  options.environment = {{"PATH", folder + ":" + (path == nullptr ? "" : path)}};
  ChildResult result;
  for (int runs = 1; runs <= kMostRuns; ++runs) {
    ChildProcess process(command, options);
    result = process.wait(kImportTime);
    if (!contains(result.out + result.err, "terminate called without an active exception")) break;
    MESSAGE("run " << runs << ": PyTorch aborted in a destructor of its own");
  }
  return result;
}

// Runs a script with the Python of `folder`, on `ranks` ranks.
ChildResult run_python(const Launch& launch, const std::string& folder, int ranks,
                       const std::string& script) {
  return run_with(launch, folder,
                  {FLEETRUN_BINARY, "--nproc_per_node=" + std::to_string(ranks), "--console=all",
                   "--log_level=ERROR", script});
}

// A training script of tests/peers/scripts, which asserts that its loss fell and its ranks agree.
void check_training(const std::string& folder, const std::string& package, const std::string& script) {
  if (!has_package(folder, package)) LEAVE_OUT(no_package(folder, package));
  const Launch launch;
  const ChildResult result =
      run_python(launch, folder, 2, std::string(FLEETRUN_SOURCE_DIR) + "/tests/peers/scripts/" + script);
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  CHECK(contains(result.out, "[0] trained on 2 ranks"));
  CHECK(contains(result.out, "[1] trained on 2 ranks"));
}

// "--log_dir" of each flag with two dashes in a text, dashes as underscores.
std::set<std::string> flags_in(const std::string& text) {
  static const std::regex pattern("(^|[[:space:],\\[|])(--[a-z][a-z_-]*[a-z])");
  std::set<std::string> flags;
  for (std::sregex_iterator one(text.begin(), text.end(), pattern), end; one != end; ++one) {
    std::string flag = (*one)[2];
    std::replace(flag.begin() + 2, flag.end(), '-', '_');
    flags.insert(flag);
  }
  return flags;
}

// Of what a launcher says to --help, the flags at the beginnings of the lines: "  -r REDIRECTS, --redirects REDIRECTS".
std::string usage_of(const Words& command) {
  ChildOptions options;
  options.environment = {{"COLUMNS", "1000"}};  // argparse breaks no line then
  ChildProcess process(command, options);
  const ChildResult result = process.wait(kImportTime);
  CHECK_MESSAGE(result.code == 0, result.err);
  std::istringstream lines(result.out);
  std::string flags;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  -")) flags += line.substr(0, line.find("  ", 2)) + "\n";
  return flags;
}

// The flags in the usage of a launcher, and those that tests/launch/flags lists.
void check_flags(const std::string& usage, const std::string& list) {
  std::ifstream file(std::string(FLEETRUN_SOURCE_DIR) + "/tests/launch/flags/" + list);
  std::set<std::string> listed;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#'))
      for (const std::string& flag : flags_in(line.substr(0, line.find(" => ")))) listed.insert(flag);
  const std::set<std::string> there = flags_in(usage);
  REQUIRE(there.size() > 20);
  for (const std::string& flag : there) CHECK_MESSAGE(listed.count(flag) == 1, flag << " is not in " << list);
  for (const std::string& flag : listed)
    CHECK_MESSAGE(there.count(flag) == 1, flag << " is in " << list << " only");
}

TEST_CASE("an unmodified PyTorch script meets its ranks on env://") {
  const std::string python = "/usr/bin";
  if (!has_package(python, "torch")) LEAVE_OUT(no_package(python, "torch"));
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
  if (!has_package(python, "torch")) LEAVE_OUT(no_package(python, "torch"));
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
  if (!has_package(python, "paddle")) LEAVE_OUT(no_package(python, "paddle"));
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

TEST_CASE("a training of the newest PyTorch with DistributedDataParallel works on two ranks") {
  check_training(torch_folder(), "torch", "torch_ddp.py");
}

TEST_CASE("a training of the newest Lightning with the strategy ddp works on two ranks") {
  check_training(torch_folder(), "lightning", "lightning_ddp.py");
}

TEST_CASE("a training of the newest accelerate works on two ranks") {
  check_training(torch_folder(), "accelerate", "accelerate_ddp.py");
}

TEST_CASE("a training of the newest PaddlePaddle with DataParallel works on two ranks") {
  check_training(paddle_folder(), "paddle", "paddle_data_parallel.py");
}

TEST_CASE(
    "the stacks of PyTorch ranks in a barrier name the Python lines, and the rank for which they wait") {
  const std::string python = "/usr/bin";
  if (!has_package(python, "torch")) LEAVE_OUT(no_package(python, "torch"));
  const Launch launch;
  launch.folder.write("train.py",
                      "import faulthandler, os, time\n"
                      "import torch.distributed as dist\n"
                      "faulthandler.register(int(os.environ['FLEETRUN_STACK_SIGNAL']))\n"
                      "dist.init_process_group('gloo')\n"
                      "def load():\n"
                      "    time.sleep(1000)\n"
                      "if dist.get_rank() == 1: load()\n"
                      "dist.barrier()\n");
  const ChildResult result = run_with(launch, python,
                                      {FLEETRUN_BINARY, "--nproc_per_node=2", "--hang_timeout=10",
                                       "--grace=1", "--log_level=ERROR", "train.py"});
  CHECK_MESSAGE(result.code == 75, result.out << result.err);
  CHECK_MESSAGE(contains(result.err, "rank 1 is in load (train.py:6); the others wait in barrier "),
                result.err);
  CHECK_MESSAGE(contains(result.err, "called in <module> (train.py:8)"), result.err);
  CHECK(contains(launch.folder.read("log/stacks.0"), "train.py"));
}

TEST_CASE("what torchrun started before, a link of its name starts") {
  const std::string python = torch_folder();
  if (!has_package(python, "torch")) LEAVE_OUT(no_package(python, "torch"));
  const Launch launch;
  const std::string link = launch.folder / "torchrun";
  std::filesystem::create_symlink(FLEETRUN_BINARY, link);
  const ChildResult result =
      run_with(launch, python,
               {link, "--standalone", "--nproc-per-node=2",
                std::string(FLEETRUN_SOURCE_DIR) + "/tests/peers/scripts/torch_ddp.py", "--lr", "0.05"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(result.out == "trained on 2 ranks, lr 0.05\ntrained on 2 ranks, lr 0.05\n");
}

TEST_CASE("strategy files keep their meaning on the way from PaddlePaddle to fleetrun and back") {
  const std::string folder = paddle_folder();
  if (!has_package(folder, "paddle")) LEAVE_OUT(no_package(folder, "paddle"));
  const std::string tests = std::string(FLEETRUN_SOURCE_DIR) + "/tests";
  ChildProcess process({folder + "/python3", tests + "/peers/strategy_files.py", "check", FLEETRUN_BINARY,
                        tests + "/job/strategies"},
                       ChildOptions{});
  const ChildResult result = process.wait(kImportTime);
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  CHECK(contains(result.out, "32 files and 30 jobs, PaddlePaddle "));
}

TEST_CASE("our list of torchrun's flags is that of the newest torchrun") {
  const std::string folder = torch_folder();
  if (!has_package(folder, "torch")) LEAVE_OUT(no_package(folder, "torch"));
  check_flags(usage_of({folder + "/python3", "-m", "torch.distributed.run", "--help"}), "torchrun.txt");
}

TEST_CASE("our list of PaddlePaddle's flags is that of its newest launcher") {
  const std::string folder = paddle_folder();
  if (!has_package(folder, "paddle")) LEAVE_OUT(no_package(folder, "paddle"));
  check_flags(usage_of({folder + "/python3", "-m", "paddle.distributed.launch", "--help"}), "paddle.txt");
}

}  // namespace
}  // namespace fleetrun::peers_test

// Flags that change what a worker is, or only show it.
#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::command_line_test {
namespace {

TEST_CASE("a dry run prints what a shell would start, and starts nothing") {
  const Launch launch;
  const ChildResult result = launch.run({"--nproc_per_node=2", "--dry_run", "--nccl=NCCL_DEBUG=INFO"},
                                        {"print", "two words", "env"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK_FALSE(launch.folder.has("log"));
  std::istringstream lines(result.out);
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  CHECK_FALSE(std::getline(lines, third));
  CHECK(contains(first, " NCCL_DEBUG=INFO "));
  CHECK(contains(first, " RANK=0 "));
  CHECK(first.ends_with("  # rank 0, log log/workerlog.0"));
  // The shell starts the very same worker.
  launch.folder.write("run.sh", second + "\n");
  const ChildResult by_hand = run_child({"/bin/sh", "run.sh"}, launch.options());
  CHECK(by_hand.code == 0);
  CHECK(by_hand.out.starts_with("two words\n"));
  CHECK(contains(by_hand.out, "\nPADDLE_TRAINER_ID=1\n"));
  CHECK(contains(by_hand.out, "\nWORLD_SIZE=2\n"));
}

TEST_CASE(
    "a dry run with --master names the first node, and shows stand-ins for addresses that it cannot know") {
  const Launch launch;
  const auto out = [&](const std::string& rank) {
    return launch
        .run({"--nnodes=2", "--node_rank=" + rank, "--master=127.0.0.1:6100", "--dry_run"}, {"print", "x"})
        .out;
  };
  CHECK(out("0").starts_with(
      "# node1 stands for the address of node 1, which is known once the nodes have met\n"));
  CHECK(contains(out("0"), " MASTER_ADDR=127.0.0.1 "));
  CHECK(contains(out("1"), " PADDLE_TRAINER_ENDPOINTS=127.0.0.1:6070,node1:6070 "));
}

TEST_CASE("a line of a dry run that a shell ran does not hold up the next run") {
  const Launch launch;
  CHECK(launch.run({}, {"exit", "0"}).code == 0);
  launch.folder.write("run.sh", launch.run({"--dry_run", "--tee=1"}, {"print", "x"}).out);
  CHECK(run_child({"/bin/sh", "run.sh"}, launch.options()).out == "x\n");
  CHECK(launch.run({}, {"exit", "0"}).code == 0);
}

TEST_CASE("a variable that fleetrun sets itself has no effect as a flag, and a warning says so") {
  const Launch launch;
  const ChildResult result = launch.run({"--env=RANK=7", "--env=MINE=1"}, {"env"});
  CHECK(result.code == 0);
  CHECK(contains(result.err, "warning: --env RANK has no effect: fleetrun sets this variable itself\n"));
  CHECK_FALSE(contains(result.err, "MINE has no effect"));
  CHECK(contains(launch.folder.read("log/workerlog.0"), "\nRANK=0\n"));
}

TEST_CASE("--help > /dev/full: what was asked for and could not be written is an error") {
  const Launch launch;
  launch.folder.write("job.json", R"({
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 4, 4], "classes": 4}, "batch_size": 8},
    "optimizer": {"name": "sgd", "learning_rate": 0.001}
  })");
  CHECK(launch.run({}, {"print", "x"}).code == 0);
  const std::vector<Words> commands = {{"--help"},
                                       {"--version"},
                                       {"--show_config"},
                                       {"--show_config=json"},
                                       {"--dry_run", "/bin/true"},
                                       {"--dry_run=json", "/bin/true"},
                                       {"--print_completion=bash"},
                                       {"completion", "bash"},
                                       {"completion", "zsh"},
                                       {"completion", "fish"},
                                       {"completion", "--help"},
                                       {"man"},
                                       {"man", "--help"},
                                       {"config", "--schema"},
                                       {"config", "--keys"},
                                       {"config", "job.json"},
                                       {"config", "--json", "job.json"},
                                       {"config", "--help"},
                                       {"export", "--help"},
                                       {"render", "slurm", "--", "-n", "1", "train.py"},
                                       {"render", "--help"},
                                       {"bench", "--help"},
                                       {"doctor"},
                                       {"doctor", "--help"},
                                       {"bench", "all_reduce", "--sizes=8", "--iters=1"},
                                       {"logs"},
                                       {"logs", "--help"},
                                       {"ps", "--help"},
                                       {"stop", "--help"},
                                       {"signal", "--help"}};
  for (const Words& command : commands)
    for (const char* target : {">/dev/full", ">&-"}) {
      Words words = {"/bin/sh", "-c", std::string("exec \"$@\" ") + target, "sh", FLEETRUN_BINARY};
      words.insert(words.end(), command.begin(), command.end());
      const ChildResult result = run_child(words, launch.options());
      INFO(command.front() << " " << command.back() << " " << target);
      CHECK(result.code == 74);
      CHECK(contains(result.err, "fleetrun: error: writing to stdout: "));
    }
}

TEST_CASE("a dry run as JSON says the same to programs") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = {{"http_proxy", "http://proxy"}};
  const ChildResult result =
      run_child(Launch::command({"--nproc_per_node=2", "--dry_run=json", "--bind"}, {"x"}), options);
  CHECK(result.code == 0);
  const auto json = nlohmann::json::parse(result.out);
  REQUIRE(json.size() == 2);
  CHECK(json[1]["rank"] == 1);
  CHECK(json[1]["argv"] == nlohmann::json{FAKE_WORKER, "x"});
  CHECK(json[1]["set"]["LOCAL_RANK"] == "1");
  CHECK(json[1]["unset"] == nlohmann::json{"http_proxy"});
  CHECK(json[1]["log"] == "log/workerlog.1");
  CHECK_FALSE(json[1]["cpus"].get<std::string>().empty());
}

TEST_CASE("bound ranks run on their cores, which are printed") {
  const Launch launch;
  launch.folder.write("show.sh", "grep Cpus_allowed_list /proc/self/status; echo $OMP_NUM_THREADS\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--bind", "/bin/sh", "show.sh"});
  CHECK(result.code == 0);
  for (const int rank : {0, 1}) {
    const std::string said = "fleetrun: rank " + std::to_string(rank) + " runs on the cores ";
    const auto place = result.err.find(said);
    REQUIRE(place != std::string::npos);
    const std::string cores =
        result.err.substr(place + said.size(), result.err.find('\n', place) - place - said.size());
    CHECK(contains(launch.folder.read("log/workerlog." + std::to_string(rank)),
                   "Cpus_allowed_list:\t" + cores + "\n"));
  }
}

TEST_CASE("a command can stand in front of one rank") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--nproc_per_node=2", "--debug_rank=1=/usr/bin/env 'EXTRA=a b'"}, {"env"});
  CHECK(result.code == 0);
  CHECK(contains(launch.folder.read("log/workerlog.1"), "EXTRA=a b\n"));
  CHECK_FALSE(contains(launch.folder.read("log/workerlog.0"), "EXTRA="));
  const ChildResult failed = launch.run({"--debug_rank=0=/usr/bin/env A=1"}, {"exit", "3"});
  CHECK_MESSAGE(contains(failed.err, "fleetrun: it ran: /usr/bin/env A=1 /"), failed.err);
  CHECK(launch.run({"--debug_rank=4=env"}, {}).err ==
        "fleetrun: error: --debug_rank names rank 4, the run has 1 rank\n");
  CHECK(launch.run({"--debug_rank=0=no-such-debugger"}, {}).code == 127);
}

TEST_CASE(
    "NCCL variables come from the flag, the job's env and the environment, and doubtful ones are reported") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = {{"NCCL_DEBUG", "WARN"}, {"NCCL_SOKET_IFNAME", "eth0"}};
  const ChildResult result =
      run_child(Launch::command({"--nccl=NCCL_DEBUG=INFO", "--nccl", "NCCL_ALGO=Ring"}, {"env"}), options);
  CHECK(result.code == 0);
  const std::string log = launch.folder.read("log/workerlog.0");
  CHECK(contains(log, "NCCL_DEBUG=INFO\n"));
  CHECK(contains(log, "NCCL_ALGO=Ring\n"));
  CHECK(contains(
      result.err,
      "fleetrun: warning: NCCL_SOKET_IFNAME is not a variable that NCCL is known to read; did you mean NCCL_SOCKET_IFNAME?\n"));
  CHECK(launch.run({"--nccl=DEBUG=INFO"}, {}).code == 2);
}

TEST_CASE("a word that is nearly a subcommand is answered with that one, unless it cannot be one") {
  const Launch launch;
  const ChildResult near = launch.run_words({"benhc", "all_reduce"});
  CHECK(near.code == 127);
  CHECK(near.err.starts_with(
      "fleetrun: error: the program benhc is neither on PATH nor in this folder; did you mean the subcommand bench?\n"));
  for (const auto& [typed, meant] :
       {std::pair("benchmark", "bench"), std::pair("status", "ps"), std::pair("lgos", "logs")})
    CHECK(contains(launch.run_words({typed}).err, fmt::format("did you mean the subcommand {}?\n", meant)));
  CHECK(contains(launch.run_words({"train", "job.json"}).err,
                 "\n  hint: training needs no subcommand: fleetrun job.json\n"));
  CHECK(contains(launch.run_words({"--nproc_per_node=2", "tune", "job.json"}).err,
                 "\n  hint: the subcommand tune comes first, then its flags: fleetrun tune ...\n"));
  CHECK_FALSE(contains(launch.run_words({"--", "tune", "job.json"}).err, "hint: the subcommand"));
  CHECK_FALSE(contains(launch.run_words({"--", "benhc"}).err, "did you mean"));
  CHECK_FALSE(contains(launch.run_words({"--nproc_per_node=1", "benhc"}).err, "did you mean"));
}

TEST_CASE("ports that are not held can be taken by programs that ask for nothing") {
  const Launch launch;
  launch.folder.write("listen.py",
                      "import os, socket\n"
                      "s = socket.socket()\n"
                      "s.bind(('127.0.0.1', int(os.environ['MASTER_PORT'])))\n"
                      "s.listen()\n");
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  CHECK(launch.run_words({"--no_port_hold", "listen.py"}).code == 0);
  CHECK(launch.run_words({"listen.py"}).code == 1);
}

TEST_CASE("two runs at the same time in the same folder: the second is refused, in another one it works") {
  const Launch launch;
  // Ports below those that the kernel gives to connections of others.
  ChildProcess first(
      Launch::command({"--nproc_per_node=2", "--start_port=28170"}, {"ready", "up", "sleep", "20"}),
      launch.options());
  launch.pid_in("up");
  const ChildResult second = launch.run({}, {});
  CHECK(second.code == 73);
  CHECK(contains(second.err, "log/ is in use by fleetrun, pid "));
  CHECK(launch.run({"--log_dir=other", "--nproc_per_node=2"}, {}).code == 0);
  const ChildResult same_ports = launch.run({"--log_dir=third", "--start_port=28171"}, {});
  CHECK(same_ports.code == 75);
  CHECK(contains(same_ports.err, "port 28171 is held by another fleetrun"));
  first.send(SIGTERM);
  CHECK(first.wait().code == 143);
}

}  // namespace
}  // namespace fleetrun::command_line_test

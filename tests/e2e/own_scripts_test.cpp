// Python scripts of users as ranks: Ctrl-C, the terminal, variables of one rank, and stacks.
#include <filesystem>

#include "e2e/faults/faults.h"
#include "e2e/faults/terminal_child.h"
#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::own_scripts_test {
namespace {

constexpr char kCtrlC = 3, kCtrlZ = 26;
constexpr auto kStart = 60s;  // until Python runs, on a busy machine

bool lacks_python() { return !has_program("python3"); }

Words on_one_script(Words flags) {
  flags.insert(flags.begin(), FLEETRUN_BINARY);
  flags.emplace_back("train.py");
  return flags;
}

void type(const TerminalChild& terminal, const std::string& keys) {
  for (const char key : keys) terminal.press(key);
}

bool waits_for_file(const Launch& launch, const std::string& name) {
  return comes_true([&] { return launch.folder.has(name); }, kStart);
}

// Saves at Ctrl-C as under torchrun.
constexpr const char* kSavesAtInterrupt =
    "import os, time\n"
    "rank = os.environ['RANK']\n"
    "try:\n"
    "    open('up.' + rank, 'w').close()\n"
    "    while True: time.sleep(0.05)\n"
    "except KeyboardInterrupt:\n"
    "    open('saved.' + rank, 'w').close()\n";

TEST_CASE("Ctrl-C is a KeyboardInterrupt in each rank, which saves") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", kSavesAtInterrupt);
  TerminalChild run(on_one_script({"--nproc_per_node=2"}), launch.folder.path());
  REQUIRE((waits_for_file(launch, "up.0") && waits_for_file(launch, "up.1")));
  run.press(kCtrlC);
  CHECK(run.wait(within(15s)) == 130);
  CHECK(launch.folder.has("saved.0"));
  CHECK(launch.folder.has("saved.1"));
  CHECK(launch.report()["ranks"][1]["role"] == "stopped");
}

TEST_CASE("Ctrl-C reaches the Python below a shell, and the shell waits for it") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", kSavesAtInterrupt);
  launch.folder.write("train.sh", "python3 train.py\necho the end\n");
  ChildProcess run({FLEETRUN_BINARY, "/bin/sh", "train.sh"}, launch.options());
  REQUIRE(waits_for_file(launch, "up.0"));
  run.send(SIGINT);
  CHECK(run.wait().code == 130);
  CHECK(launch.folder.has("saved.0"));
}

TEST_CASE("SIGTERM to fleetrun is SIGTERM for the ranks, as ever") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", kSavesAtInterrupt);
  ChildProcess run(on_one_script({}), launch.options());
  REQUIRE(waits_for_file(launch, "up.0"));
  run.send(SIGTERM);
  CHECK(run.wait().code == 143);
  CHECK_FALSE(launch.folder.has("saved.0"));
}

TEST_CASE("an interactive rank has the terminal: breakpoint() is a session of pdb") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import os\n"
                      "secret = 'rank ' + os.environ['RANK']\n"
                      "print('output of ' + secret)\n"
                      "if os.environ['RANK'] == '1':\n"
                      "    breakpoint()\n"
                      "    print('went on')\n");
  TerminalChild run(on_one_script({"--nproc_per_node=2", "--interactive=1", "--log_level=ERROR"}),
                    launch.folder.path());
  REQUIRE(run.shows("(Pdb) ", kStart));
  type(run, "p secret + ' is seen'\r");
  CHECK(run.shows("'rank 1 is seen'", within(10s)));
  type(run, "continue\r");
  CHECK(run.shows("went on", within(10s)));
  CHECK_MESSAGE(run.wait(within(15s)) == 0, run.screen());
  CHECK_FALSE(contains(run.screen(), "output of rank 0"));
  CHECK(launch.folder.read("log/workerlog.1") ==
        "fleetrun: the output of this rank went to the terminal (--interactive)\n");
  CHECK(launch.folder.read("log/workerlog.0") == "output of rank 0\n");
}

TEST_CASE(
    "Ctrl-C in an interactive rank is its own; when that ends it, the other ranks are interrupted, too") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", std::string("import os, sys\n"
                                              "if os.environ['RANK'] == '0':\n"
                                              "    open('pid', 'w').write(str(os.getpid()))\n"
                                              "    try: input('first? ')\n"
                                              "    except KeyboardInterrupt: print('still here')\n"
                                              "    input('second? ')\n") +
                                      kSavesAtInterrupt);
  TerminalChild run(on_one_script({"--nproc_per_node=2", "--interactive=0", "--log_level=ERROR"}),
                    launch.folder.path());
  REQUIRE(waits_for_file(launch, "up.1"));
  REQUIRE(run.shows("first? ", kStart));
  const pid_t rank = pid_in(launch.folder, "pid", kStart);
  // A signal that comes between Python's prompt and its read does not interrupt the read.
  const auto reads = [&] { return comes_true([&] { return state_of(rank) == 'S'; }, within(10s)); };
  REQUIRE(reads());
  run.press(kCtrlC);
  REQUIRE(run.shows("second? ", within(10s)));
  CHECK_FALSE(launch.folder.has("saved.1"));
  REQUIRE(reads());
  run.press(kCtrlC);
  CHECK_MESSAGE(run.wait(within(15s)) == 130, run.screen());
  CHECK(launch.folder.has("saved.1"));
  CHECK(launch.report()["cause"] == "stopped");
}

TEST_CASE("hunt 15: Ctrl-C in an interactive rank of a job file stops the run, and nothing starts again") {
  const Launch launch;
  launch.folder.write(
      "job.json", R"({"model": {"name": "mlp"}, "checkpoint": {"dir": "saved"}, "train": {"epochs": 1000000},
    "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 6, 6], "classes": 4}, "batch_size": 8}})");
  TerminalChild run({FLEETRUN_BINARY, "--nproc_per_node=2", "--interactive=0", "--max_restart=2", "job.json"},
                    launch.folder.path());
  REQUIRE(run.shows("Epoch 3", kStart));
  run.press(kCtrlC);
  CHECK_MESSAGE(run.wait(within(15s)) == 130, run.screen());
  CHECK(launch.report()["cause"] == "stopped");
}

TEST_CASE(
    "Ctrl-Z at an interactive rank suspends the whole run, and fg gives the terminal back to the rank") {
  if (lacks_python() || !has_program("bash")) LEAVE_OUT("python3 or bash is not installed");
  const Launch launch;
  launch.folder.write("train.py", "print('you said', input('name? '))\n");
  TerminalChild shell({"/bin/bash", "--norc", "--noprofile", "-i"}, launch.folder.path());
  type(shell, std::string("PS1='at-the-shell> '; ") + FLEETRUN_BINARY +
                  " --interactive=0 --log_level=ERROR train.py\r");
  REQUIRE(shell.shows("name? ", kStart));
  shell.press(kCtrlZ);
  REQUIRE(shell.shows("Stopped", within(10s)));
  type(shell, "fg\r");
  const auto has_said_what_goes_on = [&] {  // keys that come earlier are for the shell's own editor
    const std::string& screen = shell.screen();
    return contains(screen.substr(screen.rfind("Stopped")), " fg\r\n") &&
           contains(screen.substr(screen.rfind("fg\r\n")), "train.py\r\n");
  };
  REQUIRE(comes_true(has_said_what_goes_on, within(10s)));
  type(shell, "someone\r");
  CHECK(shell.shows("you said someone", within(10s)));
  type(shell, "exit\r");
  shell.wait(within(10s));
}

TEST_CASE("--interactive without a terminal gives the rank what fleetrun has instead") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", "print('got', input())\n");
  const ChildResult result = run_child({"/bin/sh", "-c", "echo a line | \"$@\"", "sh", FLEETRUN_BINARY,
                                        "--interactive=0", "--log_level=ERROR", "train.py"},
                                       launch.options());
  CHECK(result.code == 0);
  CHECK(contains(result.out, "got a line\n"));
}

TEST_CASE(
    "--interactive and --env name ranks that the run has, and --console has no effect beside the first") {
  const Launch launch;
  CHECK(launch.run({"--interactive=1"}, {}).err ==
        "fleetrun: error: --interactive names rank 1, the run has 1 rank\n");
  CHECK(launch.run({"--env=2:LR=1", "-n", "2"}, {}).err ==
        "fleetrun: error: --env names rank 2, the run has 2 ranks\n");
  CHECK(launch.run({"--interactive=x"}, {}).code == 2);
  const ChildResult result = launch.run({"--interactive=0", "--console=all"}, {"exit", "0"});
  CHECK(contains(result.err, "--console has no effect with --interactive"));
}

TEST_CASE("--env sets a variable of all ranks, or of one") {
  const Launch launch;
  CHECK(launch.run({"-n", "2", "--env=LR=0.1", "--env=1:LR=0.2"}, {"env"}).code == 0);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "LR=0.1\n"));
  CHECK(contains(launch.folder.read("log/workerlog.1"), "LR=0.2\n"));
}

// Rank 1 sleeps in a function of its own. The others wait in a function of a library, as in a barrier.
constexpr const char* kOneSleeps =
    "import faulthandler, os, time\n"
    "from torch.distributed import barrier\n"
    "faulthandler.register(int(os.environ['FLEETRUN_STACK_SIGNAL']))\n"
    "def load():\n"
    "    time.sleep(1000)\n"
    "if os.environ['RANK'] == '1': load()\n"
    "barrier()\n";

void write_library_but_no_debugger(const Launch& launch) {
  std::filesystem::create_directories(launch.folder / "torch");
  launch.folder.write("torch/__init__.py", "");
  std::filesystem::create_directories(launch.folder / "torch/distributed");
  launch.folder.write("torch/distributed/__init__.py", "import time\ndef barrier():\n    time.sleep(1000)\n");
  std::filesystem::create_directories(launch.folder / "tools");
  // The interpreter itself: python3 may be a script that looks for it.
  for (const auto& [tool, find] :
       {std::pair("python3", "python3 -c 'import sys; print(sys.executable, end=\"\")'"),
        std::pair("sh", "printf %s \"$(command -v sh)\"")})
    std::filesystem::create_symlink(run_child({"/bin/sh", "-c", find}).out,
                                    launch.folder / (std::string("tools/") + tool));
}

TEST_CASE(
    "a rank that has registered its faulthandler shows its Python stack without a debugger, and the odd one is named") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  write_library_but_no_debugger(launch);
  launch.folder.write("train.py", kOneSleeps);
  ChildOptions options = launch.options();
  options.environment["PATH"] = launch.folder / "tools";
  const ChildResult result = run_child(
      on_one_script({"--nproc_per_node=3", "--hang_timeout=2", "--grace=0.1", "--log_level=ERROR"}), options);
  CHECK_MESSAGE(result.code == 75, result.err);
  CHECK(contains(launch.folder.read("log/stacks.1"), "line 5 in load"));
  CHECK_MESSAGE(contains(result.err,
                         "rank 1 is in load (train.py:5); the others wait in barrier (__init__.py:3), "
                         "called in <module> (train.py:7)"),
                result.err);
}

TEST_CASE("ps tells of a run that has ended, and why") {
  if (lacks_python()) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import os\nif os.environ['RANK'] == '1': raise RuntimeError('no shard 3')\n");
  CHECK(launch.run_words({"--nproc_per_node=2", "train.py"}).code == 1);
  const ChildResult text = launch.run_words({"ps"});
  CHECK(text.code == 0);
  CHECK_MESSAGE(contains(text.out, " s ago with code 1, rank 1: RuntimeError: no shard 3"), text.out);
  const auto json = nlohmann::json::parse(launch.run_words({"ps", "--json"}).out);
  CHECK(json["cause"] == "exited");
}

TEST_CASE("logs shows what ranks wrote at the same time together") {
  const Launch launch;
  std::filesystem::create_directories(launch.folder / "log");
  launch.folder.write("log/workerlog.0", "a1\na2\na3\n");
  launch.folder.write("log/workerlog.1", "b1\nb2\n");
  launch.folder.write("log/.times", "100 0 3\n100 1 3\n105 0 6\n110 1 6\n");
  CHECK(launch.run_words({"logs"}).out == "[0] a1\n[1] b1\n[0] a2\n[1] b2\n[0] a3\n");
  CHECK(launch.run_words({"logs", "--rank=0"}).out == "a1\na2\na3\n");
}

}  // namespace
}  // namespace fleetrun::own_scripts_test

// Command lines of torchrun and mpirun with the first word replaced, and a link that has torchrun's name.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun {
namespace {

void write_package(const Launch& launch) {
  std::filesystem::create_directory(launch.folder / "pkg");
  launch.folder.write("pkg/__init__.py", "");
  launch.folder.write("pkg/train.py",
                      "import os, sys\n"
                      "print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], sys.argv[1:])\n"
                      "print('trouble', file=sys.stderr)\n");
}

// As torchrun is called, by a link in the folder.
ChildResult run_torchrun(const Launch& launch, Words words, const ChildOptions& options) {
  const auto link = std::filesystem::path(launch.folder.path()) / "torchrun";
  if (!std::filesystem::exists(link)) std::filesystem::create_symlink(FLEETRUN_BINARY, link);
  words.insert(words.begin(), link.string());
  return run_child(words, options);
}

TEST_CASE("an unmodified command line of torchrun works with the first word replaced") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  write_package(launch);
  const ChildResult result =
      launch.run_words({"--standalone", "--nproc-per-node=2", "-m", "pkg.train", "--lr", "1"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("log/workerlog.0") == "rank 0 of 2 ['--lr', '1']\ntrouble\n");
  CHECK(launch.folder.read("log/workerlog.1") == "rank 1 of 2 ['--lr', '1']\ntrouble\n");
}

TEST_CASE("called torchrun, the console has what the workers write and nothing else, and no folder is left") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  write_package(launch);
  ChildOptions options = launch.options();
  const std::string temporary = launch.folder / "tmp";
  std::filesystem::create_directory(temporary);
  options.environment = {{"TMPDIR", temporary}};
  const ChildResult result = run_torchrun(
      launch, {"--standalone", "--nproc-per-node", "2", "-m", "pkg.train", "--lr", "1"}, options);
  CHECK(result.code == 0);
  const std::string first = "rank 0 of 2 ['--lr', '1']\n", second = "rank 1 of 2 ['--lr', '1']\n";
  CHECK_MESSAGE((result.out == first + second || result.out == second + first), result.out);
  CHECK(result.err == "trouble\ntrouble\n");
  CHECK_FALSE(launch.folder.has("log"));
  CHECK(std::filesystem::is_empty(temporary));
}

TEST_CASE("called torchrun, the logs of a failure are kept and said") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train", "import sys\nprint('no such sample', file=sys.stderr)\nsys.exit(3)\n");
  ChildOptions options = launch.options();
  options.environment = {{"TMPDIR", launch.folder.path()}};
  const ChildResult result = run_torchrun(launch, {"train"}, options);
  CHECK(result.code == 3);
  CHECK_MESSAGE(contains(result.err, "no such sample"), result.err);
  CHECK_MESSAGE(contains(result.err, launch.folder / "fleetrun_"), result.err);
}

TEST_CASE("called torchrun, a run that does not begin leaves no folder") {
  const Launch launch;
  launch.folder.write("train", "");
  const std::string temporary = launch.folder / "tmp";
  std::filesystem::create_directory(temporary);
  ChildOptions options = launch.options();
  options.environment = {{"TMPDIR", temporary}, {"PYTHON_EXEC", "/bin/true"}};
  const ChildResult result = run_torchrun(launch,
                                          {"--nnodes=2", "--node_rank=1", "--master_addr=127.0.0.1",
                                           "--master_port=9", "--join_timeout=1", "--insecure", "train"},
                                          options);
  CHECK_MESSAGE(result.code == 75, result.err);
  CHECK(std::filesystem::is_empty(temporary));
}

TEST_CASE("a redirected stream is in the log only, a teed one is shown with its role and rank") {
  const Launch launch;
  launch.folder.write("both.sh", "echo out; echo err >&2\n");
  const ChildResult redirected = launch.run_words({"--nproc_per_node=2", "-r", "1", "/bin/sh", "both.sh"});
  CHECK(redirected.code == 0);
  CHECK_FALSE(contains(redirected.out, "out\n"));
  CHECK(contains(redirected.err, "[0] err\n"));
  CHECK(contains(redirected.err, "[1] err\n"));
  CHECK(launch.folder.read("log/workerlog.1") == "out\n");
  CHECK(launch.folder.read("log/workerlog.1.err") == "err\n");
  const ChildResult teed = launch.run_words(
      {"--nproc_per_node=2", "-t", "0:3", "-r", "1:3", "--role=trainer", "/bin/sh", "both.sh"});
  CHECK(contains(teed.out, "[trainer0]:out\n"));
  CHECK(contains(teed.out, "[trainer0]:err\n"));
  CHECK_FALSE(contains(teed.out, "[trainer1]"));
  CHECK(launch.folder.read("log/workerlog.1") == "out\nerr\n");
  CHECK_FALSE(launch.folder.has("log/workerlog.1.err"));
  const ChildResult shown = launch.run_words({"logs", "--rank=1"});
  CHECK(shown.out == "out\nerr\n");
}

TEST_CASE("the last lines of a failed rank are those of its stderr where that is apart") {
  const Launch launch;
  launch.folder.write("fail.sh", "echo fine; echo broken >&2; exit 5\n");
  const ChildResult result = launch.run_words({"-r", "1", "/bin/sh", "fail.sh"});
  CHECK(result.code == 5);
  CHECK_MESSAGE(contains(result.err, "the last lines of log/workerlog.0.err:\n    broken\n"), result.err);
  CHECK(launch.report()["last_lines"] == Words{"broken"});
  CHECK(launch.report()["ranks"][0]["log"] == "log/workerlog.0.err");
}

TEST_CASE("a signal that is to be handled ends the run and reaches the workers") {
  const Launch launch;
  ChildProcess process(Launch::command({"--signals-to-handle=SIGTERM,SIGUSR1", "--log_level=ERROR"},
                                       {"on-usr1", "checkpoint", "ready", "ready", "sleep", "60"}),
                       launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("ready"); }, 60s));
  process.send(SIGUSR1);
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "checkpoint"); }, 60s));
  process.send(SIGINT);  // the worker lives on after its handler: kill it now
  const ChildResult result = process.wait();
  CHECK(result.code == 128 + SIGUSR1);
  CHECK(contains(result.err, "SIGUSR1"));
}

TEST_CASE("the rendezvous of a command line is the one that the workers find") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=job-42"}, {"env"});
  CHECK(result.code == 0);
  const std::string environment = launch.folder.read("log/workerlog.0");
  CHECK(contains(environment, "MASTER_ADDR=localhost\n"));
  CHECK_FALSE(contains(environment, "MASTER_PORT=0\n"));
  CHECK(contains(environment, "TORCHELASTIC_RUN_ID=job-42\n"));
  const ChildResult elsewhere = launch.run({"--rdzv-endpoint=192.0.2.1:29400"}, {"env"});
  CHECK(elsewhere.code == 2);
  CHECK(contains(elsewhere.err, "--rdzv_endpoint names 192.0.2.1, which is not an address of this host"));
}

TEST_CASE("flags of mpirun count workers, give them variables and name this host") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = {{"KEPT", "here"}};
  CHECK(run_child(Launch::command({"-np", "2", "-x", "LR=0.5", "-x", "KEPT"}, {"env"}), options).code == 0);
  CHECK(contains(launch.folder.read("log/workerlog.1"), "LR=0.5\n"));
  CHECK(contains(launch.folder.read("log/workerlog.1"), "KEPT=here\n"));
  CHECK(launch.run({"-H", "localhost:3"}, {"print", "x"}).code == 0);
  CHECK(launch.folder.has("log/workerlog.2"));
  const ChildResult crowded = launch.run({"-H", "localhost:2", "-n", "3"}, {});
  CHECK(crowded.code == 2);
  CHECK(crowded.err == "fleetrun: error: -H gives 2 slots, -n asks for 3 workers\n");
  CHECK(contains(launch.run({"-H", "node7.invalid"}, {}).err, "-H names node7.invalid"));
  const Words two_hosts = {"-H", "127.0.0.1,127.0.0.2", "--node_rank=0", "--dry_run"};
  const auto dry_run = [&](const char* flag) {
    Words flags = two_hosts;
    flags.insert(flags.end(), {flag, "2"});
    return launch.run(flags, {"env"}).out;
  };
  CHECK(contains(dry_run("-np"), " WORLD_SIZE=2 "));  // a host has one slot, as in mpirun
  CHECK(contains(dry_run("--nproc_per_node"), " WORLD_SIZE=4 "));
  const Words slots = {"-H", "127.0.0.1:2,127.0.0.2:3", "--node_rank=0", "--env=4:A=1", "--dry_run"};
  CHECK(contains(launch.run(slots, {"env"}).out, " WORLD_SIZE=5 "));
}

TEST_CASE("as many workers as cores, and no GPU where there is none") {
  const Launch launch;
  CHECK(launch.run({"--nproc_per_node=cpu"}, {"print", "x"}).code == 0);
  const ChildResult cores = run_child({"/bin/sh", "-c", "nproc"});
  CHECK(launch.report()["ranks"].size() == std::stoul(cores.out));
  if (std::filesystem::exists("/dev/nvidia0")) LEAVE_OUT("this machine has a GPU");
  CHECK(contains(launch.run({"--nproc_per_node=gpu"}, {}).err,
                 "--nproc_per_node is gpu, but this machine has no CUDA device"));
}

TEST_CASE("a worker's environment is backed up for PaddlePaddle, for its user only and without secrets") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = {{"HF_TOKEN", "hush"}};
  CHECK(run_child(Launch::command({"--nproc_per_node=2"}, {"env"}), options).code == 0);
  const std::string path = launch.folder / "log/backup_env.1.json";
  struct stat facts {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  const auto backup = nlohmann::json::parse(launch.folder.read("log/backup_env.1.json"));
  CHECK(backup["PADDLE_TRAINER_ID"] == "1");
  CHECK(backup["HF_TOKEN"] == "***");
  CHECK(contains(launch.folder.read("log/workerlog.1"), "HF_TOKEN=hush\n"));
  CHECK(contains(launch.folder.read("log/workerlog.1"), "/log/backup_env.1.json\n"));
}

}  // namespace
}  // namespace fleetrun

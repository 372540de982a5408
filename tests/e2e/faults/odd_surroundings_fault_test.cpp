// A system or a shell that lacks something: calls, locks, file sizes, permissions, descriptors, the current folder.
#include <sys/stat.h>

#include <array>
#include <map>

#include "e2e/faults/faults.h"

namespace fleetrun::odd_surroundings_fault_test {
namespace {

namespace fs = std::filesystem;

// On a kernel that lacks some calls.
std::map<std::string, std::string> without_calls(const std::string& calls) {
  return {{"LD_PRELOAD", MISSING_CALLS},
          {"MISSING_CALLS", calls},
          {"ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0"}};
}

TEST_CASE("med: a file system without locks is said to be one, and the run goes on") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = without_calls("locks");
  ChildProcess first(Launch::command({}, {"ready", "up", "on-term", "0", "sleep", "100"}), options);
  REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(10s)));
  const ChildResult second = run_child(Launch::command({}, {}), options);
  CHECK(second.code == 73);
  CHECK(contains(second.err, "log/ is in use by fleetrun, pid "));
  first.send(SIGTERM);
  const ChildResult result = first.wait();
  CHECK(result.code == 143);
  CHECK(contains(
      result.err,
      "warning: the file system of log/ has no locks (No locks available (errno 37)): a second run in "
      "the folder would spoil the logs of this one\n"));
  CHECK(run_child(Launch::command({}, {}), options).code == 0);
}

TEST_CASE("suspicion: without close_range all ranks start, and get no descriptor that is not theirs") {
  const Launch launch;
  Words words = {"/bin/sh", "-c", "exec 9< /dev/null; exec \"$@\"", "sh"};
  const Words command = Launch::command({"--nproc_per_node=2"}, {"descriptors"});
  words.insert(words.end(), command.begin(), command.end());
  ChildOptions options = launch.options();
  options.environment = without_calls("close_range");
  const ChildResult result = run_child(words, options);
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("log/workerlog.1").empty());
}

TEST_CASE("low: a limit of file sizes ends neither the launcher nor what it has to say") {
  const ScriptLaunch launch;
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult job = launch.run_after(
      "ulimit -f 200", {FLEETRUN_BINARY, "--device=cpu", "--nproc_per_node=2", "job.json", "train.epochs=1"});
  CHECK(job.code == 71);
  CHECK(contains(job.err, "fleetrun: error: the progress page of a rank has "));
  CHECK(contains(job.err, "ulimit -f unlimited"));
  const ChildResult script =
      launch.run_after("ulimit -f 16", launch.script_command({}, "exit 3\n"));  // less than .reserve takes
  CHECK(script.code == 3);
  CHECK(contains(script.err, "rank 0 exited with code 3"));
}

TEST_CASE("suspicion: a report that cannot be written does not hide what went wrong") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const Launch launch;
  fs::create_directory(launch.folder / "log");
  // Room for .lock and .fleetrun, and for no file more.
  Words words =
      after_mount("mount -t tmpfs -o nr_inodes=3 tmpfs log", Launch::command({"--start_port=1"}, {}));
  words.insert(words.begin(), {"/usr/bin/unshare", "-n"});
  const ChildResult result = run_child(words, launch.options());
  CHECK_MESSAGE(result.code == 73, result.err);
  CHECK(contains(result.err, "endpoints.log"));
  CHECK(contains(result.err, "report.json"));
}

TEST_CASE("the current folder was removed and is needed: said before anything is made") {
  const ScriptLaunch launch;
  launch.folder.write("job.json", kEndlessJob);
  const Words relative = Launch::command({}, {"ready", "started"});
  const Words job = {FLEETRUN_BINARY, "--log_dir=" + launch.folder / "log", launch.folder / "job.json"};
  const Words config = {FLEETRUN_BINARY, "config", launch.folder / "job.json"};
  for (const Words& command : {relative, job, config}) {
    const ChildResult result = launch.run_after("mkdir gone && cd gone && rmdir ../gone", command);
    CHECK(result.code == 66);
    CHECK(contains(
        result.err,
        "fleetrun: error: the current folder cannot be used: No such file or directory (errno 2)\n"));
  }
}

TEST_CASE("what lies in a folder of another user has no permission, whichever command reads it") {
  if (!is_root()) LEAVE_OUT("only root can run as another user");
  const Launch launch;
  std::filesystem::create_directories(launch.folder / "closed/log");
  std::filesystem::permissions(launch.folder / "closed", std::filesystem::perms::owner_all);
  std::ofstream(launch.folder / "picture.png") << "x";
  for (const Words& words :
       {Words{"plot", "closed/history.csv"}, Words{"watch", "--log_dir=closed/log"},
        Words{"logs", "--log_dir=closed/log"}, Words{"predict", "closed/log", "picture.png"},
        Words{"eval", "closed/log", "picture.png"}}) {
    Words command = {FLEETRUN_BINARY};
    command.insert(command.end(), words.begin(), words.end());
    const ChildResult result = run_child(as_nobody(command), launch.options());
    CHECK_MESSAGE(result.code == 77, words.front(), result.err);
  }
}

TEST_CASE("a umask that keeps us from our own files is refused, one that keeps nobody out is harmless") {
  const ScriptLaunch launch;
  const ChildResult refused = launch.run_after("umask 0777", Launch::command({}, {"ready", "started"}));
  CHECK(refused.code == 78);
  CHECK(contains(refused.err,
                 "fleetrun: error: the umask is 0777: it keeps us from reading and writing the files"));
  CHECK_FALSE(launch.folder.has("started"));
  CHECK_FALSE(launch.folder.has("log"));
  CHECK(launch.run_after("umask 0000", Launch::command({}, {"exit", "0"})).code == 0);
  for (const auto& entry : fs::directory_iterator(launch.folder / "log"))
    CHECK_MESSAGE((entry.status().permissions() & fs::perms::others_all) == fs::perms::none,
                  entry.path().string());
}

TEST_CASE("a current folder that may not be written to is named, with the flag that helps") {
  if (!is_root()) LEAVE_OUT("only root can run as another user");
  const ScriptLaunch launch;
  ::chmod(launch.folder.path().c_str(), 0555);
  const ChildResult result = run_child(as_nobody(Launch::command({}, {"exit", "0"})), launch.options());
  CHECK(result.code == 73);
  CHECK(contains(result.err, "fleetrun: error: creating folder log: Permission denied"));
  CHECK(contains(result.err, "--log_dir chooses another folder for the logs"));
}

TEST_CASE("closed standard descriptors: what is said goes nowhere, and never into a file of ours") {
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_after("exec <&- >&- 2>&-", Launch::command({}, {"print", "hello", "exit", "3"}));
  CHECK(result.code == 3);
  CHECK(launch.folder.read("log/workerlog.0") == "hello\n");
  CHECK(launch.folder.read("log/.lock").starts_with("fleetrun, pid "));
  CHECK(launch.folder.read("log/.lock").size() < 64);
  CHECK(launch.report()["exit_code"] == 3);
}

TEST_CASE("a rank that is started by hand without standard descriptors writes to its own files only") {
  const ScriptLaunch launch;
  launch.folder.write("job.json", kEndlessJob);
  const Words words = {FLEETRUN_WORKER, "job.json", "train.epochs=1"};
  CHECK(launch.run_after("exec <&- >&- 2>&-", words).code == 0);
  const std::string weights = launch.folder.read("output/model.safetensors");
  CHECK(launch.run_after("true", words).code == 0);
  CHECK(launch.folder.read("output/model.safetensors") == weights);
}

TEST_CASE("low: without /proc a job file is refused with a word about /proc") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer reads /proc as it starts");
  if (!can_mount()) LEAVE_OUT("mounting is not allowed here");
  const Launch launch;
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult result =
      run_child(after_mount("mount -t tmpfs tmpfs /proc", {FLEETRUN_BINARY, "--device=cpu", "job.json"}),
                launch.options());
  CHECK(result.code == 71);
  CHECK_MESSAGE(contains(result.err, "fleetrun: error: reading /proc/self/exe, to find the worker program"),
                result.err);
}

// The option "subset=pid" is as old as instances of /proc that have their own options: where it works, no option of these
// cases changes the /proc of anybody else.
bool can_mount_proc() {
  return is_root() &&
         run_child(after_mount("mount -t proc -o subset=pid proc /proc", {"/bin/true"})).code == 0;
}

struct HiddenProc {
  std::string option;  // of mount(8)
  bool of_nobody;      // root sees everything in spite of hidepid
};
const std::array kHiddenProcs = {HiddenProc{"subset=pid", false}, HiddenProc{"subset=pid", true},
                                 HiddenProc{"hidepid=2", true}, HiddenProc{"hidepid=2,subset=pid", true}};

ChildResult run_in(const HiddenProc& proc, const Launch& launch, const Words& command) {
  ::chmod(launch.folder.path().c_str(), 0777);
  return run_child(after_mount("mount -t proc -o " + proc.option + " proc /proc",
                               proc.of_nobody ? as_nobody(command) : command),
                   launch.options());
}

TEST_CASE("a job trains, to the same weights, where /proc has only processes or hides those of others") {
  if (!can_mount_proc()) LEAVE_OUT("this user or this kernel cannot mount a /proc with options of its own");
  const auto launch_job = [](const auto& run) {
    const Launch launch;
    launch.folder.write("job.json", kEndlessJob);
    const ChildResult result = run(
        launch, Words{FLEETRUN_BINARY, "--device=cpu", "--nproc_per_node=2", "job.json", "train.epochs=1"});
    CHECK_MESSAGE(result.code == 0, result.err);
    return launch.folder.read("output/model.safetensors");
  };
  const std::string weights = launch_job(
      [](const Launch& launch, const Words& command) { return run_child(command, launch.options()); });
  for (const HiddenProc& proc : kHiddenProcs) {
    CAPTURE(proc.option);
    CHECK(launch_job([&](const Launch& launch, const Words& command) {
            return run_in(proc, launch, command);
          }) == weights);
  }
}

TEST_CASE("where /proc has only processes or hides those of others, nothing that ranks leave survives") {
  if (!can_mount_proc()) LEAVE_OUT("this user or this kernel cannot mount a /proc with options of its own");
  for (const HiddenProc& proc : kHiddenProcs) {
    CAPTURE(proc.option);
    const ScriptLaunch launch;
    const ChildResult result =
        run_in(proc, launch,
               launch.script_command({"--cgroup=none"},
                                     "setsid sleep 300 & echo $! > pid\necho last words\nexit 3\n"));
    CHECK_MESSAGE(result.code == 3, result.err);
    CHECK_MESSAGE(contains(result.err, "fleetrun: rank 0 exited with code 3"), result.err);
    CHECK_MESSAGE(contains(result.err, "    last words\n"), result.err);
    CHECK_FALSE(is_alive(launch.pid_in("pid")));
  }
}

TEST_CASE("low: weights that the limit of file sizes forbids are an error that names them") {
  const ScriptLaunch launch;
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult result =
      launch.run_after("ulimit -f 8", {FLEETRUN_WORKER, "job.json", "train.epochs=1", "model.hidden=[1000]"});
  CHECK(result.code == 74);
  CHECK_MESSAGE(contains(result.err, "output/model.safetensors"), result.err);
  CHECK_MESSAGE(contains(result.err, "File too large (errno 27)"), result.err);
  CHECK_FALSE(launch.folder.has("output/model.safetensors"));
}

}  // namespace
}  // namespace fleetrun::odd_surroundings_fault_test

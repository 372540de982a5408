// Processes and cgroups near a run: the run ends its own, also those of a dead launcher, and no other.
#include <sys/stat.h>

#include "e2e/faults/faults.h"

namespace fleetrun::bystander_fault_test {
namespace {

namespace fs = std::filesystem;

// The group of version 2 that this process is in; "" where none can be made below it.
std::string own_group() {
  const ChildResult found = run_child(
      {"/bin/sh", "-c",
       "mount=$(awk '/ - cgroup2 / {print $5; exit}' /proc/self/mountinfo); group=$(sed -n 's/^0:://p' "
       "/proc/self/cgroup); [ -n \"$mount\" ] && printf %s \"$mount${group%/}\""});
  return found.code == 0 ? found.out : "";
}

TEST_CASE("low: a cgroup that is named as ours are and is not is left in peace") {
  const std::string group = own_group() + "/fleetrun-test-" + std::to_string(::getpid());
  if (!is_root() || ::mkdir(group.c_str(), 0755) != 0) LEAVE_OUT("no cgroup can be made here");
  for (const char* inner : {"/fleetrun-mine", "/fleetrun-1"})
    REQUIRE(::mkdir((group + inner).c_str(), 0755) == 0);
  const ScriptLaunch launch;
  ChildProcess foreign(
      {"/bin/sh", "-c", "echo $$ > " + group + "/fleetrun-mine/cgroup.procs; exec sleep 300"});
  REQUIRE(comes_true([&] { return !read_all(group + "/fleetrun-mine/cgroup.procs").empty(); }, within(10s)));
  const ChildResult result =
      launch.run_after("echo $$ > " + group + "/cgroup.procs",
                       launch.script_command({}, "grep -q fleetrun- /proc/self/cgroup && echo grouped\n"));
  CHECK(result.code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "grouped\n");
  CHECK(is_alive(foreign.pid()));
  CHECK(fs::exists(group + "/fleetrun-1"));
  foreign.send(SIGKILL);
  foreign.wait();
  for (const char* inner : {"/fleetrun-mine", "/fleetrun-1", ""})
    CHECK(comes_true([&] { return ::rmdir((group + inner).c_str()) == 0; }, within(2s)));
}

TEST_CASE("what a launcher left that was killed with its guard is ended by the next one") {
  const std::string group = own_group() + "/fleetrun-test-" + std::to_string(::getpid()) + "-left";
  if (!is_root() || ::mkdir(group.c_str(), 0755) != 0) LEAVE_OUT("no cgroup can be made here");
  REQUIRE(::mkdir((group + "/fleetrun-1").c_str(), 0755) == 0);
  if (run_child({"/usr/bin/python3", "-c",
                 "import os, sys; os.setxattr(sys.argv[1], 'user.fleetrun.launcher', b'1')",
                 group + "/fleetrun-1"})
          .code != 0) {
    ::rmdir((group + "/fleetrun-1").c_str());
    ::rmdir(group.c_str());
    LEAVE_OUT("needs python3 to mark a cgroup");
  }
  ChildProcess left({"/bin/sh", "-c", "echo $$ > " + group + "/fleetrun-1/cgroup.procs; exec sleep 300"});
  REQUIRE(comes_true([&] { return !read_all(group + "/fleetrun-1/cgroup.procs").empty(); }, within(10s)));
  const ScriptLaunch launch;
  CHECK(launch.run_after("echo $$ > " + group + "/cgroup.procs", Launch::command({}, {})).code == 0);
  CHECK(left.wait().code == 137);
  CHECK_FALSE(fs::exists(group + "/fleetrun-1"));
  CHECK(comes_true([&] { return ::rmdir(group.c_str()) == 0; }, within(2s)));
}

TEST_CASE("low: a child that the shell had before it became us outlives the middle process") {
  const Launch launch;
  ChildProcess process(
      {"/bin/bash", "-c",
       "sleep 300 > /dev/null 2>&1 & echo $! > earlier.new; mv earlier.new earlier; exec \"$@\"", "bash",
       FLEETRUN_BINARY, FAKE_WORKER, "daemon", "daemon", "pid", "worker", "sleep", "300"},
      launch.options());
  const pid_t earlier = launch.pid_in("earlier"), worker = launch.pid_in("worker"),
              daemon = launch.pid_in("daemon");
  ::kill(parent_of(worker), SIGKILL);
  CHECK(process.wait(within(20s)).code == 137);
  CHECK(is_alive(earlier));
  CHECK_FALSE(is_alive(worker));
  CHECK_FALSE(is_alive(daemon));
  ::kill(earlier, SIGKILL);
}

TEST_CASE("low: a /proc of another process namespace is read for what it is") {
  if (!is_root() || run_child({"/usr/bin/unshare", "-pf", "/bin/true"}).code != 0)
    LEAVE_OUT("no process namespace can be made here");
  const Launch launch;
  Words words = {"/usr/bin/unshare", "-pf"};
  const Words command = Launch::command({"--cgroup=none"}, {"daemon", "daemon", "child", "exit", "3"});
  words.insert(words.end(), command.begin(), command.end());
  const ChildResult result = run_child(words, launch.options());
  CHECK(result.code == 3);
  CHECK_FALSE(contains(result.err, "still there"));
  CHECK(result.seconds < seconds_within(3s));
}

TEST_CASE("low: without /proc, too, nothing survives") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer reads /proc as it starts");
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  const Words command = launch.script_command({}, "setsid sleep 300 & echo $! > pid\nexit 3\n");
  const ChildResult result = run_child(after_mount("mount -t tmpfs tmpfs /proc", command), launch.options());
  CHECK_MESSAGE(result.code == 3, result.err);
  CHECK_FALSE(is_alive(launch.pid_in("pid")));
}

TEST_CASE("without /proc, three generations are searched one after the other, and none survives") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer reads /proc as it starts");
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  const Words command = launch.script_command(
      {"--cgroup=none"},
      "(setsid sh -c '(setsid sh -c \"sleep 300 & echo \\$! > pid3; wait\") & echo $! > pid2; wait' &)\n"
      "while [ ! -s pid3 ]; do sleep 0.01; done\nexit 3\n");
  const ChildResult result = run_child(after_mount("mount -t tmpfs tmpfs /proc", command), launch.options());
  CHECK_MESSAGE(result.code == 3, result.err);
  CHECK_FALSE(contains(result.err, "still there"));
  for (const char* name : {"pid2", "pid3"}) CHECK_FALSE(is_alive(launch.pid_in(name)));
}

TEST_CASE("hunt: without /proc, ps shows a run and stop ends it") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer reads /proc as it starts");
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  launch.script_command({}, "echo up > up\nexec sleep 300\n");
  const std::string fleetrun = FLEETRUN_BINARY;
  const Words command = {
      "/bin/sh", "-c",
      fleetrun + " --grace=0.1 /bin/sh worker.sh & while [ ! -s up ]; do sleep 0.01; done; " + fleetrun +
          " ps --json > ps.json && " + fleetrun + " stop; wait $!; echo $? > code"};
  const ChildResult result = run_child(after_mount("mount -t tmpfs tmpfs /proc", command), launch.options());
  CHECK_MESSAGE(launch.folder.read("code") == "143\n", result.err);
  CHECK(contains(launch.folder.read("ps.json"), "\"command\": [\"/bin/sh\", \"worker.sh\"]"));
}

TEST_CASE("hunt: without /proc, --hang_timeout is refused, because no rank can be seen working") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer reads /proc as it starts");
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  const Words command = launch.script_command({"--hang_timeout=5"}, "exit 3\n");
  const ChildResult result = run_child(after_mount("mount -t tmpfs tmpfs /proc", command), launch.options());
  CHECK(result.code == 71);
  CHECK_MESSAGE(
      contains(result.err, "--hang_timeout needs /proc, where fleetrun sees whether the ranks work"),
      result.err);
}

TEST_CASE("hunt: without /proc, USR1 ends no rank, and a rank that handles Ctrl-C gets it") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer reads /proc as it starts");
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  launch.script_command({},
                        "trap 'echo saved > saved; exit 0' INT\necho up > up\n"
                        "while :; do sleep 0.05; done\n");
  const std::string fleetrun = FLEETRUN_BINARY;
  const Words command = {
      "/bin/sh", "-c",
      fleetrun + " --grace=5 /bin/sh worker.sh & while [ ! -s up ]; do sleep 0.01; done; " + fleetrun +
          " signal USR1; echo $? > signal; kill -INT $!; wait $!; echo $? > code"};
  const ChildResult result = run_child(after_mount("mount -t tmpfs tmpfs /proc", command), launch.options());
  CHECK_MESSAGE(launch.folder.read("signal") == "75\n", result.err);
  CHECK(launch.folder.read("saved") == "saved\n");
  CHECK_MESSAGE(launch.folder.read("code") == "130\n", result.err);
}

}  // namespace
}  // namespace fleetrun::bystander_fault_test

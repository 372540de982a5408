// Ours or the user's: what a run deletes, replaces or ends is its own, whatever stands around it.
#include <sys/stat.h>

#include <map>

#include "e2e/faults/faults.h"

namespace fleetrun::ours_fault_test {
namespace {

namespace fs = std::filesystem;

// Everything below a folder but `own`: kind, mode, owner and content of each name.
std::map<std::string, std::string> inventory(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat facts {};
    REQUIRE(::lstat(entry.path().c_str(), &facts) == 0);
    std::string text = std::to_string(facts.st_mode) + " " + std::to_string(facts.st_uid) + " ";
    if (entry.is_symlink())
      text += fs::read_symlink(entry.path());
    else if (entry.is_regular_file())
      text += read_all(entry.path());
    found[entry.path().lexically_relative(folder)] = text;
  }
  return found;
}

// Those that were there before are as they were.
void check_untouched(const std::map<std::string, std::string>& before,
                     const std::map<std::string, std::string>& after) {
  for (const auto& [name, content] : before) {
    CAPTURE(name);
    REQUIRE(after.contains(name));
    CHECK(after.at(name) == content);
  }
}

Words as_nobody(const Words& command) {
  Words words = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

TEST_CASE("high: a user's train.json and report.json stay, and the one that we need stops the run") {
  const Launch launch;
  fs::create_directory(launch.folder / "d");
  launch.folder.write("d/train.json", "x");
  CHECK(launch.run({"--log_dir", "d"}, {}).code == 0);
  CHECK(launch.folder.read("d/train.json") == "x");
  launch.folder.write("report.json", "of the user");
  const ChildResult refused = launch.run({"--log_dir", "."}, {"ready", "started"});
  CHECK(refused.code == 73);
  CHECK(refused.err ==
        "fleetrun: error: ./report.json is in the way: a file that no run of fleetrun left there\n"
        "  hint: move it away, or choose another folder for the logs with --log_dir\n");
  CHECK_FALSE(launch.folder.has("started"));
  CHECK(launch.folder.read("report.json") == "of the user");
}

TEST_CASE("high: a job file that is called train.json is not replaced by the report of its training") {
  const Launch launch;
  launch.folder.write("train.json", kEndlessJob);
  const Words words = {"--device=cpu", "--log_dir=.", "train.json", "train.epochs=1"};
  const ChildResult refused = launch.run_words(words);
  CHECK(refused.code == 73);
  CHECK(contains(refused.err, "./train.json is in the way"));
  CHECK(launch.folder.read("train.json") == kEndlessJob);
}

TEST_CASE("a job in the folder of the job before it replaces that one's report") {
  const Launch launch;
  launch.folder.write("job.json", kEndlessJob);
  for (int run = 0; run < 2; ++run) {
    const ChildResult result = launch.run_words({"--device=cpu", "job.json", "train.epochs=1"});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK(launch.report()["train"]["steps"] == 8);
    CHECK(launch.report()["train"]["run_id"] == launch.report()["run_id"]);
  }
}

TEST_CASE("what the user's flags and keys name is replaced when we wrote it, and else named") {
  const Launch launch;
  launch.folder.write("job.json", kEndlessJob);
  const Words job = {"--device=cpu", "job.json", "train.epochs=1", "output.dir=out", "output.trace=[1,2]"};
  const auto with = [&](const std::string& flag) {
    Words words = job;
    words.insert(words.begin(), flag);
    return launch.run_words(words);
  };
  fs::create_directory(launch.folder / "out");
  const struct {
    std::string flag, file;
    int code;
  } kPlaces[] = {{"--grace=9", "out/model.safetensors", 73},
                 {"--grace=9", "out/trace.json", 73},
                 {"--dump_program=out", "out/train.txt", 73},
                 {"--dump_passes=out", "out/00-built.dot", 73},
                 {"--metrics_file=out/notes", "out/notes", 73}};
  for (const auto& [flag, file, code] : kPlaces) {
    CAPTURE(file);
    launch.folder.write(file, "of the user");
    const ChildResult refused = with(flag);
    CHECK(refused.code == code);
    CHECK_MESSAGE(contains(refused.err, file + " is in the way: a file that fleetrun did not write"),
                  refused.err);
    CHECK(launch.folder.read(file) == "of the user");
    fs::remove(launch.folder / file);
    for (int run = 0; run < 2; ++run) {
      const ChildResult result = with(flag);
      CHECK_MESSAGE(result.code == 0, result.err);
      CHECK(launch.folder.has(file));
    }
  }
  launch.folder.write("weights.safetensors", "of the user");
  const Words exporting = {"export", "job.json", "weights.safetensors"};
  const ChildResult refused = launch.run_words(exporting);
  CHECK(refused.code == 73);
  CHECK_MESSAGE(contains(refused.err, "weights.safetensors is in the way"), refused.err);
  fs::remove(launch.folder / "weights.safetensors");
  for (int run = 0; run < 2; ++run) CHECK(launch.run_words(exporting).code == 0);
}

TEST_CASE("med: planted links lead nowhere: .lock, .times, attempt-0") {
  const Launch launch;
  fs::create_directory(launch.folder / "log");
  fs::create_directory(launch.folder / "others");
  launch.folder.write("precious", "precious");
  launch.folder.write("others/workerlog.0", "precious");
  const auto before = inventory(launch.folder.path());
  for (const char* name : {".lock", ".times", ".reserve", ".control", ".fleetrun", "report.json"}) {
    fs::create_symlink("../precious", launch.folder / "log/" + name);
    const ChildResult refused = launch.run({}, {"ready", "started"});
    CHECK(refused.code == 73);
    CHECK(contains(refused.err,
                   std::string("log/") + name + " is in the way: a link that no run of fleetrun left there"));
    fs::remove(launch.folder / "log/" + name);
  }
  fs::create_symlink("../others", launch.folder / "log/attempt-0");
  CHECK(launch.run({}, {}).code == 0);
  CHECK(launch.run({"--max_restart=1"}, {}).code == 73);
  check_untouched(before, inventory(launch.folder.path()));
  CHECK_FALSE(launch.folder.has("started"));
}

TEST_CASE("two runs, two users, one folder, links planted: no byte changes that was not ours") {
  if (!is_root()) LEAVE_OUT("only root can run as another user");
  const Launch launch;
  ::chmod(launch.folder.path().c_str(), 0755);
  const fs::path shared = fs::path(launch.folder.path()) / "shared";
  fs::create_directory(shared);
  fs::create_directory(shared / "others");
  ::chmod(shared.c_str(), 0777);
  launch.folder.write("precious", "precious");
  // Of root: a run's files and its own; of the other user: a list that would have us remove them.
  const ChildResult first =
      launch.run({"--log_dir=shared", "--max_restart=1", "--restart_delay=0"}, {"exit", "3"});
  CHECK(first.code == 93);
  for (const char* name :
       {"train.json", "notes.txt", "workerlog.77", "attempt-0/notes", "others/workerlog.0"})
    launch.folder.write(std::string("shared/") + name, "precious");
  const Words theirs = as_nobody(Launch::command({"--log_dir=shared"}, {"ready", "shared/started"}));

  SUBCASE("the other user runs in the folder of the first") {
    const auto before = inventory(launch.folder.path());
    const ChildResult second = run_child(theirs, launch.options());
    CHECK(second.code == 73);
    CHECK(contains(second.err, "shared/.lock is in the way: a file of user root"));
    CHECK(before == inventory(launch.folder.path()));
  }
  SUBCASE("at the same time") {
    ChildProcess running(
        Launch::command({"--log_dir=shared"}, {"ready", "up", "on-term", "0", "sleep", "100"}),
        launch.options());
    REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(10s)));
    const auto before = inventory(launch.folder.path());
    const ChildResult second = run_child(theirs, launch.options());
    CHECK(second.code == 73);
    CHECK(contains(second.err, "fleetrun: error: shared/ is in use by a run of user root\n"));
    CHECK(launch.run({"--log_dir=shared"}, {}).code == 73);
    CHECK(before == inventory(launch.folder.path()));
    running.send(SIGTERM);
    CHECK(running.wait().code == 143);
  }
  SUBCASE("the first comes back after the other user planted links and a list") {
    const auto before = inventory(launch.folder.path());
    const std::string plant =
        "cd shared; for name in report.json endpoints.log workerlog.0 .times .lock .fleetrun; do\n"
        "  mv $name kept$name; ln -s ../precious $name; done; mv attempt-0 kept; ln -s others attempt-0\n";
    REQUIRE(run_child(as_nobody({"/bin/sh", "-c", plant}), launch.options()).code == 0);
    const auto planted = inventory(launch.folder.path());
    CHECK(launch.run({"--log_dir=shared", "--max_restart=1"}, {}).code == 73);
    CHECK(planted == inventory(launch.folder.path()));
    const std::string forge =
        "cd shared; rm .lock .fleetrun report.json endpoints.log workerlog.0 .times attempt-0\n"
        "{ echo 'fleetrun files 1'; echo 'run 100 forged'\n"
        "  for name in train.json workerlog.77; do stat -c 'made %i 0 '$name $name; done; } > .fleetrun\n";
    REQUIRE(run_child(as_nobody({"/bin/sh", "-c", forge}), launch.options()).code == 0);
    const ChildResult forged = launch.run({"--log_dir=shared"}, {});
    CHECK(forged.code == 73);
    CHECK(contains(forged.err, "shared/.fleetrun is in the way: a file of user nobody"));
    CHECK(launch.folder.read("shared/train.json") == "precious");
    CHECK(launch.folder.read("shared/workerlog.77") == "precious");
    CHECK(launch.folder.read("precious") ==
          before.at("precious").substr(before.at("precious").rfind(' ') + 1));
  }
  SUBCASE("root comes to the folder that the other user's run uses") {
    fs::create_directory(launch.folder / "theirs");
    ::chmod((launch.folder / "theirs").c_str(), 0777);
    ChildProcess running(as_nobody(Launch::command({"--log_dir=theirs"},
                                                   {"ready", "theirs/up", "on-term", "0", "sleep", "100"})),
                         launch.options());
    REQUIRE(comes_true([&] { return launch.folder.has("theirs/up"); }, within(10s)));
    const ChildResult refused = launch.run({"--log_dir=theirs"}, {});
    CHECK(refused.code == 73);
    CHECK_MESSAGE(
        contains(refused.err, "fleetrun: error: theirs/ is in use by a run of user nobody (fleetrun, pid "),
        refused.err);
    running.send(SIGTERM);
    CHECK(running.wait().code == 143);
  }
  SUBCASE("root comes to the folder of the other user") {
    fs::create_directory(launch.folder / "theirs");
    ::chmod((launch.folder / "theirs").c_str(), 0777);
    REQUIRE(run_child(as_nobody(Launch::command({"--log_dir=theirs"}, {})), launch.options()).code == 0);
    const auto before = inventory(launch.folder.path());
    const ChildResult refused = launch.run({"--log_dir=theirs"}, {});
    CHECK(refused.code == 73);
    CHECK_MESSAGE(contains(refused.err, "is in the way: a file of user nobody"), refused.err);
    CHECK(before == inventory(launch.folder.path()));
    CHECK(run_child(as_nobody(Launch::command({"--log_dir=theirs"}, {})), launch.options()).code == 0);
  }
  SUBCASE("the first comes back and removes its own files only") {
    auto before = inventory(launch.folder.path());
    CHECK(launch.run({"--log_dir=shared"}, {}).code == 0);
    for (const char* own : {"report.json", "endpoints.log", "workerlog.0", "backup_env.0.json", ".times",
                            ".lock", ".fleetrun", "attempt-0/workerlog.0", "attempt-0/backup_env.0.json"})
      CHECK(before.erase(std::string("shared/") + own) == 1);
    check_untouched(before, inventory(launch.folder.path()));
    CHECK_FALSE(launch.folder.has("shared/attempt-0/workerlog.0"));
  }
}

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

TEST_CASE("low: a folder called core is not a core file") {
  const Launch launch;
  fs::create_directory(launch.folder / "core");
  const ChildResult result = launch.run({}, {"signal", "11"});
  CHECK(result.code == 139);
  CHECK_FALSE(contains(result.err, "core file: " + launch.folder.path() + "/core\n"));
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
  Words words = {
      "/usr/bin/unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs tmpfs /proc && exec \"$@\"", "sh"};
  const Words command = launch.script_command({}, "setsid sleep 300 & echo $! > pid\nexit 3\n");
  words.insert(words.end(), command.begin(), command.end());
  const ChildResult result = run_child(words, launch.options());
  CHECK_MESSAGE(result.code == 3, result.err);
  CHECK_FALSE(is_alive(launch.pid_in("pid")));
}

TEST_CASE("suspicion: a report that cannot be written does not hide what went wrong") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const Launch launch;
  fs::create_directory(launch.folder / "log");
  // Room for .lock and .fleetrun, and for no file more.
  Words words = {"/usr/bin/unshare",
                 "-m",
                 "/bin/sh",
                 "-c",
                 "mount -t tmpfs -o nr_inodes=3 tmpfs log && exec \"$@\"",
                 "sh"};
  const Words command = Launch::command({"--start_port=1"}, {});
  words.insert(words.end(), command.begin(), command.end());
  words.insert(words.begin(), {"/usr/bin/unshare", "-n"});
  const ChildResult result = run_child(words, launch.options());
  CHECK_MESSAGE(result.code == 73, result.err);
  CHECK(contains(result.err, "endpoints.log"));
  CHECK(contains(result.err, "report.json"));
}

TEST_CASE("suspicion: an error while a restart is prepared does not replace the code of the failure") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script({"--max_restart=1", "--restart_delay=0"},
                                               "echo of the user > log/attempt-0\nexit 3\n");
  CHECK(result.code == 3);
  CHECK(contains(result.err,
                 "log/attempt-0 is in the way: a file that no run of fleetrun left there\n"
                 "  while starting again after: rank 0 exited with code 3\n"));
  CHECK(launch.report()["exit_code"] == 3);
  CHECK(contains(launch.report()["message"].get<std::string>(), "attempt-0"));
  CHECK(launch.folder.read("log/attempt-0") == "of the user\n");
}

TEST_CASE("the current folder was removed and is needed: said before anything is made") {
  const ScriptLaunch launch;
  launch.folder.write("job.json", kEndlessJob);
  const Words relative = Launch::command({}, {"ready", "started"});
  const Words job = {FLEETRUN_BINARY, "--log_dir=" + launch.folder / "log", launch.folder / "job.json"};
  for (const Words& command : {relative, job}) {
    const ChildResult result = launch.run_after("mkdir gone && cd gone && rmdir ../gone", command);
    CHECK(result.code == 66);
    CHECK(contains(
        result.err,
        "fleetrun: error: the current folder cannot be used: No such file or directory (errno 2)\n"));
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
}  // namespace fleetrun::ours_fault_test

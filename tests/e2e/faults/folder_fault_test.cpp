// P: ports and folders that two runs want; D: disks.
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <filesystem>

#include "e2e/faults/faults.h"

namespace fleetrun::folder_fault_test {
namespace {

int listen_somewhere(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd, 1) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  port = ntohs(address.sin_port);
  if (bound) return fd;
  ::close(fd);
  return -1;
}

TEST_CASE("P1: nobody gets a port between its choice and its use") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command({"--nproc_per_node=2"},
                            "echo $PADDLE_TRAINER_ENDPOINTS > new.$RANK; mv new.$RANK ports.$RANK\n"
                            "while [ ! -e go ]; do sleep 0.01; done\n"),
      launch.options());
  REQUIRE(
      comes_true([&] { return launch.folder.has("ports.0") || launch.folder.has("ports.1"); }, within(5s)));
  const std::string text = launch.folder.read(launch.folder.has("ports.0") ? "ports.0" : "ports.1");
  for (int i = 0; i < 1000; ++i) {
    auto port = static_cast<std::uint16_t>(std::atoi(text.c_str() + text.find(':') + 1));
    REQUIRE(listen_somewhere(port) == -1);
  }
  launch.folder.write("go", "");
  CHECK(process.wait().code == 0);
}

TEST_CASE(
    "P1: a port that the user wants and another program has is code 75, with that program's number and name") {
  std::uint16_t port = 0;
  const int holder = listen_somewhere(port);
  REQUIRE(holder >= 0);
  const Launch launch;
  const ChildResult result = launch.run({"--start_port=" + std::to_string(port)}, {"ready", "started"});
  CHECK(result.code == 75);
  CHECK(contains(result.err, "fleetrun: error: port " + std::to_string(port) + " is taken by pid " +
                                 std::to_string(::getpid()) + " ("));
  CHECK(contains(result.err, "fault_test"));
  CHECK_FALSE(launch.folder.has("started"));
  CHECK(launch.report()["exit_code"] == 75);
  ::close(holder);
}

TEST_CASE("P2: two runs with the defaults do not disturb each other") {
  const Launch first, second;
  const Words command = Launch::command({"--nproc_per_node=4"}, {"sleep", "0.2", "exit", "0"});
  ChildProcess one(command, first.options()), other(command, second.options());
  CHECK(one.wait().code == 0);
  CHECK(other.wait().code == 0);
  CHECK(first.folder.read("log/endpoints.log") != second.folder.read("log/endpoints.log"));
}

TEST_CASE("P3: a second run in the same folder is refused with 73, and changes nothing of the first") {
  const Launch launch;
  ChildProcess first(Launch::command({}, {"print", "first", "ready", "up", "on-term", "0", "sleep", "100"}),
                     launch.options());
  launch.pid_in("up");
  const ChildResult second = launch.run({}, {"print", "second"});
  CHECK(second.code == 73);
  CHECK(contains(second.err, "fleetrun: error: log/ is in use by fleetrun, pid " +
                                 std::to_string(first.pid()) + ", since "));
  CHECK(contains(second.err, "--log_dir"));
  CHECK(launch.run({"--log_dir=other"}, {"print", "third"}).code == 0);
  first.send(SIGTERM);
  CHECK(first.wait().code == 143);
  CHECK(launch.folder.read("log/workerlog.0") == "first\n");
}

TEST_CASE("P4: the lock of a run that was killed holds nobody up") {
  const Launch launch;
  ChildProcess first(Launch::command({}, {"pid", "pid", "sleep", "100"}), launch.options());
  ::kill(parent_of(launch.pid_in("pid")), SIGKILL);
  CHECK(first.wait().code == 137);
  CHECK(launch.run({}, {"print", "again"}).code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "again\n");
}

// A shell line that gives the launcher a file system of its own for its logs, which `mount` mounts at log/.
ChildResult run_in_mounted_logs(const Launch& launch, const std::string& mount, const Words& command) {
  std::filesystem::create_directory(launch.folder / "log");
  Words words = {
      "/usr/bin/unshare",
      "-m",
      "/bin/sh",
      "-c",
      mount +
          " && \"$@\"; code=$?; cp log/report.json . 2>/dev/null; tail -c 200 log/workerlog.1 > end.1 2>/dev/null; exit $code",
      "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return run_child(words, launch.options());
}

ChildResult run_mounted(const Launch& launch, const std::string& options, const Words& command) {
  return run_in_mounted_logs(launch, "mount -t tmpfs -o " + options + " tmpfs log", command);
}

TEST_CASE("D1: a log disk that is full costs lines, and neither the run nor its report") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const Launch launch;
  const ChildResult result = run_mounted(
      launch, "size=1m",
      Launch::command({"--nproc_per_node=2"}, {"flood", "3000000", "ready", "done.%r", "exit", "0"}));
  CHECK(result.code == 0);
  CHECK(launch.folder.has("done.0"));
  CHECK(contains(
      result.err,
      "fleetrun: log disk full: lines of the ranks that do not fit in log/ are missing on the console, too\n"));
  const auto report = nlohmann::json::parse(launch.folder.read("report.json"));
  CHECK(report["log_disk_full"] == true);
  CHECK(report["exit_code"] == 0);
}

TEST_CASE("D1: the embedded runtime goes on training though its log has no room") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const Launch launch;
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult result = run_mounted(launch, "size=256k",
                                         {FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "job.json",
                                          "train.epochs=600", "output.dir=" + launch.folder / "output"});
  CHECK(result.code == 0);
  CHECK(contains(result.err, "log disk full"));
  CHECK(launch.folder.has("output/model.safetensors"));
  CHECK_MESSAGE(contains(result.out + result.err, "trained 600 epochs"), result.err);
}

TEST_CASE("hunt 145: a training that fails on a disk that is full of its log names its error") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const Launch launch;
  launch.folder.write("job.json", kEndlessJob);
  // The model has no room either, and takes none from the log.
  const std::string mounts =
      "mount -t tmpfs -o size=256k tmpfs log && mkdir output && mount -t tmpfs -o size=4k tmpfs output && "
      "head -c 4096 /dev/zero > output/full";
  const ChildResult result = run_in_mounted_logs(launch, mounts,
                                                 {FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu",
                                                  "job.json", "train.epochs=600", "output.dir=output"});
  CHECK(result.code == 74);
  CHECK_MESSAGE(contains(result.err, "could not be written to its log:\n"), result.err);
  const auto lost = nlohmann::json::parse(launch.folder.read("report.json"))["lost_lines"];
  CHECK(lost["rank"] == 0);
  CHECK_MESSAGE(contains(lost["last_lines"].back().get<std::string>(), "rank 0: error: writing "),
                lost.dump());
}

TEST_CASE("D1: a program that fails on a full log disk is reported with that cause") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const ScriptLaunch launch;
  const ChildResult result = run_mounted(
      launch, "size=1m",
      launch.script_command({}, "while echo line line line line line line line; do :; done; exit 9\n"));
  CHECK(result.code == 9);
  CHECK(contains(result.err, "fleetrun: log disk full: the last lines of log/workerlog.0 may be missing\n"));
}

TEST_CASE("D1: a page that does not fit on the log disk is missed in a line") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  const Launch launch;
  const ChildResult result = run_mounted(launch, "size=64k", Launch::command({}, {"flood", "300000"}));
  CHECK(result.code == 0);
  CHECK_MESSAGE(contains(result.err, "log/report.html"), result.err);
  CHECK(contains(result.err, "No space left on device"));
}

TEST_CASE("D1: on a disk of 64 or 128 KiB our own reserve costs no line, and none is said to be lost") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small file system cannot be mounted here");
  for (const auto& disk : {std::pair{"size=64k", "2000"}, std::pair{"size=128k", "50000"}}) {
    const std::string size = disk.first, bytes = disk.second;
    CAPTURE(size);
    const Launch launch;
    const ChildResult result = run_mounted(
        launch, size,
        Launch::command({"--nproc_per_node=2"}, {"only", "1", "flood", bytes, "print", "the last line"}));
    CHECK(result.code == 0);
    CHECK(launch.folder.read("end.1").ends_with("the last line\n"));
    CHECK_FALSE(contains(result.err, "lost"));
    CHECK(nlohmann::json::parse(launch.folder.read("report.json"))["log_disk_full"] == false);
  }
}

TEST_CASE("D2: logs that cannot be written are code 73 before any rank starts") {
  const Launch launch;
  launch.folder.write("log", "a file in the way");
  const ChildResult file = launch.run({}, {"ready", "started"});
  CHECK(file.code == 73);
  CHECK(contains(file.err, "log"));
  CHECK(contains(file.err, "--log_dir chooses another folder for the logs"));
  CHECK_FALSE(launch.folder.has("started"));
  std::filesystem::remove(launch.folder / "log");
  if (!is_root() || !can_mount()) LEAVE_OUT("a read-only file system cannot be mounted here");
  const ChildResult read_only = run_mounted(launch, "ro,size=1m", Launch::command({}, {"ready", "started"}));
  CHECK(read_only.code == 73);
  CHECK(contains(read_only.err, "Read-only file system (errno 30)"));
  CHECK_FALSE(launch.folder.has("started"));
}

// An ordinary user's run whose folder lets nobody write any more when the script goes on.
ChildResult run_while_folder_closes(const ScriptLaunch& launch, const Words& flags,
                                    const std::string& script) {
  std::filesystem::permissions(launch.folder.path(), std::filesystem::perms::all);
  return run_child(as_nobody(launch.script_command(flags, "chmod 555 log\n" + script)), launch.options());
}

TEST_CASE("D: a log folder that becomes read-only hides neither the first failure nor its code") {
  if (!is_root()) LEAVE_OUT("only root can become an ordinary user");
  const ScriptLaunch launch;
  const ChildResult result = run_while_folder_closes(launch, {}, "echo last words\nexit 5\n");
  CHECK_MESSAGE(result.code == 5, result.err);
  CHECK(contains(result.err, "rank 0 exited with code 5"));
  CHECK(contains(result.err, "last words"));
  CHECK_MESSAGE(contains(result.err, "fleetrun: creating log/report.json"), result.err);
}

// With ext4 in a file, and the kernel's means of feigning an error of its disk. ext4 then refuses each write, of open files as well.
constexpr const char* kMountExt4 =
    "rm -f disk && truncate -s 8M disk && mkfs.ext4 -q disk && mount -o loop,errors=remount-ro disk log";
constexpr const char* kBreakExt4 =
    "echo broken > /sys/fs/ext4/$(basename $(findmnt -no SOURCE log))/trigger_fs_error\n";

TEST_CASE("D3: a log disk that turns read-only during the run is named as what hides the last words") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a file system cannot be mounted here");
  const ScriptLaunch launch;
  std::filesystem::create_directory(launch.folder / "log");
  const Words try_it = {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
                        kMountExt4 + std::string(" && ") + kBreakExt4};
  if (run_child(try_it, launch.options()).code != 0) LEAVE_OUT("ext4 cannot be mounted and broken here");
  const ChildResult result =
      run_in_mounted_logs(launch, kMountExt4,
                          launch.script_command({}, std::string("echo first words\n") + kBreakExt4 +
                                                        "echo last words\nexit 9\n"));
  CHECK(result.code == 9);
  CHECK_MESSAGE(contains(result.err,
                         "fleetrun: log/ cannot be written: Read-only file system (errno 30): the last "
                         "lines of log/workerlog.0 may be missing\n"),
                result.err);
}

TEST_CASE("D3: a quota that is used up is named as what hides the last words") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a file system cannot be mounted here");
  const ScriptLaunch launch;
  std::filesystem::create_directory(launch.folder / "log");
  // btrfs has quotas of folders, which root meets, too.
  const std::string mount =
      "rm -f disk && truncate -s 128M disk && mkfs.btrfs -q disk && mount -o loop disk log && btrfs quota enable log && btrfs qgroup limit 1M log";
  if (run_child({"/usr/bin/unshare", "-m", "/bin/sh", "-c", mount}, launch.options()).code != 0)
    LEAVE_OUT("btrfs with quotas cannot be mounted here");
  const ChildResult result = run_in_mounted_logs(
      launch, mount,
      launch.script_command({},
                            "head -c 4M /dev/zero | tr '\\0' x; echo; sync log; echo last words; exit 9\n"));
  CHECK(result.code == 9);
  CHECK_MESSAGE(
      contains(result.err,
               "fleetrun: log/ cannot be written: Disk quota exceeded (errno 122): the last lines of "
               "log/workerlog.0 may be missing\n"),
      result.err);
}

TEST_CASE("D: a run that succeeds in a log folder that became read-only is a success") {
  if (!is_root()) LEAVE_OUT("only root can become an ordinary user");
  const ChildResult result = run_while_folder_closes(ScriptLaunch(), {}, "exit 0\n");
  CHECK_MESSAGE(result.code == 0, result.err);
}

TEST_CASE("hunt 42: a log folder that somebody removes during the run is told about at the next look") {
  const ScriptLaunch launch;
  ChildProcess process(
      with_errors_in_a_file(launch.script_command(
          {"--nproc_per_node=2"}, "touch ready.$RANK\nwhile [ ! -e go ]; do sleep 0.05; done\n")),
      launch.options());
  REQUIRE(
      comes_true([&] { return launch.folder.has("ready.0") && launch.folder.has("ready.1"); }, within(5s)));
  std::filesystem::remove_all(launch.folder / "log");
  CHECK(comes_true(
      [&] {
        return contains(launch.folder.read("err"),
                        "log/ was removed: the logs and the report of this run are lost");
      },
      within(15s)));
  launch.folder.write("go", "");
  CHECK(process.wait().code == 0);
  CHECK_FALSE(contains(launch.folder.read("err"), "No such file"));
}

TEST_CASE("hunt 42: ranks start again in a new log folder if somebody has removed the one before") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script({"--max_restart=3", "--restart_delay=0.1"},
                                               "[ -e second ] && { echo the second attempt; exit 0; }\n"
                                               "touch second; rm -rf log; exit 5\n");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(
      contains(result.err, "log/ was removed, and the logs so far are lost; the next ones are in log/"),
      result.err);
  CHECK(launch.folder.read("log/workerlog.0") == "the second attempt\n");
  CHECK(launch.report()["exit_code"] == 0);
  CHECK(launch.report()["earlier_attempts"].size() == 1);
}

TEST_CASE("hunt 45: ranks start again in a new log folder if somebody removes the one before in the pause") {
  const ScriptLaunch launch;
  ChildProcess process(
      with_errors_in_a_file(launch.script_command({"--max_restart=3", "--restart_delay=1"},
                                                  "[ -e second ] && exit 0; touch second; exit 5\n")),
      launch.options());
  REQUIRE(says(launch, "restart 1 of"));
  std::filesystem::remove_all(launch.folder / "log");
  CHECK(process.wait().code == 0);
  CHECK(contains(launch.folder.read("err"), "log/ was removed, and the logs so far are lost"));
  CHECK(launch.report()["exit_code"] == 0);
}

TEST_CASE("hunt 45: a run whose working folder is removed ends with the code of its rank") {
  const ScriptLaunch launch;
  std::filesystem::create_directory(launch.folder / "work");
  ChildOptions options = launch.options();
  options.folder = launch.folder / "work";
  const ChildResult result = run_child({FLEETRUN_BINARY, "--max_restart=2", "--restart_delay=0.1", "--",
                                        "/bin/sh", "-c", "rm -rf " + (launch.folder / "work") + "; exit 3"},
                                       options);
  CHECK_MESSAGE(result.code == 3, result.err);
  CHECK_MESSAGE(contains(result.err, "starting again after: rank 0 exited with code 3"), result.err);
}

TEST_CASE("hunt 42: ranks start again beside a run that has the name of their removed log folder by now") {
  const ScriptLaunch launch, other;
  ChildProcess first(with_errors_in_a_file(launch.script_command(
                         {"--max_restart=3", "--restart_delay=0.1"},
                         "[ -e second ] && { touch again; while [ ! -e go ]; do sleep 0.05; done; exit 0; }\n"
                         "touch second; while [ ! -e fail ]; do sleep 0.05; done; exit 5\n")),
                     launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("second"); }, within(5s)));
  std::filesystem::remove_all(launch.folder / "log");
  ChildProcess second({FLEETRUN_BINARY, "--log_dir=" + (launch.folder / "log"), "--", "/bin/sh", "-c",
                       "touch there; while [ ! -e go ]; do sleep 0.05; done"},
                      other.options());
  REQUIRE(comes_true([&] { return other.folder.has("there"); }, within(5s)));
  launch.folder.write("fail", "");
  REQUIRE(comes_true([&] { return launch.folder.has("again"); }, within(5s)));
  const std::string err = launch.folder.read("err");
  const std::size_t name = err.find("the next ones are in log.");
  REQUIRE_MESSAGE(name != std::string::npos, err);
  const std::string folder = err.substr(err.find("log.", name), err.find('/', name) - err.find("log.", name));
  CHECK(run_child({FLEETRUN_BINARY, "ps", "--log_dir=" + folder}, launch.options()).code == 0);
  launch.folder.write("go", "");
  other.folder.write("go", "");
  CHECK(first.wait().code == 0);
  CHECK(second.wait().code == 0);
  CHECK(launch.folder.has(folder + "/report.json"));
}

TEST_CASE("D: a restart that the log folder refuses names the failure before it") {
  if (!is_root()) LEAVE_OUT("only root can become an ordinary user");
  const ChildResult result =
      run_while_folder_closes(ScriptLaunch(), {"--max_restart=1", "--restart_delay=0"}, "exit 5\n");
  CHECK_MESSAGE(result.code == 5, result.err);
  CHECK(contains(result.err, "while starting again after: rank 0 exited with code 5"));
  CHECK_FALSE(contains(result.err, "terminate called"));
}

}  // namespace
}  // namespace fleetrun::folder_fault_test

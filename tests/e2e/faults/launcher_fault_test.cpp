// L1, L2 and L11 to L21: what happens to the launcher, and around it.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <regex>
#include <set>
#include <sstream>

#include "e2e/faults/faults.h"

namespace fleetrun::launcher_fault_test {
namespace {

constexpr auto kNothingLeft = 1s;  // promised: after the end of a run, or of the launcher

struct Pids {
  pid_t worker = 0, daemon = 0;
};

Pids started(const Launch& launch) { return {launch.pid_in("pid"), launch.pid_in("daemon")}; }

const Words kWorkerWithDaemon = {"ignore-term", "daemon", "daemon", "pid", "pid", "sleep", "100"};

TEST_CASE("L1: when the front process is killed nothing stays, and the next run starts at once") {
  const Launch launch;
  for (const char* cgroup : {"--cgroup=auto", "--cgroup=none"}) {
    ChildProcess process(Launch::command({cgroup}, kWorkerWithDaemon), launch.options());
    const auto [worker, daemon] = started(launch);
    process.send(SIGKILL);
    CHECK(gone(worker, kNothingLeft));
    CHECK(gone(daemon, kNothingLeft));
    CHECK(comes_true([&] { return launch.folder.has("log/report.json"); }, within(kNothingLeft)));
    CHECK(launch.report()["cause"] == "front_lost");
    CHECK(comes_true([&] { return launch.run({}, {"exit", "0"}).code == 0; }, within(kNothingLeft)));
    std::filesystem::remove(launch.folder / "pid");
    std::filesystem::remove(launch.folder / "daemon");
  }
}

TEST_CASE("hunt 19: when the front process is killed soon after a SIGINT, the ranks still save") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command(
          {},
          "trap 'echo > asked; while [ ! -e go ]; do sleep 0.02; done; echo > saved; exit 0' INT\n"
          "echo > ready; while :; do sleep 0.05; done\n"),
      launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("ready"); }, within(10s)));
  process.send(SIGINT);
  REQUIRE(comes_true([&] { return launch.folder.has("asked"); }, within(10s)));
  process.send(SIGKILL);
  REQUIRE(gone(process.pid(), kNothingLeft));
  launch.folder.write("go", "");
  CHECK(comes_true([&] { return launch.folder.has("saved"); }, within(10s)));
  CHECK(comes_true([&] { return launch.folder.has("log/report.json"); }, within(10s)));
  CHECK(launch.report()["cause"] == "stopped");
}

TEST_CASE("L1: when the middle process is killed nothing stays either, and the front says so") {
  const Launch launch;
  for (const char* cgroup : {"--cgroup=auto", "--cgroup=none"}) {
    ChildProcess process(Launch::command({cgroup}, kWorkerWithDaemon), launch.options());
    const auto [worker, daemon] = started(launch);
    ::kill(parent_of(worker), SIGKILL);
    const ChildResult result = process.wait();
    CHECK(result.code == 137);
    CHECK(contains(result.err, "the supervising process was killed by SIGKILL (9)"));
    const auto report = launch.report();
    CHECK(report["cause"] == "error");
    CHECK(report["exit_code"] == 137);
    CHECK(report["message"] == "the supervising process was killed by SIGKILL (9)");
    CHECK(report["seconds"] > 0);
    CHECK_FALSE(is_alive(worker));
    CHECK_FALSE(is_alive(daemon));
    std::filesystem::remove(launch.folder / "pid");
    std::filesystem::remove(launch.folder / "daemon");
  }
}

TEST_CASE(
    "low: a run whose middle process was killed leaves no report of an earlier run, and holds up no later one") {
  const Launch launch;
  CHECK(launch.run({"--job_id=first"}, {"exit", "0"}).code == 0);
  ChildProcess process(Launch::command({"--job_id=second"}, kWorkerWithDaemon), launch.options());
  ::kill(parent_of(started(launch).worker), SIGKILL);
  CHECK(process.wait().code == 137);
  CHECK(launch.report()["job_id"] == "second");
  CHECK(launch.folder.has("log/workerlog.0"));
  CHECK(launch.run({"--job_id=third"}, {"exit", "0"}).code == 0);
  CHECK(launch.report()["job_id"] == "third");
}

TEST_CASE("L2: when both are killed at one moment the workers die with them, and daemons by the cgroup") {
  const Launch launch;
  ChildProcess process(Launch::command({}, kWorkerWithDaemon), launch.options());
  const auto [worker, daemon] = started(launch);
  const pid_t middle = parent_of(worker);
  ::kill(middle, SIGSTOP);  // so that neither has time for anything
  process.send(SIGSTOP);
  ::kill(middle, SIGKILL);
  process.send(SIGKILL);
  CHECK(gone(worker, kNothingLeft));
  std::ifstream file("/proc/" + std::to_string(daemon) + "/cgroup");
  const std::string groups((std::istreambuf_iterator<char>(file)), {});
  if (!contains(groups, "/fleetrun-" + std::to_string(middle))) {
    ::kill(daemon, SIGKILL);
    LEAVE_OUT("no cgroup can be made here, so a daemon outlives a SIGKILL of both processes");
  }
  CHECK(gone(daemon, kNothingLeft));
}

TEST_CASE("L11: a stdout that nobody reads any more stops nothing, and the log is complete") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.close_stdout = true;
  CHECK(run_child(Launch::command({}, {"flood", "1000000", "exit", "0"}), options).code == 0);
  CHECK(launch.folder.read("log/workerlog.0").size() == 1000000);
}

TEST_CASE("hunt 34: when the front process is killed while a reader reads nothing, nothing stays") {
  const Launch launch;
  const Words command = Launch::command({}, {"pid", "rank", "await", "go", "flood", "1000000", "exit", "0"});
  std::array<int, 2> unread{};
  REQUIRE(::pipe2(unread.data(), O_CLOEXEC) == 0);
  const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(unread[1]);
  Words words = {"/bin/sh", "-c", "exec \"$@\" > " + path, "sh"};
  words.insert(words.end(), command.begin(), command.end());
  ChildProcess process(words, launch.options());
  const pid_t middle = parent_of(launch.pid_in("rank"));
  launch.folder.write("go", "");
  REQUIRE(comes_true([&] { return launch.folder.has("log/report.json"); }, within(10s)));
  process.send(SIGKILL);
  CHECK(gone(middle, kNothingLeft));
  for (const int end : unread) ::close(end);
}

TEST_CASE("L12: a terminal that takes nothing holds nothing up") {
  const Launch launch;
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    LEAVE_OUT("no pseudo terminal here");
  Words words = {"/bin/sh", "-c", "exec \"$@\" > " + std::string(::ptsname(terminal)), "sh"};
  const Words command = Launch::command({}, {"flood", "1000000", "ready", "done", "exit", "0"});
  words.insert(words.end(), command.begin(), command.end());
  ChildProcess process(words, launch.options());
  CHECK(comes_true([&] { return launch.folder.has("done"); }, within(2s)));  // the worker was not held up
  REQUIRE(comes_true([&] { return launch.folder.has("log/report.json"); }, within(10s)));
  process.send(SIGINT);  // ends the wait for the terminal
  CHECK(process.wait().code == 0);
  CHECK(launch.folder.read("log/workerlog.0").size() == 1000000);
  ::close(terminal);
}

TEST_CASE("L13: too low a limit of descriptors is raised, or refused with the number that is needed") {
  const ScriptLaunch launch;
  const Words command = {FLEETRUN_BINARY, "--nproc_per_node=32", "/bin/true"};
  CHECK(launch.run_after("ulimit -Sn 64", command).code == 0);
  const ChildResult result = launch.run_after("ulimit -n 64", command);
  CHECK(result.code == 71);
  CHECK(std::regex_search(
      result.err,
      std::regex("fleetrun: error: 32 ranks need \\d+ open descriptors, the hard limit is 64\n")));
  const ChildResult first = launch.run_after(
      "ulimit -n 64", {FLEETRUN_BINARY, "--nnodes=100", "--node_rank=0", "--master=127.0.0.1:6099",
                       "--insecure", "--nproc_per_node=2", "/bin/true"});
  CHECK(first.code == 71);
  CHECK_MESSAGE(contains(first.err, "2 ranks here and 100 nodes need "), first.err);
}

TEST_CASE("L14: when a rank cannot be forked those before it are stopped, and the limit is named") {
  const auto group = TestCgroup::make("pids");
  if (!group || !group->set("pids.max", "8")) LEAVE_OUT("no cgroup with pids.max can be made here");
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_after(group->enter(), Launch::command({"--nproc_per_node=16"}, {"sleep", "100"}));
  CHECK(result.code == 71);
  CHECK(contains(result.err, " could not be started: "));
  CHECK(contains(result.err, "Resource temporarily unavailable (errno 11)\n"));
  CHECK(contains(result.err, "fleetrun: this cgroup may have 8 processes (pids.max in "));
  CHECK(contains(result.err, "fleetrun: stopped by fleetrun: rank"));
  CHECK(launch.report()["cause"] == "spawn");
}

TEST_CASE("L15: an environment that is too large is reported with the variable that is to blame") {
  const ScriptLaunch launch;
  const std::string job = kEndlessJob;
  launch.folder.write("job.json", job.substr(0, job.rfind('}')) + R"(, "env": {"BIG": ")" +
                                      std::string(200000, 'x') + "\"}}");
  const ChildResult one = launch.run_words({"--device=cpu", "job.json"});
  CHECK(one.code == 71);
  CHECK(contains(one.err, "the environment variable BIG has 200004 bytes, Linux passes on at most 131071\n"));
  std::string many;
  for (const char* name : {"BIG1", "BIG2", "BIG3"})
    many += std::string(many.empty() ? "" : ", ") + "\"" + name + "\": \"" + std::string(100000, 'x') + "\"";
  launch.folder.write("job.json", job.substr(0, job.rfind('}')) + ", \"env\": {" + many + "}}");
  const ChildResult all = launch.run_after(
      "ulimit -s 1024", {FLEETRUN_BINARY, "--device=cpu", "job.json"});  // a quarter: 256 KiB
  CHECK(all.code == 71);
  CHECK(contains(all.err, "Argument list too long (errno 7)\n"));
  CHECK(contains(all.err, ", most of them in BIG"));
}

TEST_CASE("L16: arguments reach the worker byte for byte, and the report is JSON whatever they hold") {
  const Launch launch;
  const ChildResult result = launch.run(
      {}, {"args", "", "two words", "new\nline", "--", "--gpus=7", "\xff\xfe", "it's \"quoted\" $HOME"});
  CHECK(result.code == 0);
  CHECK(launch.folder.read("log/workerlog.0") ==
        "\ntwo words\nnew\nline\n--\n--gpus=7\n\xff\xfe\nit's \"quoted\" $HOME\n");
  CHECK(launch.report()["command"].size() == 9);
}

TEST_CASE("L17: without home, terminal type, language or even a folder to stand in, a run works") {
  const ScriptLaunch launch;
  const Words command = {
      "/usr/bin/env", "-i",    "LANG=C", FLEETRUN_BINARY, "--log_dir=" + launch.folder / "log",
      FAKE_WORKER,    "print", "fine"};
  CHECK(run_child(command, launch.options()).code == 0);
  const ChildResult result = launch.run_after("mkdir here && cd here && rmdir ../here", command);
  CHECK(result.code == 0);
  CHECK(contains(result.out, "fine\n"));
}

TEST_CASE("L18: as process 1 of a container it reaps everybody's orphans and passes on the code") {
  const ScriptLaunch launch;
  const Words enter = {"/usr/bin/unshare", "--fork", "--pid", "--mount-proc"};
  Words probe = enter;
  probe.emplace_back("/bin/true");
  if (run_child(probe).code != 0) LEAVE_OUT("no pid namespace can be made here");
  Words words = enter;
  // The shell's background job becomes an orphan of process 1 when the shell ends, before the run does.
  const Words command = launch.script_command(
      {"--nproc_per_node=2"},
      "[ $RANK = 1 ] && exec $FAKE sleep 100\n$FAKE daemon daemon.$RANK exit 0\nsetsid sh -c 'sleep 0.05 "
      "&'\nsleep 0.3\nps -eo stat= 2>/dev/null | grep -c Z\n"
      "exit 7\n");
  words.insert(words.end(), command.begin(), command.end());
  const ChildResult result = run_child(words, launch.options());
  CHECK(result.code == 7);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "0\n"));
  words = enter;
  const Words endless = Launch::command({}, {"ready", "up", "sleep", "100"});
  words.insert(words.end(), endless.begin(), endless.end());
  ChildProcess process(words, launch.options());
  launch.pid_in("up");
  std::ifstream children("/proc/" + std::to_string(process.pid()) + "/task/" + std::to_string(process.pid()) +
                         "/children");
  pid_t first = 0;
  REQUIRE(static_cast<bool>(children >> first));
  ::kill(first, SIGTERM);
  CHECK(process.wait().code == 143);
}

TEST_CASE("L19: a clock that jumps by hours moves no deadline") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["LD_PRELOAD"] = JUMPING_CLOCK;
  options.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0";
  const Words command =
      Launch::command({"--timeout=60", "--hang_timeout=30", "--nproc_per_node=2"}, {"sleep", "0.3"});
  CHECK(run_child(command, options).code == 0);
  const ChildResult late = run_child(Launch::command({"--timeout=0.3"}, {"sleep", "100"}), options);
  CHECK(late.code == 124);
  CHECK(late.seconds < seconds_within(3s));
}

// Whether a socket that shares its port with nobody can be bound there.
bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    names.insert(entry.path().filename());
  return names;
}

constexpr auto kOneCycle = 1000ms;  // at most

// As many as 1,000 take minutes: FLEETRUN_TEST_CYCLES.
int cycles() {
  const char* wanted = std::getenv("FLEETRUN_TEST_CYCLES");
  return wanted == nullptr ? 20 : std::atoi(wanted);
}

int processes_with(const std::string& token) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ");
    count += contains(std::string((std::istreambuf_iterator<char>(file)), {}), token) ? 1 : 0;
  }
  return count;
}

TEST_CASE("L21: starting and stopping again and again leaves no process, port, file or cgroup") {
  const Launch launch;
  const std::string token = "FLEETRUN_TEST_TOKEN=" + launch.folder.path();
  std::filesystem::create_directory(launch.folder / "tmp");
  ChildOptions options = launch.options();
  options.environment["FLEETRUN_TEST_TOKEN"] = launch.folder.path();
  options.environment["TMPDIR"] = launch.folder / "tmp";
  std::set<int> ports;
  std::set<std::string> before;
  for (int i = 0; i < cycles(); ++i) {
    const bool stopped = i % 2 == 1;
    const Words worker =
        stopped ? Words{"daemon", "daemon", "ready", "up", "sleep", "100"} : Words{"exit", "0"};
    ChildProcess process(Launch::command({"--nproc_per_node=2"}, worker), options);
    if (stopped) {
      launch.pid_in("up");
      process.send(SIGTERM);
    }
    REQUIRE(process.wait().code == (stopped ? 143 : 0));
    std::istringstream endpoints(launch.folder.read("log/endpoints.log"));
    for (std::string line; std::getline(endpoints, line);)
      if (line.starts_with("127.")) ports.insert(std::atoi(line.c_str() + line.find(':') + 1));
    // The second worker may be stopped while it writes its own.
    for (const char* name : {"up", "up.new", "daemon", "daemon.new"})
      std::filesystem::remove(launch.folder / name);
    if (i == 1) before = names_in(launch.folder / "log");
  }
  CHECK(processes_with(token) == 0);
  CHECK(ports.size() > 2);
  for (const int port : ports)  // another program, such as a training of another test, may have it by now
    CHECK_MESSAGE(comes_true([port] { return is_free(port); }, within(60s)), port);
  CHECK(names_in(launch.folder / "tmp").empty());
  CHECK(names_in(launch.folder / "log") == before);
  CHECK(names_in(launch.folder.path()) == std::set<std::string>{"log", "tmp"});
}

// Each attempt writes how many descriptors its launcher has open, and fails an hour later: that is progress, and the
// next attempt follows at once.
TEST_CASE("L21: restarts leave no descriptor open in the launcher, however many there are") {
  const ScriptLaunch launch;
  ChildOptions options = launch.options();
  options.environment["LD_PRELOAD"] = STEPPING_CLOCK;
  options.environment["FLEETRUN_TEST_HOURS"] = launch.folder / "hours";
  options.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0";
  const int restarts = cycles();
  const Words command =
      launch.script_command({"--nproc_per_node=2", "--restart_delay=0.001", "--hang_timeout=1e6",
                             "--max_restart=" + std::to_string(restarts)},
                            "[ $RANK = 1 ] && exec sleep 100\n"
                            "sleep 0.02; ls /proc/$PPID/fd | wc -l\nprintf x >> hours; exit 1\n");
  ChildProcess process(command, options);
  CHECK(process.wait(kOneCycle * restarts).code == 1);
  REQUIRE(launch.folder.read("hours").size() == static_cast<std::size_t>(restarts) + 1);
  const std::string first = launch.folder.read("log/attempt-1/workerlog.0");
  CHECK(std::atoi(first.c_str()) > 5);
  CHECK(launch.folder.read("log/workerlog.0") == first);
}

}  // namespace
}  // namespace fleetrun::launcher_fault_test

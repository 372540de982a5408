// ps, stop and signal on a run that goes on.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::run_commands_test {
namespace {

// Somebody else's socket where that of a run would be: says `answer` to the first who asks, and closes.
class HostileSocket {
 public:
  HostileSocket(const TemporaryFolder& folder, const std::string& answer) {
    std::filesystem::create_directory(folder / "log");
    const std::string path = folder / "log/.control";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd_, 1) == 0);
    speaker_ = std::async(std::launch::async, [this, answer] {
      const int peer = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      char request[4096];
      [[maybe_unused]] const ssize_t read = ::read(peer, request, sizeof request);
      for (std::size_t sent = 0; sent < answer.size();) {
        const ssize_t count = ::send(peer, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
      }
      ::close(peer);
    });
  }
  ~HostileSocket() {
    ::shutdown(fd_, SHUT_RDWR);
    speaker_.wait();
    ::close(fd_);
  }
  HostileSocket(const HostileSocket&) = delete;
  HostileSocket& operator=(const HostileSocket&) = delete;

 private:
  int fd_ = -1;
  std::future<void> speaker_;
};

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char letter) {
    return (letter < 0x20 && letter != '\n' && letter != '\t') || letter == 0x7f;
  });
}

TEST_CASE("ps shows the ranks of a run, for people and for programs") {
  const Launch launch;
  ChildProcess run(
      Launch::command({"--nproc_per_node=2", "--job_id=mine"}, {"ready", "up.%r", "sleep", "30"}),
      launch.options());
  const pid_t first = launch.pid_in("up.0");
  launch.pid_in("up.1");
  const auto json = nlohmann::json::parse(launch.run_words({"ps", "--json"}).out);
  CHECK(json["job_id"] == "mine");
  CHECK(json["pid"] == run.pid());
  REQUIRE(json["ranks"].size() == 2);
  CHECK(json["ranks"][0]["pid"] == first);
  CHECK(json["ranks"][0]["memory_mib"].get<double>() > 0);
  const ChildResult text = launch.run_words({"ps"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "RANK      PID  STATE"));
  CHECK(contains(text.out, std::to_string(first) + "  sleeping"));
}

TEST_CASE("hunt 1: ps counts the work and the memory of the program in a shell script") {
  const Launch launch;
  launch.folder.write("run.sh", "sh -c 'while :; do :; done'\necho end\n");
  ChildProcess run({FLEETRUN_BINARY, "--nproc_per_node=1", "--", "sh", "run.sh"}, launch.options());
  const auto seconds = [&] {
    const ChildResult ps = launch.run_words({"ps", "--json"});
    return ps.code == 0 ? nlohmann::json::parse(ps.out)["ranks"][0].value("cpu_seconds", 0.0) : 0;
  };
  CHECK(comes_true([&] { return seconds() > 0.05; }, 10s));
}

TEST_CASE("stop ends a run and waits for its end") {
  const Launch launch;
  ChildProcess run(Launch::command({"--nproc_per_node=2"}, {"ready", "up.%r", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  const ChildResult stop = launch.run_words({"stop"});
  CHECK(stop.code == 0);
  CHECK(stop.out.starts_with("stopped default-"));
  CHECK(run.wait().code == 143);
  CHECK(launch.report()["cause"] == "stopped");
  CHECK_FALSE(launch.folder.has("log/.control"));
}

// A run that has just said where the logs of its first attempt are, and waits to start again.
ChildProcess start_and_fail(const Launch& launch) {
  launch.folder.write("run.sh", "exec \"$@\" 2> said\n");
  const Words words =
      Launch::command({"--max_restart=3", "--restart_delay=100"}, {"print", "so", "exit", "5"});
  Words command = {"/bin/sh", "run.sh"};
  command.insert(command.end(), words.begin(), words.end());
  return ChildProcess(command, launch.options());
}

TEST_CASE(
    "the logs of a failed attempt are where the notice before the pause says, also for logs and after stop") {
  const Launch launch;
  ChildProcess run = start_and_fail(launch);
  REQUIRE(comes_true(
      [&] { return contains(launch.folder.read("said"), "logs before it are in log/attempt-0/"); }, 60s));
  CHECK(launch.folder.read("log/attempt-0/workerlog.0") == "so\n");
  CHECK(launch.run_words({"logs"}).out == "so\n");
  CHECK(launch.run_words({"ps"}).code == 0);
  CHECK(launch.run_words({"stop"}).code == 0);
  CHECK(run.wait().code == 143);
  CHECK(launch.report()["exit_code"] == 143);
  CHECK(launch.report()["stop_signal"] == SIGTERM);
  CHECK(launch.run_words({"logs", "--rank=0"}).out == "so\n");
}

TEST_CASE("the seconds of a rank that has ended stand still in ps") {
  const Launch launch;
  ChildProcess run = start_and_fail(launch);
  REQUIRE(comes_true([&] { return contains(launch.folder.read("said"), "logs before it are in"); }, 60s));
  const auto seconds_of = [&](const char* whose) {
    const auto json = nlohmann::json::parse(launch.run_words({"ps", "--json"}).out);
    return (whose == std::string("run") ? json : json["ranks"][0])["seconds"].get<double>();
  };
  const double before = seconds_of("rank"), start = seconds_of("run");
  REQUIRE(comes_true([&] { return seconds_of("run") > start; }, 60s));
  CHECK(seconds_of("rank") == before);
  CHECK(launch.run_words({"stop"}).code == 0);
}

TEST_CASE("signal ends with 75 while none of the ranks runs") {
  const Launch launch;
  ChildProcess run = start_and_fail(launch);
  REQUIRE(comes_true([&] { return contains(launch.folder.read("said"), "logs before it are in"); }, 60s));
  const ChildResult result = launch.run_words({"signal", "CONT"});
  CHECK(result.code == 75);
  CHECK(result.err == "fleetrun: error: none of these ranks runs any more\n");
  CHECK(launch.run_words({"stop"}).code == 0);
}

TEST_CASE("stop --now does not wait for ranks that ignore SIGTERM") {
  const Launch launch;
  ChildProcess run(Launch::command({"--grace=100"}, {"ignore-term", "ready", "up", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up");
  CHECK(launch.run_words({"stop", "--now"}).code == 0);
  const ChildResult result = run.wait();
  CHECK(result.code == 143);
  const std::string line = "waiting for the ranks to end";
  CHECK(contains(result.err, line));
  CHECK(result.err.find(line) == result.err.rfind(line));
}

TEST_CASE("signal reaches the ranks that are named, by name or number") {
  const Launch launch;
  ChildProcess run(Launch::command({"--nproc_per_node=2"}, {"on-term", "7", "ready", "up.%r", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  CHECK(launch.run_words({"signal", "CONT"}).out == "sent to ranks 0, 1\n");
  CHECK(launch.run_words({"signal", "NOSUCH"}).code == 2);
  const ChildResult wrong = launch.run_words({"signal", "USR1", "--rank=5"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err == "fleetrun: error: the run has the ranks 0 to 1, not 5\n");
  for (const char* none : {"0", "32", "65", "RTMIN+31", "RTMIN+", ""})
    CHECK(launch.run_words({"signal", none}).code == 2);
  CHECK(launch.run_words({"signal", "15", "--rank", "1"}).out == "sent to rank 1\n");
  CHECK(run.wait().code == 7);
  CHECK(launch.report()["first_failed_rank"] == 1);
}

TEST_CASE("signal USR1 goes to the ranks that handle it, and ends none that does not") {
  const Launch launch;
  launch.folder.write("work.sh",
                      "[ $RANK = 0 ] && exec \"$1\" ready up.0 await go\n"
                      "exec \"$1\" on-usr1 'checkpoint now' ready up.1 await go\n");
  ChildProcess run({FLEETRUN_BINARY, "--nproc_per_node=2", "/bin/sh", "work.sh", FAKE_WORKER},
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  const ChildResult result = launch.run_words({"signal", "USR1"});
  CHECK(result.code == 0);
  CHECK(result.out == "sent to rank 1\n");
  CHECK(result.err ==
        "fleetrun: SIGUSR1 (10) was not sent to rank 0: a rank without a handler for it would end\n");
  const ChildResult other = launch.run_words({"signal", "USR2"});
  CHECK(other.code == 75);
  CHECK(other.out.empty());
  CHECK(
      other.err ==
      "fleetrun: error: SIGUSR2 (12) was not sent to ranks 0, 1: a rank without a handler for it would end\n"
      "  hint: TERM and KILL end a rank\n");
  CHECK(comes_true([&] { return contains(launch.folder.read("log/workerlog.1"), "checkpoint now"); }, 60s));
  launch.folder.write("go", "");
  CHECK(run.wait().code == 0);
}

TEST_CASE("signal knows the real-time signals, by name or number") {
  for (const Words& words : {Words{"signal", "64"}, Words{"signal", "SIGRTMIN+30"}}) {
    const Launch launch;
    ChildProcess run(Launch::command({}, {"ready", "up", "sleep", "30"}), launch.options());
    launch.pid_in("up");
    CHECK(launch.run_words(words).out == "sent to rank 0\n");
    CHECK(run.wait().code == 128 + 64);
  }
}

TEST_CASE("stop waits for the run that it stopped, not for the next one in the same folder") {
  for (int round = 0; round < 4; ++round) {
    const Launch launch;
    launch.folder.write("both.sh",
                        "\"$1\" sh -c 'echo > first; sleep 100'\n"
                        "\"$1\" sh -c 'echo > second; while ! test -e go; do sleep 0.02; done'\n");
    ChildProcess runs({"/bin/sh", "both.sh", FLEETRUN_BINARY}, launch.options());
    REQUIRE(comes_true([&] { return launch.folder.has("first"); }, 60s));
    ChildProcess stop({FLEETRUN_BINARY, "stop"}, launch.options());
    CHECK(stop.wait(10s).code == 0);
    launch.folder.write("go", "");
    CHECK(runs.wait().code == 0);
    CHECK(launch.folder.has("second"));
  }
}

TEST_CASE("after stop the folder is free for the next run") {
  const Launch launch;
  for (int round = 0; round < 10; ++round) {
    std::filesystem::remove(launch.folder / "up");
    ChildProcess run(Launch::command({}, {"ready", "up", "sleep", "30"}), launch.options());
    launch.pid_in("up");
    CHECK(launch.run_words({"stop", "--now"}).code == 0);
    CHECK(launch.run({}, {"print", "x"}).code == 0);
    CHECK(run.wait().code == 143);
  }
}

TEST_CASE("ps of a run whose answer is larger than the buffer of a socket") {
  const Launch launch;
  Words worker = {"ready", "up", "sleep", "30"};
  for (int i = 0; i < 45000; ++i) worker.push_back(std::to_string(i));
  ChildProcess run(Launch::command({}, worker), launch.options());
  launch.pid_in("up");
  const ChildResult result = launch.run_words({"ps", "--json"});
  CHECK(result.code == 0);
  CHECK(nlohmann::json::parse(result.out)["command"].size() == worker.size() + 1);
  CHECK(launch.run_words({"ps"}).code == 0);
  CHECK(launch.run_words({"stop"}).code == 0);
}

TEST_CASE("signal --rank 0-1500, --rank 0-2000000000: ranks that the run does not have are named") {
  const Launch launch;
  ChildProcess run(Launch::command({"--nproc_per_node=2"}, {"ready", "up.%r", "sleep", "30"}),
                   launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  std::string all = "0";
  for (int rank = 1; rank < 9000; ++rank) all += "," + std::to_string(rank);
  for (const std::string& ranks : {std::string("0-1500"), std::string("0-2000000000"), all}) {
    const ChildResult result = launch.run_words({"signal", "CONT", "--rank", ranks});
    CHECK(result.code == 2);
    CHECK(contains(result.err, "fleetrun: error: the run has the ranks 0 to 1, not 2\n"));
  }
  const ChildResult many = launch.run_words({"signal", "CONT", "--rank", all + "," + all});
  CHECK(many.code == 2);
  CHECK(contains(many.err, "fleetrun: error: the request has more than 65536 bytes\n"));
  CHECK(launch.run_words({"signal", "CONT", "--rank", "0-1"}).out == "sent to ranks 0, 1\n");
  CHECK(launch.run_words({"stop"}).code == 0);
}

TEST_CASE("ps, stop and signal of another user are refused with 77") {
  if (::geteuid() != 0) LEAVE_OUT("takes root, to be two users");
  const Launch launch;
  ::chmod(launch.folder.path().c_str(), 0755);
  ChildProcess run(Launch::command({}, {"ready", "up", "sleep", "30"}), launch.options());
  launch.pid_in("up");
  ::chmod((launch.folder / "log").c_str(), 0755);
  for (const Words& command : {Words{"ps"}, Words{"stop"}, Words{"signal", "USR1"}}) {
    Words words = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", FLEETRUN_BINARY};
    words.insert(words.end(), command.begin(), command.end());
    const ChildResult result = run_child(words, launch.options());
    CHECK(result.code == 77);
    CHECK(result.err ==
          "fleetrun: error: the run in log/ belongs to user root, and only that user and root may ask it\n");
  }
  CHECK(launch.run_words({"stop"}).code == 0);
}

TEST_CASE("ps --log_dir evil: what a stranger's socket says reaches no terminal as it is") {
  const std::string escapes = R"(\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\r\n)";
  const std::string run = R"({"run_id": ")" + escapes + R"(", "pid": ")" + escapes +
                          R"(", "seconds": 1e308, )" + R"("ranks": [{"rank": ")" + escapes +
                          R"(", "state": ")" + escapes + R"("}, ")" + escapes + R"("]})" + "\n";
  for (const Words& command : {Words{"ps"}, Words{"ps", "--json"}, Words{"signal", "USR1"}, Words{"stop"}})
    for (const std::string& answer :
         {run, R"({"error": ")" + escapes + "\"}\n", escapes + "\n", std::string("\x1b[2J\xff\n"),
          R"({"run_id": ")" + std::string(100'000, 'x') + "\"}\n", std::string("[]\n")}) {
      const Launch launch;
      const HostileSocket socket(launch.folder, answer);
      const ChildResult result = launch.run_words(command);
      CHECK_FALSE(has_control_characters(result.out));
      CHECK_FALSE(has_control_characters(result.err));
      if (command.back() != "--json") CHECK(result.out.size() + result.err.size() < 3000);
    }
}

TEST_CASE("a socket that says nothing, or not all, is an error at once and no time limit") {
  const Launch silent, short_of_words;
  const HostileSocket closes(silent.folder, ""), breaks_off(short_of_words.folder, "{\"run_id\": \"x");
  CHECK(silent.run_words({"ps"}).code == 66);
  const ChildResult result = short_of_words.run_words({"ps"});
  CHECK(result.code == 74);
  CHECK(result.err == "fleetrun: error: the run in log/ does not answer: its answer breaks off\n");
}

TEST_CASE("ps asks as often as it likes while runs begin and end, and always gets an answer or 66") {
  const Launch launch;
  launch.folder.write("many.sh", "for i in 1 2 3 4 5 6 7 8; do \"$1\" sh -c 'sleep 0.05'; done\n");
  ChildProcess runs({"/bin/sh", "many.sh", FLEETRUN_BINARY}, launch.options());
  auto all_runs = std::async(std::launch::async, [&] { return runs.wait(); });
  while (all_runs.wait_for(0s) != std::future_status::ready) {
    const ChildResult result = launch.run_words({"ps"});
    CHECK_MESSAGE((result.code == 0 || result.code == 66), result.err);
  }
  CHECK(all_runs.get().code == 0);
}

TEST_CASE("a run that takes long to end says whom it waits for, and so does stop") {
  const Launch launch;
  ChildProcess run(
      Launch::command({"--grace=7", "--nproc_per_node=2"},
                      {"ready", "up.%r", "only", "1", "ignore-term", "ready", "deaf", "sleep", "60"}),
      launch.options());
  launch.pid_in("up.0");
  launch.pid_in("deaf");
  const ChildResult stop = launch.run_words({"stop"});
  CHECK(stop.code == 0);
  CHECK(contains(stop.err, " has not ended after 5 s; fleetrun stop --now kills its ranks\n"));
  const ChildResult result = run.wait();
  CHECK(result.code == 143);
  CHECK(contains(result.err, "fleetrun: waiting for rank 1 to end, 5 s so far; --grace allows 7 s\n"));
}

TEST_CASE("ps, stop and logs find the folder that the file of FLEETRUN_CONFIG names") {
  const Launch launch;
  launch.folder.write("fleet.json", R"({"log_dir": "elsewhere"})");
  ChildOptions options = launch.options();
  options.environment = {{"FLEETRUN_CONFIG", launch.folder / "fleet.json"}};
  ChildProcess process(Launch::command({}, {"ready", "ready", "sleep", "60"}), options);
  launch.pid_in("ready");
  CHECK(contains(run_child({FLEETRUN_BINARY, "ps"}, options).out, "RANK"));
  CHECK(run_child({FLEETRUN_BINARY, "stop"}, options).code == 0);
  process.wait();
  CHECK(run_child({FLEETRUN_BINARY, "logs"}, options).code == 0);
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("without a run the commands say so") {
  const Launch launch;
  for (const Words& words : {Words{"ps"}, Words{"stop"}, Words{"signal", "USR1"}, Words{"logs"}})
    CHECK(launch.run_words(words).code == 66);
  CHECK(launch.run({}, {"print", "x"}).code == 0);
  const ChildResult result = launch.run_words({"stop"});
  CHECK(result.code == 66);
  CHECK(result.err ==
        "fleetrun: error: no fleetrun uses log/ now\n  hint: --log_dir names the folder of the run\n");
}

TEST_CASE("ps of a run that has ended takes no damaged report, and names one that it may not read") {
  const Launch launch;
  REQUIRE(launch.run({}, {"print", "x"}).code == 0);
  CHECK(launch.run_words({"ps"}).code == 0);
  if (::geteuid() == 0) {
    ::chmod(launch.folder.path().c_str(), 0755);
    ::chmod((launch.folder / "log").c_str(), 0755);
    ::chmod((launch.folder / "log/report.json").c_str(), 0600);
    const ChildResult closed = run_child(
        {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", FLEETRUN_BINARY, "ps"},
        launch.options());
    CHECK(closed.code == 77);
    CHECK(contains(closed.err, "log/report.json: Permission denied"));
  }
  const std::string report = launch.folder.read("log/report.json");
  for (const std::string& damaged :
       {report.substr(0, report.size() / 2), std::string("{}"), std::string("[]")}) {
    launch.folder.write("log/report.json", damaged);
    for (const Words& words : {Words{"ps"}, Words{"ps", "--json"}}) {
      const ChildResult result = launch.run_words(words);
      CHECK(result.code == 65);
      CHECK(result.out.empty());
      CHECK(contains(result.err, "log/report.json is not a report of fleetrun, or is incomplete"));
    }
  }
}

TEST_CASE("the socket is for the same user only, also below a path that is longer than a socket's address") {
  const Launch launch;
  const std::string deep(150, 'd');
  ChildProcess run(Launch::command({"--log_dir=" + deep}, {"ready", "up", "sleep", "30"}), launch.options());
  launch.pid_in("up");
  struct stat facts {};
  REQUIRE(::stat((launch.folder / (deep + "/.control")).c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  CHECK(launch.run_words({"ps", "--log_dir", deep}).code == 0);
  CHECK(launch.run_words({"stop", "--log_dir", deep}).code == 0);
}

}  // namespace
}  // namespace fleetrun::run_commands_test

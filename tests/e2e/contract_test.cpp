// What a worker is given, and what the user reads when all goes well.
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include "e2e/launcher.h"
#include "support/leave_out.h"
#include "support/slowdown.h"

namespace fleetrun::contract_test {
namespace {

std::map<std::string, std::string> environment_in(const std::string& text) {
  std::map<std::string, std::string> variables;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

TEST_CASE("every rank gets the whole contract of Paddle and PyTorch") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = {
      {"http_proxy", "http://proxy"}, {"PADDLE_TRAINING_ROLE", "PSERVER"}, {"MINE", "kept"}};
  CHECK(run_child(Launch::command({"--nproc_per_node=2"}, {"env"}), options).code == 0);
  std::vector<std::map<std::string, std::string>> ranks;
  for (const char* log : {"log/workerlog.0", "log/workerlog.1"})
    ranks.push_back(environment_in(launch.folder.read(log)));
  const std::vector<std::string> endpoints = split(ranks[0]["PADDLE_TRAINER_ENDPOINTS"], ',');
  REQUIRE(endpoints.size() == 2);
  CHECK(endpoints[0] != endpoints[1]);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    auto& environment = ranks[rank];
    const std::string number = std::to_string(rank);
    const std::map<std::string, std::string> wanted = {{"PADDLE_TRAINER_ID", number},
                                                       {"PADDLE_TRAINERS_NUM", "2"},
                                                       {"PADDLE_GLOBAL_RANK", number},
                                                       {"PADDLE_GLOBAL_SIZE", "2"},
                                                       {"PADDLE_LOCAL_RANK", number},
                                                       {"PADDLE_LOCAL_SIZE", "2"},
                                                       {"PADDLE_RANK_IN_NODE", number},
                                                       {"PADDLE_NNODES", "1"},
                                                       {"PADDLE_LOCAL_DEVICE_IDS", number},
                                                       {"PADDLE_WORLD_DEVICE_IDS", "0,1"},
                                                       {"PADDLE_DISTRI_BACKEND", "gloo"},
                                                       {"PADDLE_WITH_GLOO", "0"},
                                                       {"PADDLE_CURRENT_ENDPOINT", endpoints[rank]},
                                                       {"RANK", number},
                                                       {"WORLD_SIZE", "2"},
                                                       {"LOCAL_RANK", number},
                                                       {"LOCAL_WORLD_SIZE", "2"},
                                                       {"GROUP_RANK", "0"},
                                                       {"GROUP_WORLD_SIZE", "1"},
                                                       {"ROLE_RANK", number},
                                                       {"ROLE_WORLD_SIZE", "2"},
                                                       {"ROLE_NAME", "default"},
                                                       {"MASTER_ADDR", "127.0.0.1"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                       {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                                       {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                       {"MINE", "kept"}};
    for (const auto& [name, value] : wanted) CHECK(name + "=" + environment[name] == name + "=" + value);
    CHECK(environment["PADDLE_TRAINER_ENDPOINTS"] == ranks[0]["PADDLE_TRAINER_ENDPOINTS"]);
    CHECK(environment["PADDLE_MASTER"] == "127.0.0.1:" + environment["MASTER_PORT"]);
    CHECK(std::find(endpoints.begin(), endpoints.end(), environment["PADDLE_MASTER"]) == endpoints.end());
    CHECK(environment["TORCHELASTIC_ERROR_FILE"].ends_with("/log/error." + number + ".json"));
    CHECK_FALSE(environment["TORCHELASTIC_RUN_ID"].empty());
    CHECK_FALSE(environment["OMP_NUM_THREADS"].empty());
    for (const char* gone : {"http_proxy", "PADDLE_TRAINING_ROLE", "FLAGS_selected_gpus", "FLEETRUN_RANK"})
      CHECK_MESSAGE(environment.count(gone) == 0, gone);
  }
}

TEST_CASE("with CPU slots each rank selects its own") {
  const Launch launch;
  CHECK(launch.run({"--gpus=0,1,2", "--device=cpu"}, {"env"}).code == 0);
  CHECK(environment_in(launch.folder.read("log/workerlog.2"))["FLAGS_selected_gpus"] == "2");
}

TEST_CASE("a script's own arguments arrive as they were given") {
  const Launch launch;
  CHECK(launch.run({}, {"args", "--gpus=0", "--", "", "a b", "--nnodes", "2", "-h"}).code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "--gpus=0\n--\n\na b\n--nnodes\n2\n-h\n");
}

TEST_CASE("a Python script gets the same environment and its arguments") {
  const Launch launch;
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  launch.folder.write("show.py", "import os, sys\nprint(os.environ['PADDLE_TRAINER_ID'], sys.argv[1:])\n");
  CHECK(launch.run_words({"--nproc_per_node=2", "show.py", "--lr", "0.1"}).code == 0);
  CHECK(launch.folder.read("log/workerlog.1") == "1 ['--lr', '0.1']\n");
}

TEST_CASE("stdout has the banner and the first rank's lines, stderr the table") {
  const Launch launch;
  const ChildResult result = launch.run({"--nproc_per_node=2"}, {"print", "hello"});
  CHECK(result.code == 0);
  CHECK(result.out.starts_with("-----------  Configuration Arguments -----------\ngpus: None\n"));
  CHECK(result.out.ends_with("launch train in CPU mode\nhello\n"));
  CHECK(contains(
      result.err,
      " fleetrun] Local start 2 processes. First process distributed environment info (Only For Debug): \n"
      "    +====="));
  CHECK(contains(
      result.err,
      " fleetrun] details abouts PADDLE_TRAINER_ENDPOINTS can be found in log/endpoints.log, and detail "
      "running logs maybe found in log/workerlog.0\n"));
  CHECK(result.err.ends_with(" fleetrun] Local processes completed.\n"));
  CHECK(launch.folder.read("log/endpoints.log").starts_with("PADDLE_TRAINER_ENDPOINTS: \n127.0.0.1:"));
}

TEST_CASE("a log level leaves out the lines below it") {
  const Launch launch;
  const ChildResult result = launch.run({"--log_level=WARNING"}, {"print", "hello"});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.ends_with("hello\n"));
}

TEST_CASE("a worker starts clean: no foreign descriptor, no blocked or ignored signal") {
  const Launch launch;
  CHECK(launch.run({"--nproc_per_node=2"}, {"descriptors", "signals"}).code == 0);
  CHECK(launch.folder.read("log/workerlog.0").empty());
  CHECK(launch.folder.read("log/workerlog.1").empty());
}

TEST_CASE("under nohup a hang-up stays ignored, for the workers too") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.ignore_hangup = true;
  ChildProcess process(Launch::command({}, {"signals", "ready", "up", "sleep", "0.5", "print", "survived"}),
                       options);
  launch.pid_in("up");
  process.send(SIGHUP);
  CHECK(process.wait().code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "ignored 1\nsurvived\n");
}

TEST_CASE("logs are of this run only") {
  const Launch launch;
  CHECK(launch.run({"--nproc_per_node=3"}, {"print", "first"}).code == 0);
  CHECK(launch.run({"--nproc_per_node=2"}, {"print", "second"}).code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "second\n");
  CHECK_FALSE(launch.folder.has("log/workerlog.2"));
}

TEST_CASE(
    "a run whose log folder got another name keeps to it, and takes nothing from the next run in log/") {
  const Launch launch;
  launch.folder.write("first.sh",
                      "touch up$TORCHELASTIC_RESTART_COUNT\nwhile ! test -e go; do sleep 0.02; done\n"
                      "echo 'ValueError: of the first' >&2; exit 3\n");
  launch.folder.write("second.sh",
                      "printf 'Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n"
                      "KeyError: of the second\n'\n");
  ChildProcess first({FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0.1", "/bin/sh", "first.sh"},
                     launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("up0"); }, 60s));
  std::filesystem::rename(launch.folder / "log", launch.folder / "old");
  CHECK(launch.run_words({"/bin/sh", "second.sh"}).code == 0);
  launch.folder.write("go", "");
  const ChildResult result = first.wait();
  CHECK(result.code == 93);         // it failed twice
  CHECK(launch.folder.has("up1"));  // it was restarted
  CHECK(contains(result.err, "ValueError: of the first"));
  CHECK_FALSE(contains(result.out + result.err, "of the second"));
  CHECK(contains(launch.folder.read("old/report.json"), "of the first"));
}

TEST_CASE("every line of the first rank reaches a pipe, whatever its amount") {
  const Launch launch;
  const ChildResult result = launch.run({}, {"flood", "5000000", "print", "end"});
  CHECK(result.code == 0);
  const auto mode = result.out.find("CPU mode\n");
  REQUIRE(mode != std::string::npos);
  CHECK(result.out.substr(mode + 9) == launch.folder.read("log/workerlog.0"));
}

TEST_CASE("a stdout that nobody reads stops nothing") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.close_stdout = true;
  const ChildResult result =
      run_child(Launch::command({"--nproc_per_node=2"}, {"flood", "1000000"}), options);
  CHECK(result.code == 0);
  CHECK(launch.folder.read("log/workerlog.0").size() == 1000000);
}

TEST_CASE("a reader that pauses, such as a pager, gets everything when it goes on") {
  const Launch launch;
  launch.folder.write("run.sh", "#!/bin/sh\n( \"$@\" 2>&1; echo $? > code ) | ( sleep 3; cat > all )\n");
  run_child(
      {"/bin/sh", launch.folder / "run.sh", FLEETRUN_BINARY, FAKE_WORKER, "flood", "1000000", "exit", "3"},
      launch.options());
  CHECK(launch.folder.read("code") == "3\n");
  CHECK(launch.folder.read("all").size() > 1000000);
  CHECK(contains(launch.folder.read("all"), "rank 0 exited with code 3"));
}

// A run that has ended and waits for a reader that reads nothing: of stdout, and with "2>&1" also of stderr.
struct UnreadRun : Launch {
  explicit UnreadRun(const std::string& redirection) {
    folder.write("run.sh", "#!/bin/sh\n( sh -c 'echo $$ > pid; exec \"$@\"' sh \"$@\"; echo $? > code ) " +
                               redirection + " | while [ ! -e code ]; do sleep 0.01; done\n");
    process = std::make_unique<ChildProcess>(
        Words{"/bin/sh", folder / "run.sh", FLEETRUN_BINARY, FAKE_WORKER, "flood", "1000000"}, options());
    REQUIRE(comes_true([&] { return folder.has("log/report.json"); }, 60s));
  }

  std::unique_ptr<ChildProcess> process;
};

TEST_CASE("Ctrl-C ends the wait for a reader that reads nothing, and the rest is said to be in the log") {
  const UnreadRun launch("");
  ::kill(launch.pid_in("pid"), SIGINT);
  const ChildResult result = launch.process->wait();
  CHECK(launch.folder.read("code") == "0\n");
  CHECK(contains(result.err,
                 "fleetrun: nobody reads our output in time; the rest of it is in log/workerlog.0\n"));
  CHECK(launch.folder.read("log/workerlog.0").size() == 1000000);
}

TEST_CASE("hunt 39: one signal ends the wait for a reader of both streams, and ps says that the run waits") {
  const UnreadRun launch("2>&1");
  const pid_t pid = launch.pid_in("pid");
  const ChildResult ps = launch.run_words({"ps"});
  CHECK(ps.code == 74);
  CHECK_MESSAGE(contains(ps.err, "the run in log/ has ended, and waits until somebody reads its output"),
                ps.err);
  CHECK_MESSAGE(contains(ps.err, "kill " + std::to_string(pid) + " ends the wait"), ps.err);
  ::kill(pid, SIGTERM);
  CHECK(launch.process->wait().code == 0);
  CHECK(launch.folder.read("code") == "0\n");
}

TEST_CASE("fleetrun stop waits for no reader that reads nothing") {
  const Launch launch;
  ChildProcess run(Launch::command({}, {"flood", "1000000", "ready", "up", "sleep", "100"}),
                   launch.options());
  launch.pid_in("up");
  const ChildResult stopped = launch.run_words({"stop"});
  CHECK(stopped.code == 0);
  CHECK_FALSE(contains(stopped.err, "has not ended after 60 s"));
}

TEST_CASE("a closed stdout or stdin is no reason to mix files up") {
  const Launch launch;
  const ChildResult result = run_child(
      {"/bin/sh", "-c", "exec \"$@\" <&- >&-", "sh", FLEETRUN_BINARY, FAKE_WORKER, "print", "hello"},
      launch.options());
  CHECK(result.code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "hello\n");
  CHECK(launch.folder.read("log/.lock").starts_with("fleetrun, pid "));
}

TEST_CASE("a worker may be a launcher itself") {
  const Launch launch;
  CHECK(launch.run_words({FLEETRUN_BINARY, "--log_dir=inner/log", "--nproc_per_node=3", FAKE_WORKER, "env"})
            .code == 0);
  CHECK(environment_in(launch.folder.read("inner/log/workerlog.2"))["PADDLE_TRAINERS_NUM"] == "3");
}

TEST_CASE("the report of a good run says so") {
  const Launch launch;
  CHECK(launch.run({"--nproc_per_node=2", "--job_id=mine"}, {}).code == 0);
  const auto report = launch.report();
  CHECK(report["cause"] == "finished");
  CHECK(report["exit_code"] == 0);
  CHECK(report["job_id"] == "mine");
  CHECK(report["first_failed_rank"].is_null());
  REQUIRE(report["ranks"].size() == 2);
  CHECK(report["ranks"][1]["role"] == "finished");
  CHECK(report["ranks"][1]["code"] == 0);
  CHECK(report["ranks"][1]["log"] == "log/workerlog.1");
  CHECK(report["ranks"][1]["pid"].get<int>() > 0);
}

TEST_CASE("what rank 0 left in train.json is part of the report") {
  const Launch launch;
  launch.folder.write("worker.sh", "#!/bin/sh\necho '{\"steps\": 20}' > log/train.json\n");
  CHECK(launch.run_words({"/bin/sh", "worker.sh"}).code == 0);
  CHECK(launch.report()["train"]["steps"] == 20);
  CHECK(launch.run({}, {}).code == 0);
  CHECK_FALSE(launch.report().contains("train"));
}

TEST_CASE("starting eight programs and seeing them end takes a moment") {
  const Launch launch;
  double best = 10;
  for (int i = 0; i < 5; ++i) best = std::min(best, launch.run({"--nproc_per_node=8"}, {}).seconds);
  CHECK(best < 0.5 * testing::slowness());  // a tenth of it on an idle machine
}

}  // namespace
}  // namespace fleetrun::contract_test

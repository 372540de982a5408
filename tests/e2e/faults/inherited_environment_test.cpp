// What fleetrun inherits from whoever starts it: docs/files-and-processes.md has the table. Descriptors, umask and folders that
// are gone have cases of their own.
#include <sys/resource.h>

#include <regex>

#include "e2e/faults/faults.h"

namespace fleetrun::inherited_environment_test {
namespace {

// By env(1), which becomes the launcher.
Words below_env(Words flags, const Words& command) {
  flags.insert(flags.begin(), "/usr/bin/env");
  flags.insert(flags.end(), command.begin(), command.end());
  return flags;
}

TEST_CASE("row '--ignore-signal=CHLD': a run whose SIGCHLD is ignored ends with its worker's code") {
  const Launch launch;
  const ChildResult result =
      run_child(below_env({"--ignore-signal=CHLD"}, Launch::command({"--nproc_per_node=2"}, {"exit", "3"})),
                launch.options());
  CHECK(result.code == 3);
}

TEST_CASE(
    "row '--ignore-signal=CHLD': signals that are ignored or blocked as we start end a run all the same") {
  for (const char* flag : {"--ignore-signal", "--block-signal"}) {
    for (const int number : {SIGINT, SIGTERM}) {
      const Launch launch;
      const Words worker = {"on-term", "0", "signals", "ready", "up", "sleep", "100"};
      ChildProcess process(below_env({flag}, Launch::command({}, worker)), launch.options());
      launch.pid_in("up");
      process.send(number);
      CHECK_MESSAGE(process.wait().code == 128 + number, flag);
      const bool ignores = std::string(flag) == "--ignore-signal";  // a hangup stays ignored, as nohup wants
      CHECK(launch.folder.read("log/workerlog.0") == (ignores ? "ignored 1\n" : ""));
    }
  }
}

TEST_CASE("an ignored or blocked Ctrl-Z and Ctrl-\\ work") {
  for (const char* flag : {"--ignore-signal", "--block-signal"}) {
    const Launch launch;
    ChildProcess process(below_env({flag}, Launch::command({}, {"pid", "pid", "sleep", "0.5", "exit", "4"})),
                         launch.options());
    const pid_t worker = launch.pid_in("pid");
    process.send(SIGTSTP);
    CHECK(comes_true([&] { return state_of(worker) == 'T' && state_of(process.pid()) == 'T'; }, within(2s)));
    process.send(SIGCONT);
    process.send(SIGQUIT);
    const ChildResult result = process.wait();
    CHECK(result.code == 4);
    CHECK(contains(result.err, "what the ranks are doing:"));
  }
}

TEST_CASE("a reader that goes away ends nothing, also when SIGPIPE is ignored or blocked") {
  for (const char* flag : {"--ignore-signal=PIPE", "--block-signal=PIPE"}) {
    const Launch launch;
    ChildOptions options = launch.options();
    options.close_stdout = true;
    const ChildResult result =
        run_child(below_env({flag}, Launch::command({}, {"flood", "300000", "exit", "6"})), options);
    CHECK(result.code == 6);
  }
}

TEST_CASE("row 'ulimit -f': files that may not be as long as ours are an error with a name") {
  const ScriptLaunch launch;
  const ChildResult none = launch.run_after("ulimit -f 0", Launch::command({}, {"exit", "0"}));
  CHECK_MESSAGE(none.code < 128, none.code);
  CHECK_MESSAGE(contains(none.err, "fleetrun: error: "), none.err);
  CHECK_MESSAGE(contains(none.err, "File too large"), none.err);
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult job =
      launch.run_after("ulimit -f 100", {FLEETRUN_BINARY, "--device=cpu", "--nproc_per_node=2", "job.json"});
  CHECK(job.code == 71);
  CHECK_MESSAGE(
      contains(
          job.err,
          "the progress page of a rank has 4205584 bytes, the limit of file sizes is 51200\n  hint: ulimit -f unlimited"),
      job.err);
}

TEST_CASE("row 'ulimit -f': a worker that a limit ends is reported with that limit") {
  const ScriptLaunch launch;
  const ChildResult length = launch.run_after(
      "ulimit -f 100", Launch::command({}, {"flood", "10000000"}));  // 512 or 1024 bytes each
  CHECK(length.code == 128 + SIGXFSZ);
  CHECK_MESSAGE(
      std::regex_search(length.err, std::regex("fleetrun: files may have \\d+ bytes \\(ulimit -f\\)\n")),
      length.err);
  if (testing::kSlowdown > 1) LEAVE_OUT("the launcher itself takes a second of processor time");
  const ChildResult soft = launch.run_after("ulimit -Ht 100; ulimit -St 1", Launch::command({}, {"spin"}));
  CHECK(soft.code == 128 + SIGXCPU);
  CHECK(contains(soft.err, "fleetrun: a process may take 1 s of processor time (ulimit -t)\n"));
  const ChildResult hard = launch.run_after("ulimit -t 1", Launch::command({}, {"spin"}));
  CHECK(hard.code == 128 + SIGKILL);
  CHECK(contains(hard.err, "fleetrun: a process may take 1 s of processor time (ulimit -t)\n"));
}

TEST_CASE("row 'ulimit -t': the processor time of a rank's children is not blamed for its own death") {
  if (testing::kSlowdown > 1) LEAVE_OUT("the launcher itself takes a second of processor time");
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_after("ulimit -t 1", launch.script_command({}, "$FAKE spin\nkill -KILL $$\n"));
  CHECK(result.code == 128 + SIGKILL);
  CHECK_FALSE(contains(result.err, "ulimit -t"));
}

TEST_CASE("little address space, a small stack, no locked memory and no queued signals are enough") {
  if (testing::kSlowdown > 1) LEAVE_OUT("sanitizers need terabytes of address space");
  const ScriptLaunch launch;
  for (const char* limit :
       {"ulimit -v 60000", "ulimit -s 256", "ulimit -s unlimited", "ulimit -l 0", "ulimit -c 0"}) {
    const ChildResult result =
        launch.run_after(limit, Launch::command({"--nproc_per_node=16", "--grace=1"}, {"exit", "8"}));
    CHECK_MESSAGE(result.code == 8, limit << result.err);
  }
  Words words = {"/usr/bin/prlimit", "--sigpending=0"};
  const Words command = Launch::command({}, {"on-term", "0", "ready", "up", "sleep", "100"});
  words.insert(words.end(), command.begin(), command.end());
  ChildProcess process(words, launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
}

TEST_CASE("a limit of processes that is reached is named") {
  if (!is_root()) LEAVE_OUT("another user without processes is needed, and only root can become one");
  const Launch launch;
  std::filesystem::permissions(launch.folder.path(), std::filesystem::perms::all);
  std::filesystem::copy_file(FLEETRUN_BINARY, launch.folder / "fleetrun");
  std::filesystem::copy_file(FAKE_WORKER, launch.folder / "worker");
  const ChildResult result = run_child({"/usr/bin/prlimit", "--nproc=8", "/usr/bin/setpriv", "--reuid=64321",
                                        "--regid=64321", "--clear-groups", launch.folder / "fleetrun",
                                        "--nproc_per_node=20", launch.folder / "worker", "sleep", "100"},
                                       launch.options());
  CHECK_MESSAGE(result.code == 71, result.err);
  CHECK_MESSAGE(contains(result.err, "fleetrun: this user may have 8 processes (ulimit -u)\n"), result.err);
}

// Two ranks, and the other user has no process, so that the last limit lets all threads start.
TEST_CASE(
    "a limit of processes that refuses a thread to a rank of a job file is 71, whichever thread it is") {
  if (!is_root()) LEAVE_OUT("another user without processes is needed, and only root can become one");
  const Launch launch;
  std::filesystem::permissions(launch.folder.path(), std::filesystem::perms::all);
  launch.folder.write("job.json", R"({
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "synthetic", "samples": 32, "shape": [1, 4, 4], "classes": 2}, "batch_size": 8},
    "train": {"epochs": 1, "threads": 2}, "checkpoint": {"dir": "checkpoints"},
    "strategy": {"sync_nccl_allreduce": false, "execution_strategy": {"num_threads": 3}}
  })");
  int code = 1;
  for (int processes = 3; code != 0 && processes < 60; ++processes) {
    std::filesystem::remove_all(launch.folder / "output");
    const ChildResult result = run_child(
        {"/usr/bin/prlimit", "--nproc=" + std::to_string(processes), "/usr/bin/setpriv", "--reuid=64322",
         "--regid=64322", "--clear-groups", "--inh-caps=-all,+dac_override",
         "--ambient-caps=-all,+dac_override",  // the tests may lie where others do not reach
         FLEETRUN_BINARY, "--cgroup=none", "--device=cpu", "--nproc_per_node=2", "--grace=0.2", "job.json"},
        launch.options());
    code = result.code;
    CHECK_MESSAGE((code == 71 || code == 0), processes << result.err);
  }
  CHECK(code == 0);
}

TEST_CASE("a limit of processes that refuses a thread to fleetrun doctor is 71") {
  if (!is_root()) LEAVE_OUT("another user without processes is needed, and only root can become one");
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["ASAN_OPTIONS"] = "detect_leaks=0";  // the search for leaks starts a thread
  std::filesystem::permissions(launch.folder.path(), std::filesystem::perms::all);
  for (int processes = 1; processes <= 3; ++processes)
    for (int again = 0; again < 3; ++again) {
      const ChildResult result =
          run_child({"/usr/bin/prlimit", "--nproc=" + std::to_string(processes), "/usr/bin/setpriv",
                     "--reuid=64323", "--regid=64323", "--clear-groups", "--inh-caps=-all,+dac_override",
                     "--ambient-caps=-all,+dac_override", FLEETRUN_BINARY, "doctor", "--device=cpu"},
                    options);
      CHECK_MESSAGE((result.code == 71 || result.code == 0), processes, result.err);
    }
}

// Everything but the variable itself and the clock in the messages.
std::string comparable(const ChildResult& result) {
  return std::regex_replace(result.out + result.err, std::regex("\\d+"), "N");
}

TEST_CASE("no locale changes what fleetrun prints, reads or writes") {
  const Words flags = {"--log_rule=I+ within 60.5s", "--grace=0.5"};
  std::string first;
  for (const char* locale : {"C", "C.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1", "xx_YY.bogus", ""}) {
    const Launch launch;
    ChildOptions options = launch.options();
    for (const char* name : {"LC_ALL", "LANG", "LC_NUMERIC", "LANGUAGE"}) options.environment[name] = locale;
    const ChildResult result =
        run_child(Launch::command(flags, {"print", "\xc4\xb0III", "exit", "5"}), options);
    CHECK(result.code == 5);
    if (first.empty()) first = comparable(result);
    CHECK_MESSAGE(comparable(result) == first, locale);
    CHECK(launch.report()["seconds"].is_number());
  }
}

TEST_CASE("a locale with a decimal comma or a dotless i changes nothing that is printed, read or written") {
  const TemporaryFolder made;  // few machines have them
  for (const std::string locale : {"de_DE", "tr_TR"})
    if (run_child({"/usr/bin/env", "localedef", "-i", locale, "-f", "UTF-8", made / locale + ".UTF-8"}).code >
        1)
      LEAVE_OUT("localedef cannot make a locale here");
  std::string first;
  for (const std::string locale : {"C", "de_DE.UTF-8", "tr_TR.UTF-8"}) {
    CAPTURE(locale);
    const Launch launch;
    ChildOptions options = launch.options();
    options.environment = {{"LOCPATH", made.path()}, {"LC_ALL", locale}};
    const std::string comma = locale == "C" ? "." : ",";
    REQUIRE(run_child({"/usr/bin/printf", "%.1f", "1" + comma + "5"}, options).out == "1" + comma + "5");
    const ChildResult result = run_child(
        Launch::command({"--log_rule=I+ within 60.5s", "--grace=0.5"}, {"print", "III", "exit", "5"}),
        options);
    CHECK(result.code == 5);
    if (first.empty()) first = comparable(result);
    CHECK(comparable(result) == first);
    launch.folder.write("job.json", kEndlessJob);
    const ChildResult job = run_child({FLEETRUN_BINARY, "--device=cpu", "--log_dir=job", "--nproc_per_node=2",
                                       "job.json", "train.epochs=1", "optimizer.learning_rate=0.25"},
                                      options);
    CHECK_MESSAGE(job.code == 0, job.err);
    CHECK_FALSE(std::regex_search(job.out, std::regex("\\d,\\d")));
    const auto report = nlohmann::json::parse(launch.folder.read("job/report.json"));
    CHECK(report["train"]["steps"] == 4);
    CHECK(report["seconds"].is_number_float());
  }
}

TEST_CASE("a time zone, known or not, changes no more than the hour in front of a line") {
  std::string first;
  for (const char* zone : {"UTC", "Europe/Berlin", ":/nowhere", "/etc/passwd", "UTC+99:99:99", "<>"}) {
    const Launch launch;
    ChildOptions options = launch.options();
    options.environment["TZ"] = zone;
    const ChildResult result =
        run_child(Launch::command({"--log_prefix={time} "}, {"print", "line", "exit", "5"}), options);
    CHECK(result.code == 5);
    if (first.empty()) first = comparable(result);
    CHECK_MESSAGE(comparable(result) == first, zone);
    CHECK(launch.report()["started"].get<std::string>().ends_with("Z"));
  }
}

TEST_CASE(
    "variables of OpenMP, oneDNN and MKL reach the workers as they are; the launcher computes nothing") {
  const std::map<std::string, std::string> variables = {
      {"OMP_NUM_THREADS", "garbage"}, {"OMP_THREAD_LIMIT", "1"},   {"OMP_DYNAMIC", "true"},
      {"OMP_PROC_BIND", "bogus"},     {"OMP_STACKSIZE", "1E"},     {"GOMP_CPU_AFFINITY", "99999"},
      {"KMP_AFFINITY", "bogus"},      {"ONEDNN_VERBOSE", "all"},   {"ONEDNN_MAX_CPU_ISA", "bogus"},
      {"MKL_NUM_THREADS", "0"},       {"MKL_DEBUG_CPU_TYPE", "-1"}};
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment = variables;
  CHECK(run_child(Launch::command({"--nproc_per_node=2"}, {"env", "exit", "0"}), options).code == 0);
  const std::string log = "\n" + launch.folder.read("log/workerlog.1");
  for (const auto& [name, value] : variables) CHECK(contains(log, "\n" + name + "=" + value + "\n"));
}

}  // namespace
}  // namespace fleetrun::inherited_environment_test

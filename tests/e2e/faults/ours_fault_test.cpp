// Ours or the user's: a run deletes and replaces only its own files, whatever stands around them.
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
    for (const char* own :
         {"report.json", "report.html", "endpoints.log", "workerlog.0", "backup_env.0.json", ".times",
          ".lock", ".fleetrun", "attempt-0/workerlog.0", "attempt-0/backup_env.0.json"})
      CHECK(before.erase(std::string("shared/") + own) == 1);
    check_untouched(before, inventory(launch.folder.path()));
    CHECK_FALSE(launch.folder.has("shared/attempt-0/workerlog.0"));
  }
}

TEST_CASE("low: a folder called core is not a core file") {
  const Launch launch;
  fs::create_directory(launch.folder / "core");
  const ChildResult result = launch.run({}, {"signal", "11"});
  CHECK(result.code == 139);
  CHECK_FALSE(contains(result.err, "core file: " + launch.folder.path() + "/core\n"));
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

}  // namespace
}  // namespace fleetrun::ours_fault_test

#include "launch/logs/log_folder.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/logs/control_address.h"
#include "launch/logs/log_names.h"
#include "launch/logs/why_not.h"
#include "support/longest_file.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::log_folder_test {
namespace {

TEST_CASE("the endpoints file has the published form") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  logs.write_endpoints({{"127.0.0.1", 10097}, {"127.0.0.1", 59371}});
  CHECK(folder.read("log/endpoints.log") == "PADDLE_TRAINER_ENDPOINTS: \n127.0.0.1:10097\n127.0.0.1:59371");
}

// What a run writes to its folder.
void write_all_files(const LogFolder& logs) {
  CHECK(::write(logs.open_worker_log(0).get(), "old", 3) == 3);
  CHECK(::write(logs.open_worker_log(12).get(), "old", 3) == 3);
  CHECK(logs.open_error_log(0));
  CHECK(logs.open_stacks(0));
  CHECK(logs.open_times());
  logs.write("report.json", "{}");
  logs.write("collectives.0.json", "{}");
  logs.write_private("backup_env.0.json", "{}");
  logs.write_endpoints({});
}

TEST_CASE("what an earlier run left goes, what somebody else put there stays") {
  const TemporaryFolder folder;
  write_all_files(LogFolder(folder / "log"));
  for (const char* name : {"workerlog.7", "train.json", "error.3.json", "workerlog.old", "notes.txt",
                           "error.json", "report.json.7.tmp"})
    folder.write(std::string("log/") + name, "of the user");
  const LogFolder logs(folder / "log");
  for (const char* gone : {"workerlog.0", "workerlog.0.err", "workerlog.12", "report.json", "endpoints.log",
                           "stacks.0", "collectives.0.json", "backup_env.0.json", ".times"})
    CHECK_FALSE_MESSAGE(folder.has(std::string("log/") + gone), gone);
  for (const char* kept : {"workerlog.7", "train.json", "error.3.json", "workerlog.old", "notes.txt",
                           "error.json", "report.json.7.tmp"})
    CHECK_MESSAGE(folder.read(std::string("log/") + kept) == "of the user", kept);
}

TEST_CASE("a run that was killed leaves nothing that holds up the next one") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log");
    write_all_files(logs);
    folder.write("list", folder.read("log/.fleetrun"));
    logs.keep_attempt(0);
    CHECK(::write(logs.open_worker_log(0).get(), "new", 3) == 3);
    folder.write("log/workerlog.0", "grown by a worker after the last word of the launcher");
    // What it could still do when it ended properly did not happen.
    std::filesystem::copy_file(folder / "log/.fleetrun", folder / "list",
                               std::filesystem::copy_options::overwrite_existing);
  }
  std::filesystem::copy_file(folder / "list", folder / "log/.fleetrun",
                             std::filesystem::copy_options::overwrite_existing);
  folder.write("log/error.0.json", R"({"message": {"message": "ValueError: no", "extraInfo": {}}})");
  folder.write("log/error.1.json", R"({"of": "the user"})");
  folder.write("log/stacks.0", "");  // made just before the end
  CHECK(why_not(folder / "log") == "");
  for (const char* gone : {"workerlog.0", "attempt-0", "report.json", "error.0.json", "stacks.0"})
    CHECK_FALSE_MESSAGE(folder.has(std::string("log/") + gone), gone);
  CHECK(folder.has("log/error.1.json"));
}

TEST_CASE("what a rank was writing about its error when it was killed is not a user's file") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log", {.ranks = 4});
    folder.write("log/error.0.json", "");
    folder.write("log/error.1.json", R"({"message": {"mess)");
    folder.write("log/error.2.json", R"({"message": "SignalException: 15"})");
    folder.write("log/error.3.json", "[]");
    folder.write("log/error.4.json", R"({"message": "of a rank that this run does not have"})");
    logs.keep_attempt(0);
    CHECK(folder.has("log/attempt-0/error.1.json"));
    CHECK(folder.has("log/attempt-0/error.3.json"));
    CHECK(folder.has("log/error.4.json"));
  }
  CHECK(why_not(folder / "log", {.ranks = 4}) == "");
  for (const char* name : {"log/error.0.json", "log/error.1.json", "log/error.2.json"})
    CHECK_FALSE_MESSAGE(folder.has(name), name);
  CHECK_FALSE(folder.has("log/attempt-0"));
  CHECK(folder.has("log/error.4.json"));
}

TEST_CASE("hunt 4: what a rank writes as its error file is of its attempt, whatever it says") {
  const TemporaryFolder folder;
  for (const char* text :
       {R"({ "message": "a blank first"})", "{\n \"message\": \"indented\"}", "[]", "garbage", R"({"mess)"}) {
    CAPTURE(text);
    const LogFolder logs(folder / "log");
    folder.write("log/error.0.json", text);
    CHECK(logs.read_error_file(0) == text);
    logs.keep_attempt(0);
    CHECK(logs.read_error_file(0) == "");
    folder.write("log/error.0.json", text);  // the next loop begins a run in the folder
  }
  CHECK(why_not(folder / "log") == "");
}

void bind_control_socket(const std::string& path) {
  const ControlAddress found = control_address(path);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&found.address), sizeof found.address) == 0);
}

// Leaves the list of a run that was killed.
void cut_off_run(const TemporaryFolder& folder) {
  {
    const LogFolder logs(folder / "log");
    folder.write("list", folder.read("log/.fleetrun"));
  }
  std::filesystem::rename(folder / "list", folder / "log/.fleetrun");
}

TEST_CASE("a run that was killed while it made its control socket does not hold up the next one") {
  const TemporaryFolder folder;
  cut_off_run(folder);
  bind_control_socket(folder / "log");
  CHECK(why_not(folder / "log") == "");
  CHECK_FALSE(folder.has("log/.control"));
}

TEST_CASE("a socket with our name in the folder of a run that ended is somebody else's") {
  const TemporaryFolder folder;
  { const LogFolder logs(folder / "log"); }
  bind_control_socket(folder / "log");
  CHECK(why_not(folder / "log").find(".control is in the way: a socket that no run of fleetrun left there") !=
        std::string::npos);
  CHECK(folder.has("log/.control"));
}

TEST_CASE("hunt 4: a run that was cut off leaves error files in any form of JSON") {
  const TemporaryFolder folder;
  for (const char* text :
       {R"({ "message": "a blank first"})", "{\n \"message\": \"indented\"}", R"({"mess)"}) {
    CAPTURE(text);
    cut_off_run(folder);
    folder.write("log/error.0.json", text);
    CHECK(why_not(folder / "log") == "");
    CHECK_FALSE(folder.has("log/error.0.json"));
  }
  for (const std::string& text : {std::string("{ notes of the user"), std::string("[]"), std::string(" "),
                                  std::string(2'000'000, 'x')}) {
    cut_off_run(folder);
    folder.write("log/error.0.json", text);
    CHECK(why_not(folder / "log").find("error.0.json is in the way: ") != std::string::npos);
    CHECK(folder.read("log/error.0.json") == text);
    std::filesystem::remove(folder / "log/error.0.json");
  }
}

TEST_CASE("hunt 9: a user's file in the folder of an attempt is found before a rank starts") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log");
    write_all_files(logs);
    logs.keep_attempt(0);
  }
  folder.write("log/attempt-0/workerlog.0", "old, with a note of the user's");
  const std::string log = folder / "log/attempt-0/workerlog.0";
  CHECK(why_not(folder / "log", {.may_start_again = true}) ==
        log + " is in the way: a file that was changed or copied after a run of fleetrun left it there");
  CHECK(folder.has("log/attempt-0/workerlog.12"));  // nothing goes when the run is refused
  CHECK(why_not(folder / "log") == "");             // a run without restarts needs no such folder
  CHECK(folder.read("log/attempt-0/workerlog.0") == "old, with a note of the user's");
}

TEST_CASE("a user's file that has a name of ours stops the run, with its name and a way out") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "log");
  for (const char* name :
       {"report.json", "endpoints.log", "workerlog.0", "workerlog.1.err", "stacks.1", "collectives.0.json",
        "error.1.json", "backup_env.0.json", ".times", ".reserve", ".control", ".lock", ".fleetrun"}) {
    CAPTURE(name);
    const std::string path = folder / "log/" + name;
    folder.write(std::string("log/") + name, "of the user");
    CHECK(why_not(folder / "log", {.ranks = 2}) ==
          path + " is in the way: a file that no run of fleetrun left there");
    CHECK(folder.read(std::string("log/") + name) == "of the user");
    std::filesystem::remove(path);
  }
  CHECK(why_not(folder / "log", {.ranks = 2}) == "");
}

TEST_CASE("high: a user's train.json stays, and stops only a job, which writes one") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "log");
  folder.write("log/train.json", "x");
  {
    const LogFolder logs(folder / "log");
    CHECK(logs.read_train_report() == "");
  }
  CHECK(folder.read("log/train.json") == "x");
  CHECK(why_not(folder / "log", {.has_train_report = true}) ==
        folder / "log/train.json is in the way: a file that no run of fleetrun left there");
  CHECK(folder.read("log/train.json") == "x");
}

TEST_CASE("train.json is known by the id of the run in it") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log", {.run_id = "mine-1", .has_train_report = true});
    folder.write("log/train.json", R"({"steps": 1, "run_id": "mine-1"})");
    CHECK(logs.read_train_report().find("steps") != std::string::npos);
  }
  CHECK(why_not(folder / "log", {.run_id = "mine-2"}) == "");
  CHECK_FALSE(folder.has("log/train.json"));
  folder.write("log/train.json", R"({"run_id": "mine-1"})");
  CHECK(why_not(folder / "log", {.run_id = "mine-3"}) == "");
  CHECK(folder.has("log/train.json"));
}

TEST_CASE("hunt 30: train.json is of the run that the node has joined, also if fleetrun was killed there") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log", {.run_id = "of-this-node", .has_train_report = true});
    logs.join_run("of-all-nodes");
    folder.write("log/train.json", R"({"run_id": "of-all-nodes"})");
    CHECK(logs.read_train_report() != "");
    folder.write("list", folder.read("log/.fleetrun"));
  }
  std::filesystem::copy_file(folder / "list", folder / "log/.fleetrun",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(why_not(folder / "log", {.run_id = "of-this-node-2", .has_train_report = true}) == "");
}

TEST_CASE(
    "hunt 30: what an attempt reported of its training goes with its logs, and is not the report of the next attempt") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log",
                         {.run_id = "mine", .has_train_report = true, .may_start_again = true});
    folder.write("log/train.json", R"({"run_id": "mine"})");
    logs.keep_attempt(0);
    CHECK(logs.read_train_report() != "");  // a stop before the next attempt says how to go on
    logs.keep_train_report(0);
    CHECK(logs.read_train_report() == "");
    CHECK(folder.has("log/attempt-0/train.json"));
  }
  CHECK(why_not(folder / "log") == "");
  CHECK_FALSE(folder.has("log/attempt-0"));
  folder.write("log/attempt-0/train.json", "of the user");
  CHECK(why_not(folder / "log", {.has_train_report = true, .may_start_again = true})
            .find("attempt-0/train.json") != std::string::npos);
}

TEST_CASE("a run under a small ulimit -f leaves nothing that holds up the next one") {
  const TemporaryFolder folder;
  for (int files = 0; files < 4; ++files) {
    CAPTURE(files);
    {
      const LogFolder logs(folder / "log");
      for (int rank = 0; rank < files; ++rank) logs.open_worker_log(rank);
      const LongestFile limit(static_cast<rlim_t>(folder.read("log/.fleetrun").size() + 10));
      CHECK_THROWS_AS(logs.write("report.json", "{}"), Error);
      CHECK_THROWS_AS(logs.write_endpoints({{"127.0.0.1", 10097}}), Error);
    }
    CHECK(why_not(folder / "log", {.keeps_previous = true}) == "");
  }
}

TEST_CASE("a file of ours that the user wrote to since is the user's") {
  const TemporaryFolder folder;
  write_all_files(LogFolder(folder / "log"));
  folder.write("log/report.json", "a longer text of the user's");  // the same inode
  const std::string report = folder / "log/report.json";
  CHECK(why_not(folder / "log") ==
        report + " is in the way: a file that was changed or copied after a run of fleetrun left it there");
  CHECK(folder.read("log/workerlog.0") == "old");  // nothing goes when the run is refused
  std::filesystem::remove(report);
  folder.write("log/report.json", "{}");  // another file of the same size, perhaps with the same inode
  CHECK(why_not(folder / "log").starts_with(report + " is in the way: "));
  std::filesystem::remove(report);
  folder.write("log/workerlog.0", "");  // emptied for want of room: nothing is lost
  CHECK(why_not(folder / "log") == "");
}

TEST_CASE("a copy of the folder with its times is as good as the folder") {
  const TemporaryFolder folder;
  write_all_files(LogFolder(folder / "log"));
  REQUIRE(std::system(("cp -a '" + folder / "log" + "' '" + folder / "copy'").c_str()) == 0);
  CHECK(why_not(folder / "copy") == "");
  CHECK_FALSE(folder.has("copy/workerlog.0"));
}

TEST_CASE("med: planted links are neither followed nor written to nor taken away") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "log");
  std::filesystem::create_directory(folder / "others");
  folder.write("precious", "keep me");
  folder.write("others/workerlog.0", "keep me, too");
  for (const char* name : {".lock", ".times", ".reserve", ".control", ".fleetrun", "report.json",
                           "workerlog.0", "endpoints.log", "stacks.0"}) {
    CAPTURE(name);
    const std::string path = folder / "log/" + name;
    std::filesystem::create_symlink("../precious", path);
    CHECK(why_not(folder / "log") == path + " is in the way: a link that no run of fleetrun left there");
    CHECK(std::filesystem::is_symlink(path));
    std::filesystem::remove(path);
    std::filesystem::create_hard_link(folder / "precious", path);
    CHECK(why_not(folder / "log") == path + " is in the way: a file that no run of fleetrun left there");
    std::filesystem::remove(path);
  }
  std::filesystem::create_symlink("../others", folder / "log/attempt-0");
  CHECK(why_not(folder / "log", {.may_start_again = true}) ==
        folder / "log/attempt-0 is in the way: a link that no run of fleetrun left there");
  const LogFolder logs(folder / "log");
  CHECK_THROWS_AS(logs.keep_attempt(0), Error);
  CHECK(folder.read("others/workerlog.0") == "keep me, too");
  CHECK(folder.read("precious") == "keep me");
}

TEST_CASE("what stands where we write while we run is not replaced") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  logs.write("report.json", "first");
  logs.write("report.json", "second");
  CHECK(folder.read("log/report.json") == "second");
  std::filesystem::remove(folder / "log/report.json");
  folder.write("log/report.json", "of the user");
  CHECK_THROWS_AS(logs.write("report.json", "third"), Error);
  CHECK(folder.read("log/report.json") == "of the user");
  CHECK(logs.open_worker_log(0));
  CHECK_THROWS_AS(logs.open_worker_log(0), Error);
}

TEST_CASE("the logs of an attempt move to a folder of their own, what others put there stays") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log");
    write_all_files(logs);
    folder.write("log/workerlog.5", "of the user");
    logs.keep_attempt(0);
    CHECK(folder.read("log/attempt-0/workerlog.0") == "old");
    CHECK_FALSE(folder.has("log/workerlog.0"));
    CHECK(folder.has("log/workerlog.5"));
    folder.write("log/attempt-0/notes", "of the user");
  }
  CHECK(why_not(folder / "log", {.may_start_again = true}) == "");
  CHECK_FALSE(folder.has("log/attempt-0/workerlog.0"));
  CHECK(folder.read("log/attempt-0/notes") == "of the user");
  std::filesystem::remove(folder / "log/attempt-0/notes");
  CHECK(why_not(folder / "log") == "");
  CHECK_FALSE(folder.has("log/attempt-0"));
}

TEST_CASE("of a long history the first line and the last rows are read") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  CHECK(logs.read_history(100).empty());
  logs.prepare_history();
  std::string rows = "step,loss\n";
  for (int i = 10; i < 100; ++i) rows += fmt::format("{},0.5\n", i);
  folder.write("log/history.csv", rows);
  CHECK(logs.read_history(rows.size()) == rows);
  CHECK(logs.read_history(20) == "step,loss\n98,0.5\n99,0.5\n");
}

TEST_CASE("a folder of logs goes without what is not ours") {
  const TemporaryFolder folder;
  write_all_files(LogFolder(folder / "log"));
  remove_log_folder(folder / "log");
  CHECK_FALSE(folder.has("log"));
  write_all_files(LogFolder(folder / "log"));
  folder.write("log/result", "of the user");
  remove_log_folder(folder / "log");
  CHECK(folder.read("log/result") == "of the user");
  CHECK_FALSE(folder.has("log/.fleetrun"));
}

TEST_CASE("who looks whether a run uses the folder keeps no run from starting") {
  const TemporaryFolder folder;
  CHECK_FALSE(is_in_use(folder / "log"));
  {
    const LogFolder logs(folder / "log");
    CHECK(is_in_use(folder / "log"));
  }
  CHECK_FALSE(is_in_use(folder / "log"));
  std::atomic<bool> stop = false;
  std::thread looker([&] {
    while (!stop) is_in_use(folder / "log");
  });
  for (int start = 0; start < 500; ++start) CHECK(why_not(folder / "log") == "");
  stop = true;
  looker.join();
}

TEST_CASE("a second run in the folder is refused until the first is over, and changes nothing") {
  const TemporaryFolder folder;
  {
    const LogFolder first(folder / "log");
    CHECK(::write(first.open_worker_log(0).get(), "of the first", 12) == 12);
    try {
      const LogFolder second(folder / "log");
      FAIL("the folder is in use");
    } catch (const Error& error) {
      CHECK(error.exit_code() == 73);
      CHECK(error.message().substr(0, error.message().rfind(", since ")) ==
            folder / "log" + "/ is in use by fleetrun, pid " + std::to_string(::getpid()));
    }
    CHECK(folder.read("log/workerlog.0") == "of the first");
  }
  const LogFolder third(folder / "log");
}

TEST_CASE("hunt 21: a folder in use names the process that `fleetrun ps` shows") {
  const TemporaryFolder folder;
  const LogFolder first(folder / "log", {.pid = 4711});
  CHECK(why_not(folder / "log").starts_with(folder / "log" + "/ is in use by fleetrun, pid 4711, since "));
}

TEST_CASE("a user's log with a number that no rank has does not stop the run") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "log");
  folder.write("log/workerlog.99999999999999999999", "of the user");
  CHECK(why_not(folder / "log").empty());
  CHECK(folder.read("log/workerlog.99999999999999999999") == "of the user");
}

TEST_CASE("a folder that is a link to nothing is named with what it points to") {
  const TemporaryFolder folder;
  REQUIRE(::symlink("no/such/folder", (folder / "log").c_str()) == 0);
  CHECK(why_not(folder / "log") ==
        "creating folder " + folder / "log" + ": it is a link to no/such/folder, which does not exist");
}

TEST_CASE("a folder that cannot be made is code 73") {
  const TemporaryFolder folder;
  folder.write("file", "in the way");
  for (const std::string& path : {folder / "file", folder / "file/log"}) {
    try {
      const LogFolder logs(path);
      FAIL("a file is in the way");
    } catch (const Error& error) {
      CHECK(error.exit_code() == 73);
      CHECK(error.message().find("file") != std::string::npos);
    }
  }
}

TEST_CASE("a log that cannot be written is named") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "log/workerlog.x");
  const LogFolder logs(folder / "log");
  std::filesystem::create_directories(folder / "log/workerlog.1");
  CHECK_THROWS_AS(logs.open_worker_log(1), Error);
  const UniqueFd fd = logs.open_worker_log(0);
  CHECK(::write(fd.get(), "x", 1) == 1);
  CHECK(folder.read("log/workerlog.0") == "x");
}

TEST_CASE("the newest logs are in the folder, and in its last attempt while no other has begun") {
  const TemporaryFolder folder;
  CHECK(newest_logs(folder.path()) == folder.path());
  for (const char* attempt : {"attempt-9", "attempt-10"}) std::filesystem::create_directory(folder / attempt);
  CHECK(newest_logs(folder.path()) == folder / "attempt-10");
  folder.write("workerlog.0", "");
  CHECK(newest_logs(folder.path()) == folder.path());
}

}  // namespace
}  // namespace fleetrun::launch::log_folder_test

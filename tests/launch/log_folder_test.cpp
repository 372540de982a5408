#include "launch/log_folder.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::log_folder_test {
namespace {

TEST_CASE("the endpoints file has the published form") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  logs.write_endpoints({{"127.0.0.1", 10097}, {"127.0.0.1", 59371}});
  CHECK(folder.read("log/endpoints.log") == "PADDLE_TRAINER_ENDPOINTS: \n127.0.0.1:10097\n127.0.0.1:59371");
}

TEST_CASE("what an earlier run left goes, what somebody else put there stays") {
  const TemporaryFolder folder;
  { const LogFolder logs(folder / "log"); }
  for (const char* name : {"workerlog.0", "workerlog.12", "report.json", "train.json", "error.3.json",
                           "endpoints.log", "workerlog.old", "notes.txt", "error.json"})
    folder.write(std::string("log/") + name, "old");
  const LogFolder logs(folder / "log");
  for (const char* gone :
       {"workerlog.0", "workerlog.12", "report.json", "train.json", "error.3.json", "endpoints.log"})
    CHECK_FALSE_MESSAGE(folder.has(std::string("log/") + gone), gone);
  for (const char* kept : {"workerlog.old", "notes.txt", "error.json"})
    CHECK_MESSAGE(folder.has(std::string("log/") + kept), kept);
}

TEST_CASE("a second run in the folder is refused until the first is over, and changes nothing") {
  const TemporaryFolder folder;
  {
    const LogFolder first(folder / "log");
    folder.write("log/workerlog.0", "of the first");
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

}  // namespace
}  // namespace fleetrun::launch::log_folder_test

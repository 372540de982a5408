// What is wrong before anything starts. What goes wrong later: the fault matrix in tests/e2e/faults.
#include "e2e/launcher.h"

namespace fleetrun::failure_test {
namespace {

TEST_CASE("a bad command line is code 2") {
  const Launch launch;
  CHECK(launch.run_words({"--nproc=2", "true"}).code == 2);
  CHECK(launch.run_words({}).code == 2);
  CHECK(launch.run_words({"--gpus=0", "--device=cuda", "true"}).code != 0);
}

TEST_CASE("a bad job file makes no process and no file") {
  const Launch launch;
  launch.folder.write("job.json", "{");
  const ChildResult result = launch.run_words({"job.json"});
  CHECK(result.code == 78);
  CHECK(contains(result.err, "job.json"));
  CHECK(launch.run_words({"missing.json"}).code == 66);
  CHECK_FALSE(launch.folder.has("log"));
}

}  // namespace
}  // namespace fleetrun::failure_test

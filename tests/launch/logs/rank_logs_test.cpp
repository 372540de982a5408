#include "launch/logs/rank_logs.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::rank_logs_test {
namespace {

TEST_CASE("ranks with logs are found in their order, and a folder without any is an error") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(find_logs(folder.path()), Error);
  for (const char* name :
       {"workerlog.10", "workerlog.2", "workerlog.2.err", "workerlog.x", "workerlog..err", "endpoints.log"})
    folder.write(name, "");
  CHECK(find_logs(folder.path()) == std::vector<RankLog>{{2}, {2, true}, {10}});
}

TEST_CASE("the present attempt comes after those that are kept, and after those before a node joined") {
  const TemporaryFolder folder;
  CHECK(attempt_in(folder.path(), 0) == 0);
  CHECK(attempt_in(folder.path(), 3) == 3);
  folder.write("attempt-9/workerlog.0", "");
  folder.write("attempt-10/workerlog.0", "");
  CHECK(attempt_in(folder.path(), 3) == 11);
  CHECK(attempt_in(folder / "attempt-9", 3) == 9);
}

}  // namespace
}  // namespace fleetrun::launch::rank_logs_test

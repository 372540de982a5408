#include "base/run/rank_env.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::rank_env_test {
namespace {

TEST_CASE("what the launcher writes is what the worker reads") {
  const RankEnv written = {.rank = 5,
                           .world_size = 8,
                           .local_rank = 1,
                           .local_size = 4,
                           .node_rank = 1,
                           .nodes = 2,
                           .attempt = 3,
                           .run_id = "run-1",
                           .store = {"127.0.0.1", 6170},
                           .key_fd = 7,
                           .progress_fd = 9,
                           .job_fd = 11,
                           .log_dir = "/tmp/log",
                           .device = "cuda:2",
                           .dump_dir = "/tmp/dump",
                           .passes_dir = "/tmp/passes",
                           .threads = 6,
                           .comm_backend = CommBackend::gloo};
  Environment environment;
  write_rank_env(written, environment);
  CHECK(read_rank_env(environment) == written);
}

TEST_CASE("without a launcher a worker is the only rank") {
  CHECK(read_rank_env(Environment()) == RankEnv());
}

TEST_CASE("a variable that is missing or no number is named") {
  Environment environment;
  write_rank_env(RankEnv(), environment);
  environment.set("FLEETRUN_WORLD_SIZE", "two");
  CHECK_THROWS_WITH_AS(read_rank_env(environment), "FLEETRUN_WORLD_SIZE is \"two\", must be a number", Error);
  environment.erase("FLEETRUN_WORLD_SIZE");
  CHECK_THROWS_WITH_AS(read_rank_env(environment), "FLEETRUN_WORLD_SIZE is not set, though FLEETRUN_RANK is",
                       Error);
}

TEST_CASE("the user may choose how ranks reach each other, by a known name") {
  Environment environment;
  write_rank_env(RankEnv(), environment);
  CHECK_FALSE(environment.has("FLEETRUN_COMM_BACKEND"));
  CHECK(read_rank_env(environment).comm_backend == CommBackend::automatic);
  environment.set("FLEETRUN_COMM_BACKEND", "");
  CHECK(read_rank_env(environment).comm_backend == CommBackend::automatic);
  environment.set("FLEETRUN_COMM_BACKEND", "shm");
  CHECK(read_rank_env(environment).comm_backend == CommBackend::shared_memory);
  environment.set("FLEETRUN_COMM_BACKEND", "mpi");
  CHECK_THROWS_WITH_AS(read_rank_env(environment),
                       "FLEETRUN_COMM_BACKEND is \"mpi\", must be auto, gloo or shm", Error);
}

}  // namespace
}  // namespace fleetrun::rank_env_test

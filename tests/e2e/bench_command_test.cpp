// fleetrun bench, with real ranks.
#include <csignal>
#include <filesystem>

#include "e2e/launcher.h"

namespace fleetrun::bench_command_test {
namespace {

TEST_CASE("bench all_reduce prints a row for each size, with right sums, and leaves nothing behind") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["TMPDIR"] = launch.folder.path();
  for (const char* backend : {"shm", "gloo"}) {
    const ChildResult result =
        run_child({FLEETRUN_BINARY, "bench", "all_reduce", "--sizes=8,64K", "--iters=5", "--nproc_per_node=3",
                   std::string("--backend=") + backend},
                  options);
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(result.err.empty());
    CHECK(contains(result.out, std::string("# all_reduce, 3 ranks on one host, backend ") + backend + "\n"));
    CHECK(contains(result.out, "\n           8             2       f32     sum      -1 "));
    CHECK(contains(result.out, "\n       65536         16384       f32     sum      -1 "));
    CHECK(contains(result.out, "# Out of bounds values : 0 OK\n"));
    CHECK(std::filesystem::is_empty(launch.folder.path()));
  }
}

TEST_CASE("bench all_reduce in groups is verified, too") {
  for (const std::string backend : {"hierarchical-leader", "hierarchical-scatter"}) {
    const ChildResult result = run_child({FLEETRUN_BINARY, "bench", "all_reduce", "--sizes=4K", "--iters=5",
                                          "--nproc_per_node=4", "--backend=" + backend, "--json"});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto json = nlohmann::json::parse(result.out);
    CHECK(json["backend"] == backend);
    CHECK(json["group_size"] == 2);
    CHECK(json["sizes"][0]["wrong"] == 0);
  }
}

TEST_CASE("Ctrl-C ends bench, which leaves nothing behind") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["TMPDIR"] = launch.folder.path();
  ChildProcess bench({FLEETRUN_BINARY, "bench", "all_reduce", "--sizes=64M", "--iters=60000"}, options);
  const auto has_begun = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(launch.folder.path()))
      if (std::filesystem::exists(entry.path() / "workerlog.0")) return true;
    return false;
  };
  REQUIRE(comes_true(has_begun, 30s));
  bench.send(SIGINT);
  CHECK(bench.wait().code == 130);
  CHECK(std::filesystem::is_empty(launch.folder.path()));
}

TEST_CASE("bench ends by SIGPIPE without a reader, says nothing and leaves nothing behind") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["TMPDIR"] = launch.folder.path();
  options.close_stdout = true;
  const ChildResult result =
      run_child({FLEETRUN_BINARY, "bench", "all_reduce", "--sizes=8", "--iters=5"}, options);
  CHECK(result.code == 128 + SIGPIPE);
  CHECK(result.err.empty());
  CHECK(std::filesystem::is_empty(launch.folder.path()));
}

TEST_CASE("bench names the TMPDIR that does not exist") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["TMPDIR"] = launch.folder / "missing";
  const ChildResult result = run_child({FLEETRUN_BINARY, "bench", "all_reduce", "--sizes=8"}, options);
  CHECK(result.code == 73);
  CHECK(contains(result.err, "fleetrun: error: creating a folder in " + (launch.folder / "missing") +
                                 ": No such file or directory"));
  CHECK(contains(result.err, "TMPDIR"));
}

TEST_CASE("bench as JSON has every time and both bandwidths") {
  const ChildResult result = run_child(
      {FLEETRUN_BINARY, "bench", "all_reduce", "--json", "--sizes=4K", "--dtype=bf16", "--iters=9"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["ranks"] == 2);
  CHECK(json["dtype"] == "bf16");
  const auto& row = json["sizes"][0];
  CHECK(row["bytes"] == 4096);
  CHECK(row["count"] == 2048);
  CHECK(row["iterations"] == 9);
  CHECK(row["wrong"] == 0);
  CHECK(row["min_us"] > 0);
  CHECK(row["p90_us"] >= row["median_us"]);
  CHECK(row["busbw_gb_s"] == doctest::Approx(row["algbw_gb_s"].get<double>()));  // of two ranks
}

TEST_CASE("bench refuses what it cannot measure, before a rank starts") {
  CHECK(run_child({FLEETRUN_BINARY, "bench"}).err ==
        "fleetrun: error: found \"\", wanted what to measure: all_reduce\n  hint: fleetrun bench --help\n");
  CHECK(run_child({FLEETRUN_BINARY, "bench", "all_reduce", "--dtype=f8"}).err ==
        "fleetrun: error: --dtype is \"f8\", must be one of f32, f16, bf16, i32, i64\n");
  const ChildResult help = run_child({FLEETRUN_BINARY, "bench", "--help"});
  CHECK(help.code == 0);
  CHECK(contains(help.out, "--sizes SIZES"));
}

}  // namespace
}  // namespace fleetrun::bench_command_test

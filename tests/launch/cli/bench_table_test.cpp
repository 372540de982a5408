#include "launch/cli/bench_table.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::bench_table_test {
namespace {

using Sizes = std::vector<std::size_t>;

BenchRequest parse(std::vector<std::string> words) {
  words.insert(words.begin(), "all_reduce");
  return parse_bench_request(read_flags(bench_flags(), words, ""));
}

std::string error_of(const std::vector<std::string>& words) {
  try {
    parse(words);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.message();
  }
  return "none";
}

TEST_CASE("sizes are bytes, with letters for powers of 1024, and ranges are doubled") {
  CHECK(parse_sizes("--sizes", "8,4K,1M,2GB") == Sizes{8, 4096, 1 << 20, std::size_t{2} << 30});
  CHECK(parse_sizes("--sizes", "520MiB,1GiB") == Sizes{520 << 20, 1 << 30});
  CHECK(parse_sizes("--sizes", "8-100") == Sizes{8, 16, 32, 64});
  CHECK(parse_sizes("--sizes", "1K-4K,100M") == Sizes{1024, 2048, 4096, 100 << 20});
}

TEST_CASE("what is not a size is refused with its text") {
  for (const char* text :
       {"", "x", "0", "4T", "-4", "4K-", "1.5M", "5iB", "8,", "8,,8", "17G", "99999999999999999999"})
    CHECK_THROWS_WITH_AS(parse_sizes("--sizes", text), doctest::Contains("is not a size"), Error);
  CHECK(error_of({"--sizes=8,frog"}) ==
        "--sizes: \"frog\" is not a size, wanted bytes like 8, 4K, 1M or 1G, of at most 16G");
  CHECK(error_of({"--sizes=8-4"}) == "--sizes: \"8-4\" ends below where it begins");
  CHECK(error_of({"--sizes=6"}) == "--sizes: 6 bytes are not a whole number of f32 elements of 4 bytes");
}

TEST_CASE("dtypes, backends and numbers that are not known are refused with those that are") {
  CHECK(error_of({"--dtype=f64"}) == "--dtype is \"f64\", must be one of f32, f16, bf16, i32, i64");
  CHECK(error_of({"--backend=mpi"}) ==
        "--backend is \"mpi\", must be one of auto, gloo, shm, hierarchical-leader, hierarchical-scatter");
  CHECK(error_of({"--nproc_per_node=0"}).starts_with("--nproc_per_node"));
  CHECK(error_of({"--iters=many"}).starts_with("--iters"));
}

TEST_CASE("without flags it is two ranks, f32, and sizes from small to large") {
  const BenchRequest usual = parse({});
  CHECK(usual.ranks == 2);
  CHECK(usual.dtype == DType::f32);
  CHECK(usual.backend.flat == CommBackend::automatic);
  CHECK(usual.rounds == 0);
  CHECK(usual.sizes.front() == 8);
  CHECK(usual.sizes.back() == 16 << 20);
  const BenchRequest given = parse({"--sizes", "6", "--dtype", "bf16", "--backend", "gloo", "--iters", "7"});
  CHECK(given.dtype == DType::bf16);
  CHECK(given.backend.flat == CommBackend::gloo);
  CHECK(given.rounds == 7);
}

TEST_CASE(
    "groups are of 2 ranks unless it is said, divide the ranks, and are for hierarchical backends only") {
  const BenchRequest usual = parse({"--backend=hierarchical-leader"});
  CHECK(usual.group_size == 2);
  CHECK(way_of(usual) == "leader:2");
  CHECK(describe(usual.backend) == "hierarchical-leader");
  CHECK(way_of(parse({"--backend=hierarchical-scatter", "--nproc_per_node=6", "--group_size=3"})) ==
        "scatter:3");
  CHECK(way_of(parse({"--backend=gloo"})) == "flat");
  CHECK(error_of({"--backend=hierarchical-leader", "--nproc_per_node=3"}) ==
        "--group_size is 2, wanted a divisor above 1 of the number of ranks, which is 3");
  CHECK(error_of({"--backend=shm", "--group_size=2"}) ==
        "--group_size is for hierarchical backends, and --backend is shm");
}

TEST_CASE("the bus bandwidth of an all_reduce is 2 (n-1) / n of the algorithm's") {
  const BenchRow row = {.bytes = 1'000'000, .count = 250'000, .mean = 100};
  CHECK(algorithm_bandwidth(row) == doctest::Approx(10));
  CHECK(bus_bandwidth(row, 1) == 0);
  CHECK(bus_bandwidth(row, 2) == doctest::Approx(10));
  CHECK(bus_bandwidth(row, 4) == doctest::Approx(15));
}

TEST_CASE("the table has the columns of nccl-tests, the verdict and the mean") {
  const BenchRequest request = {.ranks = 2, .sizes = {}, .backend = {.flat = CommBackend::gloo}};
  CHECK(bench_table(
            {{.bytes = 4096, .count = 1024, .mean = 2.048}, {.bytes = 8, .count = 2, .mean = 1, .wrong = 1}},
            request) ==
        "# all_reduce, 2 ranks on one host, backend gloo\n"
        "#\n"
        "#                                                              in-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
        "        4096          1024       f32     sum      -1     2.05    2.00    2.00       0\n"
        "           8             2       f32     sum      -1     1.00    0.01    0.01       1\n"
        "# Out of bounds values : 1 FAILED\n"
        "# Avg bus bandwidth    : 1.004\n");
}

}  // namespace
}  // namespace fleetrun::launch::bench_table_test

// `fleetrun bench all_reduce`: what is asked for in words, and what was measured as a table like that of nccl-tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/dtype.h"
#include "base/run/rank_env.h"
#include "launch/cli/flags/read_flags.h"

namespace fleetrun::launch {

// By one communicator of a backend, or in groups of ranks by communicators that the environment chooses.
struct BenchBackend {
  CommBackend flat = CommBackend::automatic;
  const char* groups = nullptr;  // "leader" or "scatter": how groups sum; null: there are none
};
std::string describe(
    const BenchBackend& backend);  // "auto", "gloo", ..., "hierarchical-leader", "hierarchical-scatter"
std::vector<std::string> bench_backend_names();  // all of these

struct BenchRequest {
  int ranks = 2;
  std::vector<std::size_t> sizes;  // bytes
  DType dtype = DType::f32;
  BenchBackend backend;
  int group_size = 0;  // 0: no groups
  int rounds = 0;      // 0: by time
};

// What the worker program gets: "flat", "leader:2", "scatter:2".
std::string way_of(const BenchRequest& request);

std::vector<Flag> bench_flags();

// Throws Error(usage) for sizes, dtypes, backends and numbers that cannot be.
BenchRequest parse_bench_request(const FoundFlags& found);

// "8,4K,1M" or "8-128M" (doubled from the first to the last); K, M and G are powers of 1024.
std::vector<std::size_t> parse_sizes(const std::string& source, const std::string& text);

// "512", "4K", "8GB": K, M and G are powers of 1024. Throws Error(usage) for another text, and above `most`, whole GiB.
std::size_t parse_size(const std::string& source, const std::string& text, std::size_t most);

struct BenchRow {
  std::size_t bytes = 0, count = 0;
  double mean = 0;  // microseconds
  std::int64_t wrong = 0;
};

// Bytes a second over the time, and what a link would carry of them whatever the number of ranks, in GB/s (10^9).
double algorithm_bandwidth(const BenchRow& row);
double bus_bandwidth(const BenchRow& row, int ranks);

std::string bench_table(const std::vector<BenchRow>& rows, const BenchRequest& request);

}  // namespace fleetrun::launch

#include "launch/cli/bench_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "launch/cli/flags/flag_values.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kUsualSizes = "8,256,4K,64K,1M,16M";
constexpr std::size_t kMostBytes = std::size_t{16} << 30;  // of one buffer
constexpr std::array kDTypes = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
constexpr std::array kGroupAlgorithms = {"leader", "scatter"};
constexpr int kUsualGroup = 2;

[[noreturn]] void refuse_size(const std::string& source, const std::string& text, std::size_t most) {
  throw Error(ErrorKind::usage,
              fmt::format("{}: \"{}\" is not a size, wanted bytes like 8, 4K, 1M or 1G, of at most {}G",
                          source, text, most >> 30));
}

template <typename Choices>
auto choose(const std::string& source, const std::string& text, const Choices& choices) {
  std::string names;
  for (const auto choice : choices) {
    if (text == describe(choice)) return choice;
    names += (names.empty() ? "" : ", ") + std::string(describe(choice));
  }
  throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be one of {}", source, text, names));
}

std::vector<BenchBackend> bench_backends() {
  std::vector<BenchBackend> backends = {{.flat = CommBackend::automatic}};
  for (const CommBackendRow& row : comm_backends()) backends.push_back({.flat = row.backend});
  for (const char* algorithm : kGroupAlgorithms) backends.push_back({.groups = algorithm});
  return backends;
}

void check_sizes(const BenchRequest& request) {
  for (const std::size_t bytes : request.sizes)
    if (bytes % size_of(request.dtype) != 0)
      throw Error(ErrorKind::usage,
                  fmt::format("--sizes: {} bytes are not a whole number of {} elements of {} bytes", bytes,
                              describe(request.dtype), size_of(request.dtype)));
}

// 0 for a backend without groups.
int parse_group_size(const BenchRequest& request, const std::optional<std::string>& text) {
  const bool in_groups = request.backend.groups != nullptr;
  if (text && !in_groups)
    throw Error(ErrorKind::usage,
                fmt::format("--group_size is for hierarchical backends, and --backend is {}",
                            describe(request.backend)));
  const int size = text ? parse_count("--group_size", *text) : in_groups ? kUsualGroup : 0;
  if (in_groups && (size < 2 || request.ranks % size != 0))
    throw Error(
        ErrorKind::usage,
        fmt::format("--group_size is {}, wanted a divisor above 1 of the number of ranks, which is {}", size,
                    request.ranks));
  return size;
}

}  // namespace

std::size_t parse_size(const std::string& source, const std::string& text, std::size_t most) {
  std::size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  std::string unit(stop, end);
  const bool is_binary = unit.size() == 3 && unit.ends_with("iB");  // KiB; KB and K are 1,024 bytes, too
  if (unit.ends_with('B')) unit.resize(is_binary ? 1 : unit.size() - 1);
  const auto shift = std::string_view("KMG").find(unit);
  if (problem != std::errc{} || number == 0 || unit.size() > 1 || shift == std::string_view::npos)
    refuse_size(source, text, most);
  const std::size_t factor = unit.empty() ? 1 : std::size_t{1} << (10 * (shift + 1));
  if (number > most / factor) refuse_size(source, text, most);
  return number * factor;
}

std::string describe(const BenchBackend& backend) {
  if (backend.groups != nullptr) return fmt::format("hierarchical-{}", backend.groups);
  return std::string(fleetrun::describe(backend.flat));
}

std::vector<std::string> bench_backend_names() {
  std::vector<std::string> names;
  for (const BenchBackend& backend : bench_backends()) names.push_back(describe(backend));
  return names;
}

std::string way_of(const BenchRequest& request) {
  if (request.backend.groups == nullptr) return "flat";
  return fmt::format("{}:{}", request.backend.groups, request.group_size);
}

std::vector<std::size_t> parse_sizes(const std::string& source, const std::string& text) {
  std::vector<std::size_t> sizes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const std::size_t first = parse_size(source, part.substr(0, dash), kMostBytes);
    const std::size_t last =
        dash == std::string::npos ? first : parse_size(source, part.substr(dash + 1), kMostBytes);
    if (last < first)
      throw Error(ErrorKind::usage, fmt::format("{}: \"{}\" ends below where it begins", source, part));
    for (std::size_t size = first; size <= last; size *= 2) sizes.push_back(size);
  }
  if (sizes.empty() || text.ends_with(',')) refuse_size(source, "", kMostBytes);
  return sizes;
}

std::vector<Flag> bench_flags() {
  return {
      {.names = {"--sizes"},
       .argument = "SIZES",
       .help =
           "Sizes in bytes: a list such as 8,4K,1M, or a range such as 8-128M, in which each size is twice "
           "the one before (default: 8,256,4K,64K,1M,16M)"},
      {.names = {"--nproc_per_node"}, .argument = "N", .help = "Number of ranks (default: 2)"},
      {.names = {"--backend"},
       .argument = "BACKEND",
       .help =
           "What moves the data between the ranks: shm is shared memory, for ranks of one host; gloo is TCP; "
           "hierarchical-leader and hierarchical-scatter sum inside groups of ranks first, then between the groups, with "
           "the backend that the variable FLEETRUN_COMM_BACKEND names; auto takes what a training would (default: auto)",
       .choices = bench_backend_names()},
      {.names = {"--group_size"},
       .argument = "N",
       .help = "Ranks in a group of a hierarchical backend (default: 2)"},
      {.names = {"--dtype"},
       .argument = "DTYPE",
       .help = "Type of the elements: f32, f16, bf16, i32 or i64 (default: f32)",
       .choices = {"f32", "f16", "bf16", "i32", "i64"}},
      {.names = {"--iters"},
       .argument = "N",
       .help =
           "Number of sums of each size. By default fleetrun sums for a third of a second, but at least 20 and at most 2000 times"},
      {.names = {"--json"}, .help = "Print JSON, with the median, the 90th percentile and the shortest time"},
  };
}

BenchRequest parse_bench_request(const FoundFlags& found) {
  BenchRequest request;
  if (const auto text = found.value("--nproc_per_node"))
    request.ranks = parse_count("--nproc_per_node", *text);
  if (const auto text = found.value("--dtype")) request.dtype = choose("--dtype", *text, kDTypes);
  if (const auto text = found.value("--backend"))
    request.backend = choose("--backend", *text, bench_backends());
  request.group_size = parse_group_size(request, found.value("--group_size"));
  if (const auto text = found.value("--iters")) request.rounds = parse_count("--iters", *text);
  request.sizes = parse_sizes("--sizes", found.value("--sizes").value_or(kUsualSizes));
  check_sizes(request);
  return request;
}

double algorithm_bandwidth(const BenchRow& row) {
  return row.mean > 0 ? static_cast<double>(row.bytes) / row.mean / 1e3 : 0;
}

// Of a ring each link carries 2 * bytes * (ranks - 1) / ranks (nccl-tests, doc/PERFORMANCE.md).
double bus_bandwidth(const BenchRow& row, int ranks) {
  return algorithm_bandwidth(row) * 2 * (ranks - 1) / ranks;
}

std::string bench_table(const std::vector<BenchRow>& rows, const BenchRequest& request) {
  std::string text = fmt::format(
      "# all_reduce, {} on one host, backend {}{}\n"
      "#\n"
      "#                                                              in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n",
      plural(request.ranks, "rank"), describe(request.backend),
      request.group_size > 0 ? fmt::format(", groups of {}", request.group_size) : "");
  double sum = 0;
  std::int64_t wrong = 0;
  for (const BenchRow& row : rows) {
    const double bus = bus_bandwidth(row, request.ranks);
    text +=
        fmt::format("{:12} {:13} {:>9} {:>7} {:7} {:8.2f} {:7.2f} {:7.2f} {:7}\n", row.bytes, row.count,
                    describe(request.dtype), "sum", -1, row.mean, algorithm_bandwidth(row), bus, row.wrong);
    sum += bus;
    wrong += row.wrong;
  }
  text += fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  text += fmt::format("# Avg bus bandwidth    : {:.4g}\n",
                      rows.empty() ? 0 : sum / static_cast<double>(rows.size()));
  return text;
}

}  // namespace fleetrun::launch

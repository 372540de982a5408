#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/json/json_reader.h"
#include "base/system/environment.h"
#include "base/system/file.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "launch/cli/bench_table.h"
#include "launch/launch.h"

namespace fleetrun {
namespace {

using launch::BenchRequest;
using launch::BenchRow;

constexpr std::size_t kMostResultBytes = 1 << 20;

// For the logs of the ranks.
class FolderOfRanks {
 public:
  explicit FolderOfRanks(const Environment& environment) {
    const std::string chosen = environment.get_or("TMPDIR", "");
    const std::string parent = chosen.empty() ? "/tmp" : chosen;
    path_ = parent + "/fleetrun-bench-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(ErrorKind::create,
                  fmt::format("creating a folder in {}: {}", parent, describe_errno(errno)),
                  "set TMPDIR to another folder");
  }
  ~FolderOfRanks() {
    std::error_code left_behind;
    if (!kept_) std::filesystem::remove_all(path_, left_behind);
  }
  FolderOfRanks(const FolderOfRanks&) = delete;
  FolderOfRanks& operator=(const FolderOfRanks&) = delete;

  const std::string& path() const { return path_; }
  void keep() { kept_ = true; }  // the report names its files

 private:
  std::string path_;
  bool kept_ = false;
};

// By a signal that ends a run: the user wants no more of it.
bool was_stopped(int code) {
  const std::array stops = {SIGINT, SIGTERM, SIGHUP};
  return std::find(stops.begin(), stops.end(), code - kSignalExitCode) != stops.end();
}

int run_ranks(const BenchRequest& request, const std::string& folder, Environment environment) {
  launch::LaunchOptions options;
  options.nproc_per_node.value = request.ranks;
  options.device.value = job::DeviceChoice::cpu;
  options.log_dir.value = folder;
  options.log_level.value = launch::LogLevel::warning;
  options.console.value = {.text = "none", .ranges = {}};
  if (request.backend.groups == nullptr) environment.set(kCommBackendVariable, describe(request.backend));
  std::vector<std::string> words = {"--bench", "all_reduce", std::string(describe(request.dtype)),
                                    std::to_string(request.rounds), launch::way_of(request)};
  for (const std::size_t size : request.sizes) words.push_back(std::to_string(size));
  return launch::launch_worker_program(options, words, environment);
}

double number_of(const JsonValue& object, const char* key) {
  const JsonMember* member = object.find(key);
  return member == nullptr ? 0 : member->value.number;
}

std::vector<BenchRow> rows_in(const JsonValue& result) {
  std::vector<BenchRow> rows;
  if (const JsonMember* sizes = result.find("sizes"))
    for (const JsonValue& size : sizes->value.items)
      rows.push_back({.bytes = static_cast<std::size_t>(number_of(size, "bytes")),
                      .count = static_cast<std::size_t>(number_of(size, "count")),
                      .mean = number_of(size, "time_us"),
                      .wrong = static_cast<std::int64_t>(number_of(size, "wrong"))});
  return rows;
}

void add_bandwidths(JsonValue& result, int ranks) {
  JsonMember* sizes = result.find("sizes");
  const std::vector<BenchRow> rows = rows_in(result);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sizes->value.items[i].add("algbw_gb_s", algorithm_bandwidth(rows[i]));
    sizes->value.items[i].add("busbw_gb_s", bus_bandwidth(rows[i], ranks));
  }
}

struct Measured {
  int code = 0;  // of the run of the ranks
  JsonValue result;
};

// The folder is gone afterwards: printing may end this process.
Measured measure(const BenchRequest& request, const Environment& environment) {
  FolderOfRanks folder(environment);
  if (const int code = run_ranks(request, folder.path(), environment); code != 0) {
    if (!was_stopped(code)) folder.keep();
    return {.code = code, .result = {}};
  }
  return {.result = read_json(read_file(folder.path() + "/bench.json", kMostResultBytes)).root};
}

}  // namespace

int run_bench_command(const FoundFlags& found, const Environment& environment) {
  if (found.rest != std::vector<std::string>{"all_reduce"})
    throw Error(ErrorKind::usage,
                fmt::format("found \"{}\", wanted what to measure: all_reduce", fmt::join(found.rest, " ")),
                "fleetrun bench --help");
  const BenchRequest request = launch::parse_bench_request(found);
  auto [code, result] = measure(request, environment);
  if (code != 0) return code;
  const std::vector<BenchRow> rows = rows_in(result);
  if (found.has("--json")) {
    result.add("backend", std::string(describe(request.backend)));
    if (request.group_size > 0) result.add("group_size", request.group_size);
    add_bandwidths(result, request.ranks);
    print_answer(to_json_lines(result));
  } else {
    print_answer(bench_table(rows, request));
  }
  for (const BenchRow& row : rows)
    if (row.wrong != 0)
      throw Error(ErrorKind::internal,
                  fmt::format("{} elements of {} bytes were summed wrong", row.wrong, row.bytes));
  return 0;
}

}  // namespace fleetrun

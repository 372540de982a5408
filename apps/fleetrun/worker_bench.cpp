#include "worker_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress_page.h"
#include "base/rank_env.h"
#include "comm/make_communicator.h"
#include "comm/measure.h"

namespace fleetrun {
namespace {

std::string to_json(const comm::Measured& measured) {
  return fmt::format(
      R"({{"bytes": {}, "count": {}, "iterations": {}, "time_us": {:.3f}, "median_us": {:.3f}, "p90_us": {:.3f}, "min_us": {:.3f}, "wrong": {}}})",
      measured.bytes, measured.count, measured.rounds, measured.mean, measured.median, measured.p90,
      measured.least, measured.wrong);
}

}  // namespace

void run_bench(const std::vector<std::string>& arguments) {
  const auto dtype = arguments.size() > 3 ? parse_dtype(arguments[1]) : std::nullopt;
  if (!dtype || arguments[0] != "all_reduce")
    throw Error(ErrorKind::usage, "wanted fleetrun-worker --bench all_reduce DTYPE ROUNDS BYTES...");
  const RankEnv env = read_rank_env(Environment::of_this_process());
  const ProgressPagePtr page = map_inherited_progress_page(env.progress_fd);
  page->phase = Phase::joining;
  comm::World world = comm::join_world(env);
  world.communicator->record_in(page->records(), "world");
  page->phase = Phase::training;

  std::vector<std::string> sizes;
  for (std::size_t i = 3; i < arguments.size(); ++i)
    sizes.push_back(
        to_json(comm::measure_all_reduce(*world.communicator, {.bytes = std::stoull(arguments[i]),
                                                               .dtype = *dtype,
                                                               .rounds = std::stoi(arguments[2]),
                                                               .before_each = [&] { page->beat(); }})));
  if (env.rank != 0 || env.log_dir.empty()) return;
  write_file_atomically(
      env.log_dir + "/bench.json",
      fmt::format(R"({{"ranks": {}, "dtype": "{}", "backend": "{}", "sizes": [{}]}})", env.world_size,
                  describe(*dtype), describe(env.comm_backend), fmt::join(sizes, ", ")));
}

}  // namespace fleetrun

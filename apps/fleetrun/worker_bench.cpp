#include "worker_bench.h"

#include <cmath>
#include <memory>

#include "base/error/error.h"
#include "base/json/json_value.h"
#include "base/run/progress_page.h"
#include "base/run/rank_env.h"
#include "base/system/environment.h"
#include "base/system/file.h"
#include "comm/collective/hierarchical.h"
#include "comm/collective/measure.h"
#include "comm/make_communicator.h"

namespace fleetrun {
namespace {

double to_thousandths(double value) { return std::round(value * 1000) / 1000; }

JsonValue as_json(const comm::Measured& measured) {
  return JsonValue::object({{"bytes", measured.bytes},
                            {"count", measured.count},
                            {"iterations", measured.rounds},
                            {"time_us", to_thousandths(measured.mean)},
                            {"median_us", to_thousandths(measured.median)},
                            {"p90_us", to_thousandths(measured.p90)},
                            {"min_us", to_thousandths(measured.least)},
                            {"wrong", measured.wrong}});
}

[[noreturn]] void refuse_words() {
  throw Error(ErrorKind::usage,
              "wanted fleetrun-worker --bench all_reduce DTYPE ROUNDS flat|leader:N|scatter:N BYTES...");
}

// Null for "flat": the world's own is used.
std::unique_ptr<comm::Communicator> make_groups(const comm::World& world, const std::string& way) {
  if (way == "flat") return nullptr;
  const auto colon = way.find(':');
  const std::string algorithm = way.substr(0, colon);
  if (colon == std::string::npos || (algorithm != "leader" && algorithm != "scatter")) refuse_words();
  return comm::make_hierarchical({.party = world.party(),
                                  .group_size = std::stoi(way.substr(colon + 1)),
                                  .algorithm = algorithm == "leader" ? comm::HierarchicalAlgorithm::leader
                                                                     : comm::HierarchicalAlgorithm::scatter},
                                 world.more);
}

}  // namespace

void run_bench(const std::vector<std::string>& arguments) {
  const auto dtype = arguments.size() > 4 ? parse_dtype(arguments[1]) : std::nullopt;
  if (!dtype || arguments[0] != "all_reduce") refuse_words();
  const RankEnv env = read_rank_env(Environment::of_this_process());
  const ProgressPagePtr page = map_inherited_progress_page(env.progress_fd);
  page->phase = Phase::joining;
  comm::World world = comm::join_world(env);
  const std::unique_ptr<comm::Communicator> groups = make_groups(world, arguments[3]);
  comm::Communicator& measured = groups ? *groups : *world.communicator;
  measured.record_in(page->records(), "measured");
  page->phase = Phase::training;

  JsonValue sizes = JsonValue::list({});
  for (std::size_t i = 4; i < arguments.size(); ++i)
    sizes.items.push_back(
        as_json(comm::measure_all_reduce(measured, {.bytes = std::stoull(arguments[i]),
                                                    .dtype = *dtype,
                                                    .rounds = std::stoi(arguments[2]),
                                                    .before_each = [&] { page->beat(); }})));
  if (env.rank != 0 || env.log_dir.empty()) return;
  write_file_atomically(
      env.log_dir + "/bench.json",
      to_json(JsonValue::object({{"ranks", env.world_size}, {"dtype", describe(*dtype)}, {"sizes", sizes}})));
}

}  // namespace fleetrun

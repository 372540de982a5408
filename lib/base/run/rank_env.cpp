#include "base/run/rank_env.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

std::string required(const Environment& environment, const char* name) {
  if (auto value = environment.get(name)) return *value;
  throw Error(ErrorKind::usage, fmt::format("{} is not set, though FLEETRUN_RANK is", name));
}

int required_int(const Environment& environment, const char* name) {
  const std::string text = required(environment, name);
  int value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc{} && stop == text.data() + text.size()) return value;
  throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be a number", name, text));
}

// "auto, gloo or shm"
std::string list_comm_backends() {
  std::vector<std::string> names = comm_backend_names();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

CommBackend read_comm_backend(const Environment& environment) {
  const std::string text = environment.get_or(kCommBackendVariable, "");
  if (text.empty()) return CommBackend::automatic;
  if (const auto backend = parse_comm_backend(text)) return *backend;
  throw Error(ErrorKind::usage,
              fmt::format(R"({} is "{}", must be {})", kCommBackendVariable, text, list_comm_backends()));
}

// Each variable of a rank that is always set, and the member that it carries.
template <typename AnyRankEnv, typename Visit>
void for_each_variable(AnyRankEnv& rank_env, const Visit& visit) {
  visit("FLEETRUN_RANK", rank_env.rank);
  visit("FLEETRUN_WORLD_SIZE", rank_env.world_size);
  visit("FLEETRUN_LOCAL_RANK", rank_env.local_rank);
  visit("FLEETRUN_LOCAL_SIZE", rank_env.local_size);
  visit("FLEETRUN_NODE_RANK", rank_env.node_rank);
  visit("FLEETRUN_NODES", rank_env.nodes);
  visit("FLEETRUN_ATTEMPT", rank_env.attempt);
  visit("FLEETRUN_RUN_ID", rank_env.run_id);
  visit("FLEETRUN_STORE", rank_env.store);
  visit("FLEETRUN_KEY_FD", rank_env.key_fd);
  visit("FLEETRUN_PROGRESS_FD", rank_env.progress_fd);
  visit("FLEETRUN_JOB_FD", rank_env.job_fd);
  visit("FLEETRUN_LOG_DIR", rank_env.log_dir);
  visit("FLEETRUN_STOP_DIR", rank_env.stop_dir);
  visit("FLEETRUN_DEVICE", rank_env.device);
  visit("FLEETRUN_DUMP_DIR", rank_env.dump_dir);
  visit("FLEETRUN_PASSES_DIR", rank_env.passes_dir);
  visit("FLEETRUN_THREADS", rank_env.threads);
}

struct SetVariable {
  Environment& environment;

  void operator()(const char* name, int value) const { environment.set(name, std::to_string(value)); }
  void operator()(const char* name, const std::string& value) const { environment.set(name, value); }
  void operator()(const char* name, const Endpoint& value) const {
    environment.set(name, value.port == 0 ? "" : value.describe());
  }
};

struct ReadVariable {
  const Environment& environment;

  void operator()(const char* name, int& value) const { value = required_int(environment, name); }
  void operator()(const char* name, std::string& value) const { value = required(environment, name); }
  void operator()(const char* name, Endpoint& value) const {
    if (const std::string text = required(environment, name); !text.empty()) value = parse_endpoint(text);
  }
};

}  // namespace

void write_rank_env(const RankEnv& rank_env, Environment& environment) {
  for_each_variable(rank_env, SetVariable{environment});
  if (rank_env.comm_backend != CommBackend::automatic)
    environment.set(kCommBackendVariable, std::string(describe(rank_env.comm_backend)));
}

RankEnv read_rank_env(const Environment& environment) {
  RankEnv rank_env;
  if (!environment.has("FLEETRUN_RANK")) return rank_env;
  for_each_variable(rank_env, ReadVariable{environment});
  rank_env.comm_backend = read_comm_backend(environment);
  return rank_env;
}

}  // namespace fleetrun

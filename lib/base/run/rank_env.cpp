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

}  // namespace

void write_rank_env(const RankEnv& rank_env, Environment& environment) {
  const auto set_int = [&](const char* name, int value) { environment.set(name, std::to_string(value)); };
  set_int("FLEETRUN_RANK", rank_env.rank);
  set_int("FLEETRUN_WORLD_SIZE", rank_env.world_size);
  set_int("FLEETRUN_LOCAL_RANK", rank_env.local_rank);
  set_int("FLEETRUN_LOCAL_SIZE", rank_env.local_size);
  set_int("FLEETRUN_NODE_RANK", rank_env.node_rank);
  set_int("FLEETRUN_NODES", rank_env.nodes);
  set_int("FLEETRUN_ATTEMPT", rank_env.attempt);
  environment.set("FLEETRUN_RUN_ID", rank_env.run_id);
  environment.set("FLEETRUN_STORE", rank_env.store.port == 0 ? "" : rank_env.store.describe());
  set_int("FLEETRUN_KEY_FD", rank_env.key_fd);
  set_int("FLEETRUN_PROGRESS_FD", rank_env.progress_fd);
  environment.set("FLEETRUN_LOG_DIR", rank_env.log_dir);
  environment.set("FLEETRUN_DEVICE", rank_env.device);
  environment.set("FLEETRUN_DUMP_DIR", rank_env.dump_dir);
  environment.set("FLEETRUN_PASSES_DIR", rank_env.passes_dir);
  set_int("FLEETRUN_THREADS", rank_env.threads);
  if (rank_env.comm_backend != CommBackend::automatic)
    environment.set(kCommBackendVariable, std::string(describe(rank_env.comm_backend)));
}

RankEnv read_rank_env(const Environment& environment) {
  RankEnv rank_env;
  if (!environment.has("FLEETRUN_RANK")) return rank_env;
  rank_env.rank = required_int(environment, "FLEETRUN_RANK");
  rank_env.world_size = required_int(environment, "FLEETRUN_WORLD_SIZE");
  rank_env.local_rank = required_int(environment, "FLEETRUN_LOCAL_RANK");
  rank_env.local_size = required_int(environment, "FLEETRUN_LOCAL_SIZE");
  rank_env.node_rank = required_int(environment, "FLEETRUN_NODE_RANK");
  rank_env.nodes = required_int(environment, "FLEETRUN_NODES");
  rank_env.attempt = required_int(environment, "FLEETRUN_ATTEMPT");
  rank_env.run_id = required(environment, "FLEETRUN_RUN_ID");
  const std::string store = required(environment, "FLEETRUN_STORE");
  if (!store.empty()) rank_env.store = parse_endpoint(store);
  rank_env.key_fd = required_int(environment, "FLEETRUN_KEY_FD");
  rank_env.progress_fd = required_int(environment, "FLEETRUN_PROGRESS_FD");
  rank_env.log_dir = required(environment, "FLEETRUN_LOG_DIR");
  rank_env.device = required(environment, "FLEETRUN_DEVICE");
  rank_env.dump_dir = required(environment, "FLEETRUN_DUMP_DIR");
  rank_env.passes_dir = required(environment, "FLEETRUN_PASSES_DIR");
  rank_env.threads = required_int(environment, "FLEETRUN_THREADS");
  rank_env.comm_backend = read_comm_backend(environment);
  return rank_env;
}

}  // namespace fleetrun

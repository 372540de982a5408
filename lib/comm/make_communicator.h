// What a worker needs to work with the others, from what the launcher told it.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/run/rank_env.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "comm/collective/circle.h"
#include "comm/collective/communicator.h"
#include "comm/collective/hierarchical.h"
#include "comm/rendezvous/exchange.h"
#include "comm/rendezvous/store.h"

namespace fleetrun::comm {

struct World {
  RankEnv env;
  std::unique_ptr<Store> store;
  std::unique_ptr<Communicator> communicator;  // goes before the store
  MakeCommunicator more;  // of all ranks or of some, as these reach each other; so does it and what it made
  std::vector<Circle> left_connected = {};  // of what ended by an error; gone before the store

  std::vector<std::string> hosts = {};  // host_id() by rank; none when env.comm_backend is for any host
  UniqueFd logs = {};                   // env.log_dir, open from the start of joining

  Party party() const { return {*store, env.rank, env.world_size}; }
  // Where env.log_dir is now, if somebody has renamed it.
  std::string log_dir() const { return path_now(logs, env.log_dir).value_or(env.log_dir); }
};

constexpr std::chrono::milliseconds kJoinDeadline = std::chrono::seconds(300);

// Reads the run key from env.key_fd, connects to the store and then with all other ranks, and says so on
// stderr: "rank 3: joined 8 ranks in 41 ms". Ranks of one host share memory, others talk by Gloo, unless
// env.comm_backend says otherwise. Memory that one communicator of the world has allocated is shared by all
// where memory is shared at all. One rank alone may have no store (port 0). Throws
// Error(temporary) that names who is missing when the deadline passes, Error(protocol) for a wrong key or
// another attempt.
World join_world(const RankEnv& env, std::chrono::milliseconds deadline = kJoinDeadline);

}  // namespace fleetrun::comm

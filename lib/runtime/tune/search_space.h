// What tuning tries: named changes of a job.
#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fleetrun::runtime {

// PaddlePaddle's and FleetX's advice on speed. Tuning says what it found about each.
enum class Advice {
  none,
  two_communicators,   // 2 communicators and num_threads 3 over several hosts
  threads_of_devices,  // num_threads of 2 to 4 times the devices
  fuse,                // the fusions
  tenth,               // all-reduces of a tenth of all gradient bytes
  drop_less_often,     // activation memory is freed every 30 steps
  bigger_batch,
};

// A job with other settings.
struct Candidate {
  std::string name;                   // "nccl_comm_num 2"
  std::vector<std::string> settings;  // "KEY.PATH=VALUE", as words after the job file, sorted, each key once
  Advice advice = Advice::none;

  bool is_default() const { return settings.empty(); }
};

struct SpaceFacts {
  int ranks = 1;
  int ranks_per_node = 1;
  int nodes = 1;
  std::size_t gradient_bytes = 0;
  int batch = 32;                    // samples of a rank in a step
  bool amp = false;                  // the user allows what changes the results
  bool narrow = true;                // every rank's device computes in bf16 or f16
  bool memory = false;               // the user gave a limit: the batch size may change
  std::set<std::string> fixed = {};  // keys that the job sets: they stay as they are
};

// In the order of their promise: a budget that is too small leaves out the last ones.
std::vector<Candidate> search_space(const SpaceFacts& facts);

// Both changes together. None when they set one key to different values, or when one contains the other.
std::optional<Candidate> combine(const Candidate& first, const Candidate& second);

// Without its setting number `left_out`: to see whether that setting matters.
Candidate without(const Candidate& candidate, std::size_t left_out);

std::string key_of(const std::string& setting);  // "strategy.amp" of "strategy.amp=true"

}  // namespace fleetrun::runtime

// Everything that `fleetrun doctor` has found out about the nodes. Plain data: probes fill it in, judge() reads it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "base/system/endpoint.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

// A folder in which the run will write.
struct FolderFacts {
  std::string purpose;  // "--log_dir", "checkpoint.dir"
  std::string path;
  std::int64_t free_bytes = 0;  // for this user
  std::string problem;          // "": this user may write there
};

// A port that the run needs. PaddlePaddle's usual ports are not `required`: the run takes others instead.
struct TakenPort {
  int port = 0;
  bool required = false;
  std::string owner;  // "pid 123 (nc)"; "": unknown
};

// What a node says about itself.
struct NodeFacts {
  std::string host;
  std::string version;      // of fleetrun
  std::string binary;       // hash of the file of fleetrun
  Terms terms;              // flags and values of the job file, which must be the same on all nodes
  std::string data;         // hash of the data lists; "": the job has none
  std::string job_problem;  // why the job file cannot run here; "": it can
  std::vector<FolderFacts> folders;
  std::vector<TakenPort> taken;
  std::int64_t shm_free = 0;                       // bytes of /dev/shm
  std::int64_t memory_free = 0, memory_total = 0;  // bytes, within the limit of the cgroup
  std::int64_t open_files = 0;                     // hard limit of `ulimit -n`
  std::int64_t locked_bytes = -1;                  // hard limit of `ulimit -l`; -1: none
  int ranks = 1, cores = 1;
  double cpu_limit = 0;           // cores that the cgroup allows; 0: no limit
  std::vector<std::string> gpus;  // a line for each
  std::vector<std::string> gpu_problems;
  int infiniband_ports = 0, infiniband_active = 0;
  std::vector<std::string> nccl;  // what is probably wrong with the variables
  Endpoint probe;                 // where the node answers probes
};
JsonValue to_value(const NodeFacts& facts);
NodeFacts read_node_facts(const JsonValue& value);  // leaves out what is not there

// From one node to another. Without `problem`, the node could connect.
struct Reach {
  int from = 0, to = 0;
  std::string problem;
};

struct LinkFacts {
  int from = 0, to = 0;
  double latency = 0;      // seconds of the fastest round trip
  double bytes_per_s = 0;  // that arrived
  std::int64_t segments = 0, retransmitted = 0;
  int mtu = 0;          // bytes of a packet on the way, as the sender's kernel knows it; 0: unknown
  std::string problem;  // "": the transfer was measured

  double loss() const {
    return segments > 0 ? static_cast<double>(retransmitted) / static_cast<double>(segments) : 0;
  }
};
JsonValue to_value(const LinkFacts& link);
LinkFacts read_link_facts(const JsonValue& value);

struct ClockOffset {
  double seconds = 0;  // the node's time of day minus that of the first node
  double error = 0;    // at most
};

struct CpuSpeed {
  double gflops = 0;  // of one thread, in wall time
  double share = 1;   // of a core that the thread got
  double others = 0;  // share of all cores that other programs, or other machines of the host, used meanwhile
  std::optional<double> beside =
      std::nullopt;  // GFLOP/s of a usual node, measured right afterwards; none: measured once
};

struct NodeExamination {
  std::string address;  // as the user wrote it; "": unknown
  std::string
      silent;  // why it has no facts, such as "did not join within 5 s"; also if it was lost after it had sent them
  std::optional<NodeFacts> facts;
  std::optional<ClockOffset> clock;
  std::optional<CpuSpeed> speed;
};

struct Examination {
  int least_nodes = 0;  // that have to be there; 0: all
  std::vector<NodeExamination> nodes;
  std::vector<Reach> reach;      // of every pair of nodes that answer
  std::vector<LinkFacts> links;  // of the pairs of the tournament
};

}  // namespace fleetrun::launch

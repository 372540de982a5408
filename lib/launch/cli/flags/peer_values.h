// Values of flags that come from other launchers (torchrun, mpirun), as they are written there.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/cli/flags/log_prefix.h"

namespace fleetrun::launch {

// --nproc_per_node: a number, or what this host has.
struct WorkerCount {
  enum class Of { number, automatic, gpus, cores };

  WorkerCount() = default;
  WorkerCount(int count) : number(count) {}  // so that a number can stand for it
  explicit WorkerCount(Of of_what) : of(of_what) {}

  Of of = Of::number;
  int number = 1;

  bool operator==(const WorkerCount&) const = default;
};

// What a worker writes to: a set of bits, as torchrun numbers them.
enum Streams : int { kNoStream = 0, kOut = 1, kErr = 2, kBothStreams = 3 };

// -r 3, or -r 0:1,1:2 by local rank; local ranks that are not listed have none.
struct StreamMap {
  std::string text = "0";
  int of_all = kNoStream;
  std::map<int, int> of_rank;

  int of(int local_rank) const;
};

// Signals by name: "SIGTERM,SIGUSR1".
struct SignalSet {
  std::string text;
  std::vector<int> numbers;

  bool contains(int number) const;
};

// HOST[:PORT]; port 0: any that is free.
struct MeetingPoint {
  std::string host;
  std::uint16_t port = 0;
};

// -H host:2,other:4
struct HostSlots {
  std::string host;
  std::optional<int> slots;
};
struct HostList {
  std::string text;
  std::vector<HostSlots> hosts;
};

// '[${role_name}${local_rank}]:' as torchrun writes it, and the same as we do.
struct TeePrefix {
  std::string text = "[${role_name}${local_rank}]:";
  LogPrefix prefix{"[{role}{local_rank}]:"};
};

// --env 3:LR=0.1: a variable of one rank; without a number, of all ranks.
struct RankVariable {
  std::optional<int> rank;
  std::string setting;  // "LR=0.1"; "LR" alone is inherited

  bool is_for(int of_rank) const { return !rank || *rank == of_rank; }
};

// All throw Error(usage); `source` is the flag or variable.
WorkerCount parse_worker_count(const std::string& source, const std::string& text);
StreamMap parse_streams(const std::string& source, const std::string& text);
SignalSet parse_signals(const std::string& source, const std::string& text);
MeetingPoint parse_meeting_point(const std::string& source, const std::string& text);
HostList parse_host_list(const std::string& source, const std::string& text);
std::string parse_role(const std::string& source, const std::string& text);
RankVariable parse_variable(const std::string& source,
                            const std::string& text);  // NAME, NAME=VALUE, 3:NAME=VALUE

TeePrefix parse_torch_prefix(const std::string& source, const std::string& text);  // "$$" is a dollar

std::string show_value(const WorkerCount& value);
std::string show_value(const StreamMap& value);
std::string show_value(const SignalSet& value);
std::string show_value(const MeetingPoint& value);
std::string show_value(const HostList& value);
std::string show_value(const TeePrefix& value);
std::string show_value(const RankVariable& value);

}  // namespace fleetrun::launch

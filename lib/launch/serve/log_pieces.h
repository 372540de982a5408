// Pieces of the logs of this node's ranks, for readers on the first node. A request and its answer:
//
//   {"do": "log", "logs": [{"local_rank": 1, "errors": false, "attempt": 0, "from": 4096}]}
//   {"attempt": 0, "logs": [{"local_rank": 1, "errors": false, "attempt": 0, "from": 4096, "bytes": 6, "size": 4102,
//                            "text": "hello\n"}]}
//
//   local_rank  counts the ranks of this node. Their numbers in the run may be others in each attempt.
//   errors   true: the log of stderr alone. If the rank has no such log, the answer has "missing": true.
//   attempt  -1 in a request means the present attempt. The answer has its number.
//   since    only in requests: leave out what was written before this time, in seconds since 1970.
//   from     offset in bytes. It is 0 in the answer when the log has become shorter than the offset in the request.
//   bytes    length of the piece in the log. The text may differ in length where the log is not UTF-8.
//   size     present length of the log
#pragma once
#include <cstddef>
#include <string>

#include "base/json/json_value.h"
#include "launch/logs/log_folder.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

constexpr std::size_t kMostLogBytes = 64 * 1024;  // of all pieces of one answer

struct LogSources {  // all outlive it
  const LogFolder& logs;
  const Attempt& attempt;  // the present one, whose logs are open: they may have other names by now
  const Verdict& verdict;
};

// A rank that this node does not have has no log. Throws Error(usage) when the request is none.
JsonValue read_log_pieces(const LogSources& sources, const JsonValue& request);

}  // namespace fleetrun::launch

// Pieces of the logs of this node's ranks, for readers on the first node. A request and its answer:
//
//   {"do": "log", "logs": [{"rank": 17, "errors": false, "attempt": 0, "from": 4096}]}
//   {"attempt": 0, "logs": [{"rank": 17, "errors": false, "attempt": 0, "from": 4096, "bytes": 6, "size": 4102,
//                            "text": "hello\n"}]}
//
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

// Throws Error(usage) when the request names no ranks of this node.
JsonValue read_log_pieces(const LogSources& sources, const JsonValue& request);

}  // namespace fleetrun::launch

// Pieces of the logs of this node's ranks, for readers on the first node.
//
//   {"do": "log", "logs": [{"rank": 17, "errors": false, "attempt": 0, "from": 4096}]}
//   {"attempt": 0, "logs": [{"rank": 17, "errors": false, "attempt": 0, "from": 4096, "bytes": 6, "size": 4102, "text": "hello\n"}]}
//
// "errors": the log of stderr alone; "missing": true in the answer where the rank has none. "attempt": -1 means the present one, which the
// answer names. "since": only what was written after this time, in seconds since 1970. "from" of the answer is 0 when the log has become
// shorter than what was asked for. "bytes" is how far the piece goes: the text has other bytes where the log is not UTF-8.
#pragma once
#include <cstddef>
#include <string>

#include "base/json/json_value.h"
#include "launch/logs/log_folder.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

constexpr std::size_t kMostLogBytes = 64 * 1024;  // of all pieces of one answer

// Throws Error(usage) when the request names no ranks of this node.
JsonValue read_log_pieces(const LogFolder& logs, const Verdict& verdict, const JsonValue& request);

}  // namespace fleetrun::launch

// The result of tuning a job, as it is kept on disk and handed to the launcher.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "runtime/tune/halving.h"

namespace fleetrun::runtime {

struct Tuned {
  std::vector<std::string> settings;  // of the winner; none: the unchanged job
  std::optional<Effect> confirmed;    // of the best candidate against the unchanged job
  std::vector<Effect> tried;          // the fastest first
  std::vector<Effect> explained;      // by setting of the winner; see explain()
  std::vector<std::string> same, left_out;
  std::vector<std::string> notes;  // what was found about the advice, and what was not tried and why
  double default_seconds = 0;      // of a step of the unchanged job
  double seconds = 0;              // that tuning took
  std::string made;                // "2026-11-25 17:40 UTC"

  bool operator==(const Tuned&) const = default;
};

JsonValue as_json(const Tuned& tuned);

// Nothing when `value` is not such a result.
std::optional<Tuned> parse_tuned(const JsonValue& value);

}  // namespace fleetrun::runtime

// What the user asks of `fleetrun tune`. The launcher writes it as one word of the worker's command line, and the worker
// reads it back.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace fleetrun {

struct TuneRequest {
  double budget_seconds = 180;
  bool amp = false;      // mixed precision and half-precision sums may be tried: they change the results
  bool explain = false;  // measure which setting of the result matters
  bool again = false;    // ignore the kept result
  std::optional<std::int64_t> memory;  // bytes of a rank; allows other batch sizes and recompute

  bool operator==(const TuneRequest&) const = default;
};

// "budget=180,amp,explain,again,memory=8589934592"
std::string write_tune_request(const TuneRequest& request);

// Throws Error(usage) for any other text.
TuneRequest parse_tune_request(const std::string& text);

}  // namespace fleetrun

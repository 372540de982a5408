#include "base/run/comm_backend.h"

#include <algorithm>
#include <array>

namespace fleetrun {
namespace {

constexpr const char* kAutomatic = "auto";

constexpr std::array kRows = {
#define COMM_BACKEND(id, name, title, reach) CommBackendRow{CommBackend::id, name, title, Reach::reach},
#include "base/run/comm_backends.def"
#undef COMM_BACKEND
};

}  // namespace

std::span<const CommBackendRow> comm_backends() { return kRows; }

const CommBackendRow& row_of(CommBackend backend) { return kRows.at(static_cast<std::size_t>(backend) - 1); }

std::string_view describe(CommBackend backend) {
  return backend == CommBackend::automatic ? kAutomatic : row_of(backend).name;
}

std::optional<CommBackend> parse_comm_backend(std::string_view name) {
  if (name == kAutomatic) return CommBackend::automatic;
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](auto& each) { return name == each.name; });
  return row == kRows.end() ? std::nullopt : std::optional(row->backend);
}

std::vector<std::string> comm_backend_names() {
  std::vector<std::string> names = {kAutomatic};
  for (const CommBackendRow& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace fleetrun

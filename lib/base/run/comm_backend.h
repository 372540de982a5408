// The backends by which ranks reach each other (comm_backends.def), as values and by their names.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

constexpr const char* kCommBackendVariable = "FLEETRUN_COMM_BACKEND";

// `automatic`: the first that works.
enum class CommBackend {
  automatic,
#define COMM_BACKEND(id, name, title, reach) id,
#include "base/run/comm_backends.def"
#undef COMM_BACKEND
};

enum class Reach { one_host, any_host };

struct CommBackendRow {
  CommBackend backend;
  const char* name;   // "shm"
  const char* title;  // "shared memory"
  Reach reach;
};

std::span<const CommBackendRow> comm_backends();  // without `automatic`
const CommBackendRow& row_of(CommBackend backend);

std::string_view describe(CommBackend backend);                        // "auto", "gloo", "shm"
std::optional<CommBackend> parse_comm_backend(std::string_view name);  // the inverse
std::vector<std::string> comm_backend_names();                         // "auto" first

}  // namespace fleetrun

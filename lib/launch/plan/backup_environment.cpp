#include "launch/plan/backup_environment.h"

#include <filesystem>

#include "base/json/json_value.h"
#include "base/text/redact.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kPathName = "PADDLE_BACKUP_ENV_PATH";
}  // namespace

std::string backup_environment(const Environment& worker) {
  JsonValue json = JsonValue::object();
  for (const auto& [name, value] : worker.variables()) json.add(name, redact(name, value));
  return to_json_lines(json);
}

void write_backup_environment(const Environment& worker, const LogFolder& logs) {
  if (const auto path = worker.get(kPathName))
    logs.write_private(std::filesystem::path(*path).filename(), backup_environment(worker));
}

}  // namespace fleetrun::launch

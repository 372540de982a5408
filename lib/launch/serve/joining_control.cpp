#include "launch/serve/joining_control.h"

#include <csignal>

#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "launch/serve/control_requests.h"

namespace fleetrun::launch {

std::string JoiningControl::answer(const std::string& request) const {
  const JsonDocument document = read_json(request);
  const JsonValue* const what = document.root.find("do", JsonValue::Kind::text);
  const std::string asked = what == nullptr ? "" : what->text;
  const JsonValue none = JsonValue::list({});
  if (asked == "stop") {
    nodes.stop_waiting(SIGTERM);
    return to_json(JsonValue::object({{"run_id", report.run_id}}));
  }
  if (asked == "ps" || asked == "signal") {
    JsonValue json =
        asked == "ps" ? run_json(report, 0, none) : JsonValue::object({{"ranks", none}, {"spared", none}});
    json.add("waiting", nodes.describe_wait());
    return to_json(json);
  }
  return to_json(refusal("no rank runs yet: " + nodes.describe_wait()));
}

}  // namespace fleetrun::launch

// The strategy file of a job: Fleet's DistributedStrategy as protobuf text. Its values hold where the job sets none.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_value.h"
#include "job/keys/key.h"
#include "job/read/draft.h"
#include "job/strategy_files/prototxt_plugin.h"

namespace fleetrun::job {

constexpr std::size_t kStrategyBytesLimit = std::size_t{1} << 20;  // far above any file of a strategy

// Throws Error(missing|permission|io) if the file cannot be read, Error(config) if it is not a regular file or is too large. What is wrong with its
// content is in the document.
StrategyDocument read_strategy_file(const std::string& path);

// What a strategy file says, as under `strategy` in a job file. Throws as read_strategy_file does, and Error(config) with a line for each
// thing that a job could not use.
struct LoadedStrategy {
  JsonValue settings;
  std::vector<std::string> notes;
};
LoadedStrategy load_strategy_file(const std::string& path);

// Moves `"strategy": "FILE"` to strategy_file.
void move_strategy_name(JsonValue& root, Draft& draft);

// What the launcher read from the strategy file, as it gives it to the ranks, taken out of `root`. Nothing: there is no strategy file.
std::optional<JsonValue> take_handed_strategy(JsonValue& root);

// Reads the file that `root` names, if any, and puts its values into the spec. `handed`: the launcher has read it already. Returns what to
// hand to the ranks. Takes out of `root` what turns off fields of the file that have no key.
std::optional<JsonValue> apply_strategy_file(JsonValue& root, const Key& keys,
                                             const std::optional<JsonValue>& handed, Draft& draft);

// The text of a job file with this in place of the name of the strategy file.
std::string with_handed_strategy(std::string_view text, const JsonValue& handed);

}  // namespace fleetrun::job

// "did you mean data.batch_size?": the key that somebody meant who left out the way to it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "job/key.h"

namespace fleetrun::job {

// The path of a key whose last part is `name`, or nearly so; also for a few names that other programs have ("lr"). Of several the
// shortest path. Nothing when there is none.
std::optional<std::string> meant_key(std::string_view name, const Key& keys);

}  // namespace fleetrun::job

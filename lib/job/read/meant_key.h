// "did you mean data.batch_size?": the key that somebody meant who left out the way to it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "job/keys/key.h"

namespace fleetrun::job {

// The path of the key that somebody means who writes `name`: the last part of the path is `name`, or similar. It also knows a few names of
// other programs, such as "lr". If several keys fit, it takes the shortest path. Nothing: no key fits.
std::optional<std::string> meant_key(std::string_view name, const Key& keys);

}  // namespace fleetrun::job

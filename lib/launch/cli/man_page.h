// The manual page of fleetrun in the language of groff's man macros.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flag.h"

namespace fleetrun::launch {

std::string man_page(const std::vector<Option>& table);

}  // namespace fleetrun::launch

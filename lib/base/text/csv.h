// Files of comma-separated values (RFC 4180), as spreadsheets and other programs read them.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun {

// The text as one field: in double quotes where it has a comma, a quote or a line end.
std::string csv_field(std::string_view text);

}  // namespace fleetrun

// Text inside of XML and HTML.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun {

// The text with &, <, >, " and ' escaped, for an element or a quoted attribute. What XML cannot hold becomes U+FFFD or '?'.
std::string xml_text(std::string_view text);

}  // namespace fleetrun

// Named constants of an op: strides, epsilon, flags.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace fleetrun::runtime {

using Attribute =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
using Attributes = std::map<std::string, Attribute>;

std::string describe(
    const Attribute& attribute);  // true, 2, 0.5, "max", [1,1], [0.5,1.0]: parse_attribute reads it back

// Throws Error(internal) that quotes a text which is none of these.
Attribute parse_attribute(const std::string& text);

}  // namespace fleetrun::runtime

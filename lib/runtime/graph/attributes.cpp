#include "runtime/graph/attributes.h"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

struct Words {
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(std::int64_t number) const { return fmt::to_string(number); }
  std::string operator()(double number) const {
    const std::string text = fmt::to_string(number);  // shortest text that reads back to the same number
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  std::string operator()(const std::string& text) const { return fmt::format("\"{}\"", text); }
  std::string operator()(const std::vector<std::int64_t>& list) const {
    return fmt::format("[{}]", fmt::join(list, ","));
  }
  std::string operator()(const std::vector<double>& list) const {
    std::vector<std::string> texts;
    texts.reserve(list.size());
    for (const double number : list) texts.push_back((*this)(number));
    return fmt::format("[{}]", fmt::join(texts, ","));
  }
};

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && stop == text.data() + text.size();
}

// False if one of the numbers is of another type.
template <typename Number>
bool read_list(std::string_view inside, std::vector<Number>& list) {
  while (!inside.empty()) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    Number number{};
    if (!read_whole(inside.substr(0, comma), number)) return false;
    list.push_back(number);
    inside.remove_prefix(std::min(comma + 1, inside.size()));
  }
  return true;
}

Attribute parse_list(std::string_view inside, const std::string& whole) {
  if (std::vector<std::int64_t> integers; read_list(inside, integers)) return integers;
  if (std::vector<double> numbers; read_list(inside, numbers)) return numbers;
  throw Error(ErrorKind::internal, fmt::format("{} is not a list of numbers", whole));
}

}  // namespace

std::string describe(const Attribute& attribute) { return std::visit(Words(), attribute); }

Attribute parse_attribute(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    return parse_list(std::string_view(text).substr(1, text.size() - 2), text);
  if (std::int64_t integer = 0; read_whole(std::string_view(text), integer)) return integer;
  if (double number = 0; read_whole(std::string_view(text), number)) return number;
  throw Error(ErrorKind::internal,
              fmt::format("{} is not an attribute: wanted true, false, a number, \"text\" or [1,2]", text));
}

}  // namespace fleetrun::runtime

#include "runtime/graph/program_text.h"

#include <charconv>
#include <optional>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

std::string print_value(const Program& program, const Value& value) {
  std::string line = fmt::format("{} {} {}{}", describe(value.kind), value.name, describe(value.dtype),
                                 describe(value.shape));
  if (!value.layout.plain()) line += "@" + value.layout.name;
  if (value.kind == ValueKind::parameter || value.kind == ValueKind::state)
    line += fmt::format(" {} {}", describe(value.init.how), describe(Attribute(value.init.value)));
  if (value.of != kNone) line += " of " + program.value(value.of).name;
  return line;
}

std::string print_names(const Program& program, std::span<const ValueId> ids) {
  std::vector<std::string_view> names;
  for (const ValueId id : ids)
    if (id != kNone) names.emplace_back(program.value(id).name);
  return fmt::format("{}", fmt::join(names, ","));
}

std::string print_op(const Program& program, const Op& op, const OpDef& def) {
  const OpView view(def, program, op);
  std::string line = op.type;
  for (std::size_t i = 0; i < def.inputs.size(); ++i) {
    const std::string name = def.input_name(static_cast<int>(i));
    const std::string values = print_names(program, view.input_ids(name));
    if (!values.empty()) line += fmt::format(" {}={}", name, values);
  }
  line += " ->";
  for (std::size_t i = 0; i < def.outputs.size(); ++i) {
    const std::string name = def.output_name(static_cast<int>(i));
    const std::string values = print_names(program, view.output_ids(name));
    if (!values.empty()) line += fmt::format(" {}={}", name, values);
  }
  std::vector<std::string> attributes;
  for (const auto& [name, value] : op.attributes)
    attributes.push_back(fmt::format("{}={}", name, describe(value)));
  line = fmt::format("{} {{{}}} {}", line, fmt::join(attributes, "; "), describe(op.role));
  return op.after.empty() ? line : fmt::format("{} after {}", line, print_names(program, op.after));
}

// One line being read, word by word.
class Line {
 public:
  Line(std::string_view text, int number) : text_(text), number_(number) {}

  std::string_view word() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    const std::size_t end = std::min(text_.find(' '), text_.size());
    const std::string_view found = text_.substr(0, end);
    text_.remove_prefix(end);
    return found;
  }

  // What stands between "{" and the last "}".
  std::string_view braces() {
    const std::size_t open = text_.find('{');
    const std::size_t close = text_.rfind('}');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      fail("wanted {attributes}");
    const std::string_view inside = text_.substr(open + 1, close - open - 1);
    text_.remove_prefix(close + 1);
    return inside;
  }

  bool starts_with_brace() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    return text_.empty() || text_.front() == '{';
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::internal, fmt::format("line {}: {}", number_, message));
  }

 private:
  std::string_view text_;
  int number_;
};

template <typename Kind>
std::optional<Kind> parse_name(std::string_view word, std::initializer_list<Kind> all) {
  for (const Kind kind : all)
    if (describe(kind) == word) return kind;
  return std::nullopt;
}

ValueId known_value(const Program& program, std::string_view name, const Line& line) {
  const ValueId id = program.find(name);
  if (id == kNone) line.fail(fmt::format("there is no value {}", name));
  return id;
}

void read_type(std::string_view word, Value& value, const Line& line) {
  if (word.find('@') != std::string_view::npos)
    line.fail("layouts are chosen by a device and cannot be read back");
  const std::size_t bracket = word.find('[');
  const auto dtype = parse_dtype(word.substr(0, bracket));
  if (bracket == std::string_view::npos || !dtype)
    line.fail(fmt::format("{} is not a type; wanted one like f32[2,3]", word));
  value.dtype = *dtype;
  value.shape = std::get<Shape>(parse_attribute(std::string(word.substr(bracket))));
}

void read_value(ValueKind kind, Line& line, Program& program) {
  Value value = {.name = std::string(line.word()), .kind = kind};
  read_type(line.word(), value, line);
  for (std::string_view word = line.word(); !word.empty(); word = line.word()) {
    if (word == "of") {
      value.of = known_value(program, line.word(), line);
    } else if (const auto how =
                   parse_name(word, {Init::How::constant, Init::How::uniform, Init::How::normal})) {
      value.init.how = *how;
      value.init.value = std::get<double>(parse_attribute(std::string(line.word())));
    } else {
      line.fail(fmt::format("unknown word {}", word));
    }
  }
  program.add_value(std::move(value));
}

// Where the first attribute of the text ends: at a semicolon that no quotes enclose.
std::size_t end_of_attribute(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == ';' && !quoted) return i;
  }
  return text.size();
}

Attributes read_attributes(std::string_view text, const Line& line) {
  Attributes attributes;
  while (!text.empty()) {
    const std::size_t end = end_of_attribute(text);
    const std::string_view item = text.substr(0, end);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      line.fail(fmt::format("{} is not an attribute; wanted name=value", item));
    attributes[std::string(item.substr(0, equals))] = parse_attribute(std::string(item.substr(equals + 1)));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return attributes;
}

// "a,b,c"
std::vector<ValueId> read_values(std::string_view names, const Program& program, const Line& line) {
  std::vector<ValueId> values;
  while (true) {
    const std::size_t comma = names.find(',');
    values.push_back(known_value(program, names.substr(0, comma), line));
    if (comma == std::string_view::npos) return values;
    names.remove_prefix(comma + 1);
  }
}

using Values = std::vector<std::vector<ValueId>>;  // by argument

void read_argument(std::string_view word, bool output, const OpDef& def, Values& values,
                   const Program& program, const Line& line) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos)
    line.fail(fmt::format("{} is not an argument; wanted name=value", word));
  const std::string_view name = word.substr(0, equals);
  const int index = output ? def.output_index(name) : def.input_index(name);
  if (index < 0) line.fail(fmt::format("op {} has no {} {}", def.name, output ? "output" : "input", name));
  values[static_cast<std::size_t>(index)] = read_values(word.substr(equals + 1), program, line);
}

std::vector<ValueId> flat(const Values& values) {
  std::vector<ValueId> all;
  for (const auto& of_argument : values) all.insert(all.end(), of_argument.begin(), of_argument.end());
  return all;
}

void read_op(std::string_view type, Line& line, const OpTable& ops, Program& program) {
  if (ops.find(type) == ops.end()) line.fail(fmt::format("there is no op {}", type));
  const OpDef& def = find_op(ops, type);
  Op op = {.type = def.name};
  Values inputs(def.inputs.size(), {kNone}), outputs(def.outputs.size(), {kNone});
  bool output = false;
  while (!line.starts_with_brace()) {
    const std::string_view word = line.word();
    if (word == "->")
      output = true;
    else
      read_argument(word, output, def, output ? outputs : inputs, program, line);
  }
  op.inputs = flat(inputs);
  op.outputs = flat(outputs);
  op.attributes = read_attributes(line.braces(), line);
  const std::string_view role = line.word();
  const auto found = parse_name(role, {Role::forward, Role::backward, Role::communication, Role::optimize});
  if (!found) line.fail(fmt::format("\"{}\" is not a role", role));
  op.role = *found;
  if (line.word() == "after") op.after = read_values(line.word(), program, line);
  program.ops.push_back(std::move(op));
}

}  // namespace

std::string print_program(const Program& program, const OpTable& ops) {
  std::string text;
  for (const Value& value : program.values) text += print_value(program, value) + "\n";
  for (const ValueId id : program.fetches) text += fmt::format("fetch {}\n", program.value(id).name);
  for (const auto& ids : program.contiguous)
    text += fmt::format("contiguous {}\n", print_names(program, ids));
  for (const Op& op : program.ops) text += print_op(program, op, find_op(ops, op.type)) + "\n";
  return text;
}

Program parse_program(std::string_view text, const OpTable& ops) {
  Program program;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string content; std::getline(lines, content);) {
    Line line(content, ++number);
    const std::string_view first = line.word();
    if (first.empty()) continue;
    if (const auto kind = parse_name(first, {ValueKind::feed, ValueKind::parameter, ValueKind::state,
                                             ValueKind::gradient, ValueKind::activation}))
      read_value(*kind, line, program);
    else if (first == "fetch")
      program.fetches.push_back(known_value(program, line.word(), line));
    else if (first == "contiguous")
      program.contiguous.push_back(read_values(line.word(), program, line));
    else
      read_op(first, line, ops, program);
  }
  return program;
}

}  // namespace fleetrun::runtime

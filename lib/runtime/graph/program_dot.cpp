#include "runtime/graph/program_dot.h"

#include <map>

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

const char* colour_of(Role role) {
  switch (role) {
    case Role::forward:
      return "#cfe2f3";  // blue
    case Role::backward:
      return "#f9d5c5";  // orange
    case Role::communication:
      return "#fff2b3";  // yellow
    case Role::optimize:
      break;
  }
  return "#d5e8d4";  // green
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string describe_flow(const Value& value) {
  return fmt::format("{}\\n{}{}{}", escaped(value.name), describe(value.dtype), describe(value.shape),
                     value.layout.plain() ? "" : "@" + escaped(value.layout.name));
}

// Grows the text op by op, in the order in which they run.
class Picture {
 public:
  explicit Picture(const Program& program) : program_(program) {}

  std::string draw() {
    for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) draw_op(id);
    for (const ValueId id : program_.fetches) draw_fetch(id);
    return "digraph program {\n  node [shape=box, style=filled, fillcolor=white];\n" + text_ + "}\n";
  }

 private:
  void draw_op(OpId id) {
    const Op& op = program_.op(id);
    const std::string node = fmt::format("op{}", id);
    text_ += fmt::format("  {} [label=\"{}\\n{}\", fillcolor=\"{}\"];\n", node, escaped(op.type),
                         escaped(first_output(op)), colour_of(op.role));
    for (const ValueId input : op.inputs)
      if (input != kNone) draw_edge(input, node);
    for (const ValueId output : op.outputs)
      if (output != kNone) sources_[output] = node;
  }

  std::string first_output(const Op& op) const {
    for (const ValueId output : op.outputs)
      if (output != kNone) return program_.value(output).name;
    return "";
  }

  void draw_fetch(ValueId id) {
    const std::string node = fmt::format("fetch{}", id);
    text_ +=
        fmt::format("  {} [label=\"fetch\\n{}\", shape=ellipse];\n", node, escaped(program_.value(id).name));
    draw_edge(id, node);
  }

  void draw_edge(ValueId id, const std::string& to) {
    const std::string from = source_of(id);
    text_ += fmt::format("  {} -> {} [label=\"{}\"];\n", from, to, describe_flow(program_.value(id)));
  }

  // The node that wrote the value last; an ellipse when no op did.
  const std::string& source_of(ValueId id) {
    const auto [source, is_new] = sources_.try_emplace(id, fmt::format("value{}", id));
    if (is_new)
      text_ += fmt::format("  {} [label=\"{}\\n{}\", shape=ellipse];\n", source->second,
                           describe(program_.value(id).kind), escaped(program_.value(id).name));
    return source->second;
  }

  const Program& program_;
  std::string text_;
  std::map<ValueId, std::string> sources_;
};

}  // namespace

std::string program_dot(const Program& program) { return Picture(program).draw(); }

}  // namespace fleetrun::runtime

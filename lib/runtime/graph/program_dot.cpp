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

std::string described(const Value& value) {
  return fmt::format("{} {}{}{}", escaped(value.name), describe(value.dtype), describe(value.shape),
                     value.layout.plain() ? "" : "@" + escaped(value.layout.name));
}

// Grows the text op by op, in the order in which they run. Edges carry no labels and what no op wrote is drawn anew at
// each reader, and the search for good places ends early: else Graphviz takes minutes for a network.
class Picture {
 public:
  explicit Picture(const Program& program) : program_(program) {}

  std::string draw() {
    for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) draw_op(id);
    for (const ValueId id : program_.fetches) draw_fetch(id);
    return "digraph program {\n  splines=line;\n  nslimit=0.1;\n  node [shape=box, style=filled, fillcolor=white];\n" +
           text_ + "}\n";
  }

 private:
  void draw_op(OpId id) {
    const Op& op = program_.op(id);
    const std::string node = fmt::format("op{}", id);
    std::string label = escaped(op.type);
    for (const ValueId output : op.outputs)
      if (output != kNone) label += "\\n" + described(program_.value(output));
    text_ += fmt::format("  {} [label=\"{}\", fillcolor=\"{}\"];\n", node, label, colour_of(op.role));
    for (const ValueId input : op.inputs)
      if (input != kNone) draw_edge(input, node);
    for (const ValueId value : op.after)
      if (const auto maker = makers_.find(value); maker != makers_.end())
        text_ += fmt::format("  {} -> {} [style=dashed];\n", maker->second, node);
    for (const ValueId output : op.outputs)
      if (output != kNone) {
        writers_[output] = node;
        makers_.try_emplace(output, node);
      }
  }

  void draw_fetch(ValueId id) {
    const std::string node = fmt::format("fetch{}", id);
    text_ +=
        fmt::format("  {} [label=\"fetch\\n{}\", shape=ellipse];\n", node, escaped(program_.value(id).name));
    draw_edge(id, node);
  }

  // From the op that wrote the value last; from an ellipse of its own when none did.
  void draw_edge(ValueId id, const std::string& to) {
    const auto writer = writers_.find(id);
    const std::string from = writer != writers_.end() ? writer->second : fmt::format("value{}_{}", id, to);
    if (writer == writers_.end())
      text_ += fmt::format("  {} [label=\"{}\\n{}\", shape=ellipse];\n", from,
                           describe(program_.value(id).kind), described(program_.value(id)));
    text_ += fmt::format("  {} -> {};\n", from, to);
  }

  const Program& program_;
  std::string text_;
  std::map<ValueId, std::string> writers_, makers_;  // the last and the first so far
};

}  // namespace

std::string program_dot(const Program& program) { return Picture(program).draw(); }

}  // namespace fleetrun::runtime

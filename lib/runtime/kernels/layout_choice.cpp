#include "runtime/kernels/layout_choice.h"

namespace fleetrun::runtime {
namespace {

std::vector<Layout> like(const Value& leader, const Program& program, const std::vector<ValueId>& ids) {
  std::vector<Layout> layouts(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != kNone && program.value(ids[i]).shape == leader.shape) layouts[i] = leader.layout;
  return layouts;
}

}  // namespace

LayoutChoice like_input(const LayoutQuery& query, std::string_view leader) {
  const Value& value = query.op.input(leader);
  return {like(value, query.op.program(), query.op.op().inputs),
          like(value, query.op.program(), query.op.op().outputs)};
}

LayoutChoice like_first_input(const LayoutQuery& query, Device&) {
  return like_input(query, query.op.def().input_name(0));
}

LayoutChoice as_they_lie(const LayoutQuery& query, Device&) {
  LayoutChoice choice;
  for (const ValueId id : query.op.op().inputs)
    choice.inputs.push_back(id == kNone ? Layout() : query.op.program().value(id).layout);
  for (const ValueId id : query.op.op().outputs)
    choice.outputs.push_back(id == kNone ? Layout() : query.op.program().value(id).layout);
  return choice;
}

LayoutChoice as_casts_lie(const LayoutQuery& query, Device& device,
                          Layout (*layout_in)(const Value&, DType)) {
  const Op& op = query.op.op();
  LayoutChoice choice = as_they_lie(query, device);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const Value &x = query.op.program().value(op.inputs[i]), &y = query.op.program().value(op.outputs[i]);
    if (query.input_free[i])
      choice.inputs[i] = layout_in(y, x.dtype);
    else
      choice.outputs[i] = layout_in(x, y.dtype);
  }
  return choice;
}

LayoutChoice as_parameters_lie(const LayoutQuery& query, Layout (*layout_in)(const Value&, DType)) {
  const Program& program = query.op.program();
  LayoutChoice choice;
  for (const char* argument : {"grad", "param"})
    for (std::size_t i = 0; i < query.op.input_ids(argument).size(); ++i)
      choice.inputs.push_back(program.value(query.op.input_ids("param")[i]).layout);
  for (std::size_t i = 0; i < query.op.output_ids("out").size(); ++i)
    choice.outputs.push_back(layout_in(program.value(query.op.input_ids("param")[i]),
                                       program.value(query.op.output_ids("out")[i]).dtype));
  return choice;
}

}  // namespace fleetrun::runtime

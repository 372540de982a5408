#include "runtime/ops/op_def.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::runtime {
namespace {

std::string without_mark(const std::string& argument) {
  return argument.ends_with('?') ? argument.substr(0, argument.size() - 1) : argument;
}

int index_of(const std::vector<std::string>& arguments, std::string_view wanted) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (without_mark(arguments[i]) == wanted) return static_cast<int>(i);
  return -1;
}

ValueId id_at(const std::vector<ValueId>& ids, int index, std::string_view argument, const std::string& op) {
  if (index < 0) throw Error(ErrorKind::internal, fmt::format("op {} has no argument {}", op, argument));
  return static_cast<std::size_t>(index) < ids.size() ? ids[static_cast<std::size_t>(index)] : kNone;
}

const Value& present(const Program& program, ValueId id, std::string_view argument, const std::string& op) {
  if (id == kNone)
    throw Error(ErrorKind::internal, fmt::format("op {} is used without its argument {}", op, argument));
  return program.value(id);
}

template <typename T>
const T& attribute(const Op& op, const std::string& name) {
  const auto found = op.attributes.find(name);
  if (found == op.attributes.end())
    throw Error(ErrorKind::internal, fmt::format("op {} lacks the attribute {}", op.type, name));
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  throw Error(ErrorKind::internal, fmt::format("op {}: the attribute {} is {}, which is of the wrong type",
                                               op.type, name, describe(found->second)));
}

}  // namespace

ValueId OpView::input_id(std::string_view name) const {
  return id_at(op_->inputs, def_->input_index(name), name, def_->name);
}

ValueId OpView::output_id(std::string_view name) const {
  return id_at(op_->outputs, def_->output_index(name), name, def_->name);
}

const Value& OpView::input(std::string_view name) const {
  return present(*program_, input_id(name), name, def_->name);
}

const Value& OpView::output(std::string_view name) const {
  return present(*program_, output_id(name), name, def_->name);
}

bool OpView::flag(const std::string& name) const { return attribute<bool>(*op_, name); }

std::int64_t OpView::integer(const std::string& name) const { return attribute<std::int64_t>(*op_, name); }

double OpView::number(const std::string& name) const {
  const auto found = op_->attributes.find(name);
  if (found != op_->attributes.end())
    if (const auto* integer = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*integer);
  return attribute<double>(*op_, name);
}

const std::string& OpView::text(const std::string& name) const { return attribute<std::string>(*op_, name); }

const std::vector<std::int64_t>& OpView::integers(const std::string& name) const {
  return attribute<std::vector<std::int64_t>>(*op_, name);
}

void OpView::fail(const std::string& message) const {
  for (const ValueId id : op_->outputs)
    if (id != kNone)
      throw Error(ErrorKind::config,
                  fmt::format("{} ({}): {}", def_->name, program_->value(id).name, message));
  throw Error(ErrorKind::config, fmt::format("{}: {}", def_->name, message));
}

void Inference::set_output(std::string_view name, Shape shape, DType dtype) {
  const ValueId id = output_id(name);
  if (id == kNone) return;
  Value& value = writable_->value(id);
  value.shape = std::move(shape);
  value.dtype = dtype;
}

int OpDef::input_index(std::string_view argument) const { return index_of(inputs, argument); }

int OpDef::output_index(std::string_view argument) const { return index_of(outputs, argument); }

bool OpDef::input_optional(int index) const {
  return inputs.at(static_cast<std::size_t>(index)).ends_with('?');
}

std::string OpDef::input_name(int index) const {
  return without_mark(inputs.at(static_cast<std::size_t>(index)));
}

std::string OpDef::output_name(int index) const {
  return without_mark(outputs.at(static_cast<std::size_t>(index)));
}

const OpDef& find_op(const OpTable& ops, std::string_view name) {
  const auto found = ops.find(name);
  if (found == ops.end()) throw Error(ErrorKind::internal, fmt::format("there is no op {}", name));
  return found->second;
}

}  // namespace fleetrun::runtime

#include "runtime/graph/op_def.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::runtime {
namespace {

bool is_list(const std::string& argument) { return argument.ends_with('*'); }

std::string without_mark(const std::string& argument) {
  return argument.ends_with('?') || is_list(argument) ? argument.substr(0, argument.size() - 1) : argument;
}

int index_of(const std::vector<std::string>& arguments, std::string_view wanted) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (without_mark(arguments[i]) == wanted) return static_cast<int>(i);
  return -1;
}

std::span<const ValueId> ids_of(const std::vector<ValueId>& ids, const std::vector<std::string>& arguments,
                                std::string_view argument, const std::string& op) {
  const int index = index_of(arguments, argument);
  if (index < 0) throw Error(ErrorKind::internal, fmt::format("op {} has no argument {}", op, argument));
  const ArgumentPlaces::Range range = ArgumentPlaces(arguments, ids.size()).of(index);
  return std::span(ids).subspan(range.first, range.count);
}

// Of one value. Gradient rules ask ops that are still being made: those have no outputs yet.
ValueId id_of(const std::vector<ValueId>& ids, const std::vector<std::string>& arguments,
              std::string_view argument, const std::string& op) {
  if (ids.empty() && index_of(arguments, argument) >= 0) return kNone;
  return ids_of(ids, arguments, argument, op).front();
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
  return id_of(op_->inputs, def_->inputs, name, def_->name);
}

ValueId OpView::output_id(std::string_view name) const {
  return id_of(op_->outputs, def_->outputs, name, def_->name);
}

std::span<const ValueId> OpView::input_ids(std::string_view name) const {
  return ids_of(op_->inputs, def_->inputs, name, def_->name);
}

std::span<const ValueId> OpView::output_ids(std::string_view name) const {
  return ids_of(op_->outputs, def_->outputs, name, def_->name);
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

const std::vector<double>& OpView::numbers(const std::string& name) const {
  return attribute<std::vector<double>>(*op_, name);
}

void OpView::fail(const std::string& message) const {
  for (const ValueId id : op_->outputs)
    if (id != kNone)
      throw Error(ErrorKind::config,
                  fmt::format("{} ({}): {}", def_->name, program_->value(id).name, message));
  throw Error(ErrorKind::config, fmt::format("{}: {}", def_->name, message));
}

void Inference::set_output(std::string_view name, Shape shape, DType dtype) {
  if (const ValueId id = output_id(name); id != kNone) set(id, std::move(shape), dtype);
}

void Inference::set(ValueId output, Shape shape, DType dtype) {
  Value& value = writable_->value(output);
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

ArgumentPlaces::ArgumentPlaces(const std::vector<std::string>& arguments, std::size_t places) {
  const auto lists = static_cast<std::size_t>(std::count_if(arguments.begin(), arguments.end(), is_list));
  const std::size_t alone = arguments.size() - lists;
  const bool fits = lists == 0 ? places == alone : places > alone && (places - alone) % lists == 0;
  if (!fits)
    throw Error(ErrorKind::internal,
                fmt::format("{} values for the arguments {}", places, fmt::join(arguments, ", ")));
  if (lists > 0) list_length_ = (places - alone) / lists;
  std::size_t first = 0;
  for (const std::string& argument : arguments) {
    ranges_.push_back({first, is_list(argument) ? list_length_ : 1});
    first += ranges_.back().count;
  }
}

ArgumentPlaces::Range ArgumentPlaces::of(int argument) const {
  return ranges_.at(static_cast<std::size_t>(argument));
}

int ArgumentPlaces::argument_at(std::size_t place) const {
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    if (place < ranges_[i].first + ranges_[i].count) return static_cast<int>(i);
  throw Error(ErrorKind::internal, fmt::format("no argument has place {}", place));
}

const OpDef& find_op(const OpTable& ops, std::string_view name) {
  const auto found = ops.find(name);
  if (found == ops.end()) throw Error(ErrorKind::internal, fmt::format("there is no op {}", name));
  return found->second;
}

}  // namespace fleetrun::runtime

#include "runtime/checkpoint/weights.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_value.h"
#include "runtime/checkpoint/safetensors.h"

namespace fleetrun::runtime {
namespace {

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

std::string quoted(const std::string& name) {
  constexpr std::size_t kLongestName = 100;  // bytes; names of a file may hold anything
  return shortened_quote(name, kLongestName);
}

struct WrongShape {
  std::string name;
  Shape found, wanted;
};

// How the tensors of a file differ from what a model wants.
struct Mismatch {
  std::vector<std::string> missing, unexpected, no_floats;
  std::vector<WrongShape> shapes;

  bool none() const { return missing.empty() && unexpected.empty() && no_floats.empty() && shapes.empty(); }
};

Mismatch compare(const Safetensors& file, const Program& program) {
  Mismatch mismatch;
  std::set<std::string> wanted;
  for (const ValueId id : weights_of(program)) {
    const Value& value = program.value(id);
    wanted.insert(value.name);
    const auto found = file.tensors.find(value.name);
    if (found == file.tensors.end())
      mismatch.missing.push_back(value.name);
    else if (found->second.shape != value.shape)
      mismatch.shapes.push_back({value.name, found->second.shape, value.shape});
    else if (!is_float(found->second.dtype))
      mismatch.no_floats.push_back(
          fmt::format("{} is {}, wanted f32, f16 or bf16", value.name, describe(found->second.dtype)));
  }
  for (const auto& [name, tensor] : file.tensors)
    if (wanted.count(name) == 0 && !name.ends_with(".num_batches_tracked"))
      mismatch.unexpected.push_back(quoted(name));
  return mismatch;
}

// The classes of the file, when nothing but the first size of a weight, and of its bias, differs.
std::optional<std::int64_t> other_classes(const Mismatch& mismatch) {
  const auto& shapes = mismatch.shapes;
  const bool only_shapes =
      mismatch.missing.empty() && mismatch.unexpected.empty() && mismatch.no_floats.empty();
  if (!only_shapes || shapes.empty() || shapes.size() > 2) return std::nullopt;
  for (const WrongShape& shape : shapes) {
    const bool first_differs =
        !shape.found.empty() && shape.found.size() == shape.wanted.size() &&
        std::equal(shape.found.begin() + 1, shape.found.end(), shape.wanted.begin() + 1) &&
        shape.found.front() == shapes.front().found.front() &&
        shape.wanted.front() == shapes.front().wanted.front();
    if (!first_differs) return std::nullopt;
  }
  return shapes.front().found.front();
}

Error error_of(const std::string& path, const Mismatch& mismatch) {
  std::string text = fmt::format("{} holds other tensors than the model:", path);
  const auto add = [&](const std::string& line) { text += "\n  " + line; };
  for (const std::string& name : mismatch.missing) add(name + " is missing");
  for (const std::string& name : mismatch.unexpected) add(name + " is unknown to the model");
  for (const WrongShape& shape : mismatch.shapes)
    add(fmt::format("{} is {}, wanted {}", shape.name, describe(shape.found), describe(shape.wanted)));
  for (const std::string& line : mismatch.no_floats) add(line);
  const auto classes = other_classes(mismatch);
  return Error(ErrorKind::data, text,
               classes ? fmt::format("the last layer of the file is for {0} classes; model.class_dim={0} "
                                     "gives the model as many",
                                     *classes)
                       : "");
}

}  // namespace

std::vector<ValueId> weights_of(const Program& program) {
  std::vector<ValueId> weights;
  for (ValueId id = 0; id < static_cast<ValueId>(program.values.size()); ++id) {
    const Value& value = program.value(id);
    if (value.kind == ValueKind::parameter || (value.kind == ValueKind::state && value.of == kNone))
      weights.push_back(id);
  }
  return weights;
}

void load_weights(const std::string& path, const Program& program, Storage& storage) {
  const Safetensors file = read_safetensors(path);
  const Mismatch mismatch = compare(file, program);
  if (!mismatch.none()) throw error_of(path, mismatch);
  for (const ValueId id : weights_of(program)) {
    const std::string& name = program.value(id).name;
    storage.write(name, to_floats(file.tensors.at(name)));
  }
}

void load_pretrained(const job::ModelSpec& model, const Program& program, Storage& storage) {
  if (!model.pretrained) return;
  with_context("loading model.pretrained", [&] { load_weights(*model.pretrained, program, storage); });
}

void save_weights(const std::string& path, const Program& program, const Storage& storage) {
  std::vector<std::vector<float>> plain;  // what the tensors of the file point into
  Safetensors file;
  file.metadata["format"] = "pt";  // as PyTorch's own tools mark names and layout
  for (const ValueId id : weights_of(program)) {
    const Value& value = program.value(id);
    const std::vector<float>& floats = plain.emplace_back(storage.read(value.name));
    file.tensors[value.name] = {
        .dtype = DType::f32,
        .shape = value.shape,
        .bytes = {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)}};
  }
  write_safetensors(path, file);
}

}  // namespace fleetrun::runtime

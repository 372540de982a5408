#include "runtime/checkpoint/weights.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/marked_file.h"
#include "runtime/checkpoint/input_channels.h"
#include "runtime/optim/local_training.h"
#include "runtime/optim/merge_gradients.h"
#include "runtime/optim/sparse_states.h"

namespace fleetrun::runtime {
namespace {

using job::NewHead;

constexpr const char *kWriter = "written_by", *kOurName = "fleetrun";  // in the metadata

bool are_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
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

Mismatch compare(const Safetensors& file, const std::vector<ValueId>& ids, const Program& program,
                 std::string_view passed_over) {
  const auto is_passed_over = [&](const std::string& name) {
    return name.ends_with(".num_batches_tracked") || (!passed_over.empty() && name.starts_with(passed_over));
  };
  Mismatch mismatch;
  std::set<std::string> wanted;
  for (const ValueId id : ids) {
    const Value& value = program.value(id);
    wanted.insert(value.name);
    const auto found = file.tensors.find(value.name);
    if (found == file.tensors.end()) {
      if (!is_passed_over(value.name)) mismatch.missing.push_back(value.name);
    } else if (found->second.shape != value.shape) {
      mismatch.shapes.push_back({value.name, found->second.shape, value.shape});
    } else if (!is_float(found->second.dtype)) {
      mismatch.no_floats.push_back(
          fmt::format("{} is {}, wanted f32, f16 or bf16", value.name, describe(found->second.dtype)));
    }
  }
  for (const auto& [name, tensor] : file.tensors)
    if (wanted.count(name) == 0 && !is_passed_over(name)) mismatch.unexpected.push_back(quoted_name(name));
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
  return Error(
      ErrorKind::data, text,
      classes
          ? fmt::format(
                "the last layer of the file is for {0} classes; model.class_dim={0} gives the model as many, and "
                "model.new_head=auto trains a new last layer",
                *classes)
          : "");
}

template <typename Wanted>
std::vector<ValueId> values_where(const Program& program, Wanted wanted) {
  std::vector<ValueId> ids;
  for (ValueId id = 0; id < static_cast<ValueId>(program.values.size()); ++id)
    if (wanted(id)) ids.push_back(id);
  return ids;
}

// Of a parameter, or of the training as a whole: no op of the model writes it.
bool is_of_training(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  if (value.kind != ValueKind::state) return false;
  if (value.of != kNone) return true;
  const std::vector<ValueId> averaging = states_of_averaging(program);
  if (std::find(averaging.begin(), averaging.end(), id) != averaging.end()) return true;
  return std::any_of(program.ops.begin(), program.ops.end(), [id](const Op& op) {
    return op.role == Role::optimize &&
           std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
  });
}

bool is_of_model(const Program& program, ValueId id) {
  return program.value(id).kind == ValueKind::state && !is_of_training(program, id);
}

// The name of the last layer with a point, as in "fc.": models make their weights in the order of the layers.
std::string last_layer_of(const Program& program, const std::vector<ValueId>& weights) {
  const std::string& name = program.value(weights.back()).name;
  return name.substr(0, name.rfind('.') + 1);
}

bool fits(const Safetensors& file, const Value& value) {
  const auto found = file.tensors.find(value.name);
  return found != file.tensors.end() && found->second.shape == value.shape;
}

// Takes a last layer that does not fit the file out of `weights`. Returns its name with a point, or "" if it fits.
std::string take_out_new_head(const Safetensors& file, const Program& program,
                              std::vector<ValueId>& weights) {
  const std::string layer = last_layer_of(program, weights);
  const auto is_of_head = [&](ValueId id) { return program.value(id).name.starts_with(layer); };
  const auto is_new = [&](ValueId id) { return is_of_head(id) && !fits(file, program.value(id)); };
  if (std::ranges::none_of(weights, is_new)) return "";
  if (std::ranges::any_of(
          weights, [&](ValueId id) { return is_of_head(id) && program.value(id).kind == ValueKind::state; }))
    throw Error(ErrorKind::config,
                fmt::format("model.new_head makes the layer {} new, and model.freeze keeps it as it starts",
                            layer.substr(0, layer.size() - 1)));
  std::erase_if(weights, is_of_head);
  return layer;
}

void check_finite(const Safetensors& file, const std::string& path, const std::vector<ValueId>& weights,
                  const Program& program) {
  for (const ValueId id : weights) {
    const std::string& name = program.value(id).name;
    if (!are_finite(to_floats(file.tensors.at(name))))
      throw Error(ErrorKind::data, fmt::format("{}: the tensor {} holds NaN or infinity", path, name));
  }
}

// The file at `path` with torchvision's names, and with as many input channels as `first`, the first weight of a model, has. Adds a line
// for each of the two that it had to change.
Safetensors read_for(const Value& first, const std::string& path, std::vector<std::string>& lines) {
  Safetensors file = read_safetensors(path);
  if (names_of(file) != WeightNames::torchvision) {
    lines.push_back(fmt::format("model.pretrained: {} has the names and shapes of PaddlePaddle", path));
    file = with_context("reading " + path,
                        [&] { return with_names(std::move(file), WeightNames::torchvision); });
  }
  constexpr std::size_t kChannels = 1;  // in the shape of a convolution's weight
  if (first.shape.size() > kChannels)
    if (const std::string line = fit_input_channels(file, first.name, first.shape[kChannels]); !line.empty())
      lines.push_back(fmt::format("model.pretrained: {} ({})", line, path));
  return file;
}

Pretrained load_those_that_fit(const std::string& path, NewHead new_head, const Program& program,
                               Storage& storage) {
  std::vector<std::string> lines;
  const std::vector<ValueId> all = weights_of(program);
  Safetensors file = read_for(program.value(all.front()), path, lines);
  std::vector<ValueId> weights = all;
  const std::string head = new_head == NewHead::automatic ? take_out_new_head(file, program, weights) : "";
  if (!head.empty())
    lines.push_back(fmt::format("model.new_head: the layer {} does not fit {}, and starts new",
                                head.substr(0, head.size() - 1), path));
  check_tensors(file, path, weights, program, head);
  check_finite(file, path, weights, program);
  store_tensors(file, weights, program, storage);
  return {.file = std::move(file),
          .new_weights = std::ssize(all) - std::ssize(weights),
          .lines = std::move(lines)};
}

Safetensors safetensors_of(const PlainTensors& tensors, const Metadata& about) {
  Safetensors file = {.metadata = about};
  file.metadata["format"] = "pt";  // as PyTorch's own tools mark names and layout
  mark_as_ours(file);
  for (const auto& [name, tensor] : tensors)
    file.tensors[name] = {
        .dtype = DType::f32,
        .shape = tensor.shape,
        .bytes = {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float)}};
  return file;
}

}  // namespace

std::vector<ValueId> weights_of(const Program& program) {
  return values_where(program, [&](ValueId id) {
    return program.value(id).kind == ValueKind::parameter || is_of_model(program, id);
  });
}

std::vector<ValueId> running_statistics_of(const Program& program) {
  return values_where(program, [&](ValueId id) { return is_of_model(program, id); });
}

std::vector<ValueId> optimizer_states_of(const Program& program) {
  std::vector<ValueId> others = merged_gradients_of(program);
  for (const auto& other : {states_of_averaging(program), residuals_of(program)})
    others.insert(others.end(), other.begin(), other.end());
  return values_where(program, [&](ValueId id) {
    return is_of_training(program, id) && std::find(others.begin(), others.end(), id) == others.end();
  });
}

PlainTensors read_tensors(const std::vector<ValueId>& ids, const Program& program, const Storage& storage) {
  PlainTensors tensors;
  for (const ValueId id : ids) {
    const Value& value = program.value(id);
    tensors[value.name] = {value.shape, storage.read(value.name)};
  }
  return tensors;
}

std::string format_tensors(const PlainTensors& tensors, const Metadata& about) {
  return format_safetensors(safetensors_of(tensors, about));
}

void mark_as_ours(Safetensors& file) { file.metadata[kWriter] = kOurName; }

void check_tensors(const Safetensors& file, const std::string& path, const std::vector<ValueId>& wanted,
                   const Program& program, std::string_view passed_over) {
  const Mismatch mismatch = compare(file, wanted, program, passed_over);
  if (!mismatch.none()) throw error_of(path, mismatch);
}

void store_tensors(const Safetensors& file, const std::vector<ValueId>& ids, const Program& program,
                   Storage& storage) {
  for (const ValueId id : ids) {
    const std::string& name = program.value(id).name;
    if (storage.has(name)) storage.write(name, to_floats(file.tensors.at(name)));
  }
}

std::optional<Pretrained> load_pretrained(const job::ModelSpec& model, const Program& program,
                                          Storage& storage) {
  if (!model.pretrained) return std::nullopt;
  return with_context("loading model.pretrained", [&] {
    return load_those_that_fit(*model.pretrained, model.new_head, program, storage);
  });
}

std::string first_not_finite(const PlainTensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (!are_finite(tensor.values)) return name;
  return "";
}

void require_own_weights(const std::string& path, const std::string& hint) {
  const auto is_ours = [](int fd) {
    const Metadata found = read_metadata(fd);
    const auto writer = found.find(kWriter);
    return writer != found.end() && writer->second == kOurName;
  };
  require_ours(path, is_ours, hint);
}

void save_weights(const std::string& path, const PlainTensors& weights, const Metadata& about,
                  WeightNames names) {
  if (const std::string name = first_not_finite(weights); !name.empty())
    throw Error(ErrorKind::numerics, fmt::format("{} holds NaN or infinity; {} is not written", name, path),
                "a lower optimizer.learning_rate or a warm-up often helps");
  write_safetensors(path, with_names(safetensors_of(weights, about), names));
}

}  // namespace fleetrun::runtime

// Every op against what PyTorch computed (scripts/make_torch_vectors.py), forward and backward.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/system/environment.h"
#include "runtime/checkpoint/safetensors.h"
#include "support/gradient_check.h"
#include "support/narrow_ops.h"
#include "support/test_device.h"

namespace fleetrun::runtime::torch_vectors_test {
namespace {

using test::Floats;

// Of each tensor's norm. The narrow types also round what the vectors hold in f32.
double tolerance_of(DType type) { return type == DType::f32 ? 1e-4 : 8 * test::rounding_of(type); }

std::vector<std::string> vector_files() {
  std::vector<std::string> files;
  // The build may have gone to another machine, its vectors with it.
  const std::string source =
      Environment::of_this_process().get_or("FLEETRUN_TEST_SOURCE", FLEETRUN_SOURCE_DIR);
  for (const auto& entry : std::filesystem::directory_iterator(source + "/tests/runtime/ops/vectors"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// "x" of "in.x" when the prefix is "in."; empty otherwise.
std::string after(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : "";
}

double distance(const Floats& a, const Floats& b) {
  Floats difference(a.size());
  std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
  return test::norm(difference);
}

// An op as a file describes it: forward, and backward where the file has a gradient to put in. It computes in `type`.
class Replay {
 public:
  Replay(const Safetensors& file, Device& device, DType type)
      : file_(file), type_(type), run_(build(), all_ops(), device) {
    for (const auto& [name, tensor] : file_.tensors) {
      if (const std::string input = after(name, "in."); !input.empty()) set(inputs_.at(input), tensor);
      if (!after(name, "seed.").empty()) set(seed_, tensor);
    }
    run_.run();
  }

  Floats result(const std::string& name) const {
    if (const std::string output = after(name, "out."); !output.empty()) return run_.get(outputs_.at(output));
    return run_.get(gradients_.at(after(name, "grad.")));
  }

 private:
  Program build() {
    Program program;
    Builder builder(program, all_ops());
    Arguments arguments;
    Attributes attributes;
    std::string differentiated;
    std::vector<std::string> wanted;
    for (const auto& [name, tensor] : file_.tensors) {
      if (const std::string output = after(name, "seed."); !output.empty()) differentiated = output;
      if (const std::string output = after(name, "out."); !output.empty()) wanted.push_back(output);
      const std::string input = after(name, "in.");
      if (input.empty()) continue;
      inputs_[input] = tensor.dtype == DType::i32 ? builder.feed(input, tensor.shape, DType::i32)
                                                  : builder.parameter(input, tensor.shape, {});
      arguments.emplace_back(input, in_type(builder, input));
    }
    for (const auto& [name, text] : file_.metadata)
      if (const std::string key = after(name, "attribute."); !key.empty())
        attributes[key] = parse_attribute(text);
    builder.add(
        {.type = op(), .inputs = arguments, .attributes = attributes, .name = "out", .outputs = wanted});
    const OpDef& def = find_op(all_ops(), op());
    const Op made = program.ops.back();
    for (int i = 0; i < static_cast<int>(def.outputs.size()); ++i)
      outputs_[def.output_name(i)] = made.outputs.at(static_cast<std::size_t>(i));
    if (!differentiated.empty()) differentiate(builder, OpView(def, program, made), differentiated);
    for (auto* results : {&outputs_, &gradients_})
      for (auto& [name, id] : *results) id = in_f32(builder, id);
    return program;
  }

  void differentiate(Builder& builder, const OpView& forward, const std::string& output) {
    const Value& y = builder.program().value(outputs_.at(output));
    const DType type = y.dtype;
    seed_ = builder.feed("seed", Shape(y.shape));
    test::RecordedRule rule(builder, forward, output,
                            type == DType::f32 ? seed_ : test::cast(builder, seed_, type));
    find_op(all_ops(), op()).gradient(rule);
    gradients_ = rule.gradients;
  }

  const std::string& op() const { return file_.metadata.at("op"); }

  // The argument, cast where the op takes it in its own type.
  ValueId in_type(Builder& builder, const std::string& input) {
    const ValueId id = inputs_.at(input);
    const bool as_it_is = type_ == DType::f32 || builder.program().value(id).dtype == DType::i32 ||
                          test::stays_wide(op(), input);
    return as_it_is ? id : test::cast(builder, id, type_);
  }

  static ValueId in_f32(Builder& builder, ValueId id) {
    if (id == kNone) return id;
    const DType type = builder.program().value(id).dtype;
    return type == DType::f16 || type == DType::bf16 ? test::cast(builder, id, DType::f32) : id;
  }

  void set(ValueId id, const StoredTensor& tensor) {
    if (tensor.dtype == DType::i32)
      run_.set(id, tensor.as<std::int32_t>());
    else
      run_.set(id, tensor.as<float>());
  }

  const Safetensors& file_;
  DType type_;
  std::map<std::string, ValueId> inputs_, outputs_, gradients_;
  ValueId seed_ = kNone;
  test::ProgramRun run_;
};

void check(const Safetensors& file, Device& device, DType type) {
  const Replay replay(file, device, type);
  for (const auto& entry : file.tensors) {
    const std::string& name = entry.first;
    if (after(name, "out.").empty() && after(name, "grad.").empty()) continue;
    // Rounding makes the largest of some windows equal, and their gradient goes to one of them.
    const bool by_choice =
        file.metadata.count("attribute.kind") == 1 && file.metadata.at("attribute.kind") == "\"max\"";
    if (type != DType::f32 && by_choice && name == "grad.x") continue;
    INFO(name << " in " << describe(type));
    const Floats wanted = entry.second.as<float>();
    const Floats got = replay.result(name);
    REQUIRE(got.size() == wanted.size());
    CHECK(distance(got, wanted) <= tolerance_of(type) * test::norm(wanted));
  }
}

TEST_CASE("every op gives what PyTorch gives, forward and backward, in every type that it computes in") {
  const auto device = test::make_test_device();
  // oneDNN has nothing better than its reference for a convolution in bf16 that has one image of one pixel.
  const auto with_reference = test::named_device({});
  for (const int team : {1, 2}) {
    for (Device* one : {device.get(), with_reference.get()}) one->enter_thread(team);
    for (const std::string& path : vector_files()) {
      INFO(path << ", team of " << team);
      const Safetensors file = read_safetensors(path);
      check(file, *device, DType::f32);
      if (!test::can_be_narrow(file.metadata.at("op"))) continue;
      for (const DType narrow : device->narrow_types()) check(file, *with_reference, narrow);
    }
  }
}

// Ops that no vector covers: each has a test of its own.
const std::set<std::string> kTestedByThemselves = {"adamw",
                                                   "all_reduce",
                                                   "average_parameters",
                                                   "average_weights",
                                                   "broadcast",
                                                   "cast",
                                                   "cast_gradient",
                                                   "check_finite_and_unscale",
                                                   "clip_by_global_norm",
                                                   "clip_by_norm",
                                                   "clip_by_value",
                                                   "crop_mirror_normalize",
                                                   "dgc_exchange",
                                                   "dgc_momentum",
                                                   "dgc_scatter",
                                                   "dgc_select",
                                                   "dropout",
                                                   "fill",
                                                   "gather_parameter",
                                                   "gradient_norms",
                                                   "lamb",
                                                   "lars",
                                                   "merge_gradient",
                                                   "recv",
                                                   "reduce",
                                                   "relu_depthwise",
                                                   "reorder",
                                                   "scale_loss",
                                                   "send",
                                                   "sync_batch_norm",
                                                   "sync_batch_norm_sums",
                                                   "update_loss_scaling",
                                                   "zero_on_overflow"};

TEST_CASE("there are vectors for every op that computes something one can compare") {
  std::set<std::string> covered;
  for (const std::string& path : vector_files()) covered.insert(read_safetensors(path).metadata.at("op"));
  for (const auto& entry : all_ops()) {
    const std::string& name = entry.first;
    INFO(
        "op "
        << name
        << " needs a vector from scripts/make_torch_vectors.py, or a test of its own and its name in kTestedByThemselves");
    const bool gradient_op = name.find("_grad") != std::string::npos;
    const bool fusion =
        name.ends_with("_act") || name.ends_with("_group");  // tested against what it is made of
    CHECK((gradient_op || fusion || kTestedByThemselves.count(name) == 1 || covered.count(name) == 1));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::torch_vectors_test

#include "runtime/checkpoint/weights.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <map>

#include "comm/collective/solo.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/compile/build_program.h"
#include "runtime/data/expect_error.h"
#include "runtime/graph/program_text.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_world.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::weights_test {
namespace {

using Weights = std::map<std::string, std::vector<float>>;

constexpr ModelFacts kFacts = {.input_shape = {3, 12, 12}, .classes = 10};

job::JobSpec lenet_job(std::int64_t seed) {
  job::JobSpec job;
  job.model.name = job::ModelName::lenet;
  job.data.batch_size = 16;  // large enough for blocked layouts
  job.train.seed = seed;
  return job;
}

Weights weights_of(const Trainer& trainer) {
  Weights weights;
  const Program& program = trainer.executor().program();
  for (const ValueId id : weights_of(program))
    weights[program.value(id).name] = trainer.storage().read(program.value(id).name);
  return weights;
}

// What a trainer of this job starts with on every rank.
std::vector<Weights> started(const job::JobSpec& job, int ranks, const ModelFacts& facts = kFacts) {
  std::vector<Weights> weights(static_cast<std::size_t>(ranks));
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, facts, *device, communicator);
    trainer.start_from_pretrained(job);
    trainer.share_parameters();
    weights[static_cast<std::size_t>(communicator.rank())] = weights_of(trainer);
  });
  return weights;
}

void save(const job::JobSpec& job, const std::string& path) {
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  const Trainer trainer(job, kFacts, *device, *solo);
  const Program& program = trainer.executor().program();
  save_weights(path, read_tensors(weights_of(program), program, trainer.storage()));
}

// A file of zeros: name and shape, then what is to be otherwise.
void write_zeros(const std::string& path, const std::map<std::string, Shape>& tensors) {
  const std::string zeros(std::size_t{1} << 20, '\0');
  Safetensors file;
  for (const auto& [name, shape] : tensors)
    file.tensors[name] = {DType::f32, shape,
                          std::string_view(zeros).substr(0, static_cast<std::size_t>(count_of(shape)) * 4)};
  write_safetensors(path, file);
}

job::JobSpec tiny_job(const std::string& pretrained) {
  job::JobSpec job;
  job.model.hidden = {8};
  job.data.batch_size = 2;
  job.model.pretrained = pretrained;
  return job;
}

constexpr ModelFacts kTinyFacts = {.input_shape = {1, 2, 2}, .classes = 4};
const std::map<std::string, Shape> kTiny = {
    {"f1.weight", {8, 4}}, {"f1.bias", {8}}, {"f2.weight", {4, 8}}, {"f2.bias", {4}}};

Error refusal(const std::map<std::string, Shape>& tensors) {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  write_zeros(path, tensors);
  return error_of([&] { started(tiny_job(path), 1, kTinyFacts); });
}

TEST_CASE("saved weights are plain, by PyTorch's names, without optimizer state") {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  save(lenet_job(7), path);
  const Safetensors file = read_safetensors(path);
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : file.tensors) shapes[name] = tensor.shape;
  const std::map<std::string, Shape> wanted = {
      {"c1.weight", {32, 3, 5, 5}}, {"c1.bias", {32}},  {"c2.weight", {64, 32, 5, 5}}, {"c2.bias", {64}},
      {"f1.weight", {512, 576}},    {"f1.bias", {512}}, {"f2.weight", {10, 512}},      {"f2.bias", {10}}};
  CHECK(shapes == wanted);
  const auto started_with = started(lenet_job(7), 1).front();
  for (const auto& [name, values] : started_with) CHECK(file.tensors.at(name).as<float>() == values);
}

TEST_CASE("running statistics are weights, what an optimizer keeps is not") {
  const Program program = parse_program(
      "parameter bn1.weight f32[2] constant 1.0\n"
      "state bn1.running_mean f32[2] constant 0.0\n"
      "state bn1.running_var f32[2] constant 1.0\n"
      "state bn1.weight.velocity f32[2] constant 0.0 of bn1.weight\n",
      all_ops());
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  Storage storage(program, *device, *solo);
  storage.write("bn1.running_mean", {3, 4});
  CHECK_THROWS_WITH_AS(storage.write("bn1.running_var", {1}),
                       "bn1.running_var was given 1 elements, wanted 2", Error);
  const TemporaryFolder folder;
  save_weights(folder / "w", read_tensors(weights_of(program), program, storage));
  const Safetensors file = read_safetensors(folder / "w");
  CHECK(file.tensors.size() == 3);
  CHECK(file.tensors.at("bn1.running_mean").as<float>() == std::vector<float>{3, 4});
  CHECK(file.tensors.count("bn1.weight.velocity") == 0);

  storage.write("bn1.running_mean", {0, std::numeric_limits<float>::quiet_NaN()});
  check_error(ErrorKind::numerics, "bn1.running_mean holds NaN or infinity; ", [&] {
    save_weights(folder / "w", read_tensors(weights_of(program), program, storage));
  });  // the good ones stay

  storage.write("bn1.running_mean", {0, 0});
  load_pretrained({.pretrained = folder / "w"}, program, storage);
  CHECK(storage.read("bn1.running_mean") == std::vector<float>{3, 4});
}

TEST_CASE("every rank starts with the pretrained weights, bit for bit") {
  const TemporaryFolder folder;
  job::JobSpec job = lenet_job(7);
  save(job, folder / "w.safetensors");
  const Weights wanted = started(job, 1).front();
  job.train.seed = 8;
  CHECK(started(job, 1).front() != wanted);
  job.model.pretrained = folder / "w.safetensors";
  for (const Weights& weights : started(job, 2)) CHECK(weights == wanted);
}

TEST_CASE("all tensors that do not fit are reported at once") {
  auto tensors = kTiny;
  tensors.erase("f1.bias");
  tensors["f1.weight"] = {8, 5};
  tensors["fc.weight\x1b[2J"] = {1};
  tensors["bn1.num_batches_tracked"] = {};
  const Error error = refusal(tensors);
  CHECK(error.kind() == ErrorKind::data);
  CHECK(error.message().find(" holds other tensors than the model:\n"
                             "  f1.bias is missing\n"
                             "  \"fc.weight\\u001b[2J\" is unknown to the model\n"
                             "  f1.weight is [8,5], wanted [8,4]") != std::string::npos);
  CHECK(error.message().find("num_batches") == std::string::npos);
  CHECK(error.hint() == "");
  CHECK(error.describe("rank 0").find("while loading model.pretrained") != std::string::npos);
}

TEST_CASE("a last layer for other classes has a hint") {
  auto tensors = kTiny;
  REQUIRE_NOTHROW([&] {
    const TemporaryFolder folder;
    write_zeros(folder / "w", tensors);
    started(tiny_job(folder / "w"), 1, kTinyFacts);
  }());
  tensors["f2.weight"] = {6, 8};
  tensors["f2.bias"] = {6};
  const Error error = refusal(tensors);
  CHECK(error.message().ends_with("\n  f2.weight is [6,8], wanted [4,8]\n  f2.bias is [6], wanted [4]"));
  CHECK(error.hint() ==
        "the last layer of the file is for 6 classes; model.class_dim=6 gives the model as many, and "
        "model.new_head=auto trains a new last layer");
}

// The weights of a job that starts from a file with these tensors, all zeros, and may have a new last layer.
Weights with_new_head(const std::map<std::string, Shape>& tensors) {
  const TemporaryFolder folder;
  write_zeros(folder / "w", tensors);
  job::JobSpec job = tiny_job(folder / "w");
  job.model.new_head = job::NewHead::automatic;
  return started(job, 1, kTinyFacts).front();
}

bool are_zeros(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return value == 0; });
}

TEST_CASE(
    "with model.new_head=auto a last layer that does not fit starts new, and the other layers are loaded") {
  auto tensors = kTiny;
  SUBCASE("for another number of classes") { tensors["f2.weight"] = {6, 8}; }
  SUBCASE("missing in the file") { tensors.erase("f2.weight"), tensors.erase("f2.bias"); }
  SUBCASE("with another layer behind it") { tensors["f2.extra"] = {3}, tensors["f2.bias"] = {6}; }
  const Weights weights = with_new_head(tensors);
  CHECK(are_zeros(weights.at("f1.weight")));
  CHECK(!are_zeros(weights.at("f2.weight")));
  CHECK(!are_zeros(weights.at("f2.bias")));
}

TEST_CASE("with model.new_head=auto a last layer that fits is loaded") {
  const Weights weights = with_new_head(kTiny);
  CHECK(are_zeros(weights.at("f2.weight")));
}

TEST_CASE("with model.new_head=auto the other layers still have to fit") {
  auto tensors = kTiny;
  tensors["f1.weight"] = {9, 4};
  tensors["f2.weight"] = {6, 8};
  const Error error = error_of([&] { with_new_head(tensors); });
  CHECK(
      error.message().ends_with(" holds other tensors than the model:\n  f1.weight is [9,4], wanted [8,4]"));
}

TEST_CASE("a new last layer cannot be frozen") {
  const TemporaryFolder folder;
  auto tensors = kTiny;
  tensors["f2.weight"] = {6, 8};
  write_zeros(folder / "w", tensors);
  job::JobSpec job = tiny_job(folder / "w");
  job.model.new_head = job::NewHead::automatic;
  job.model.freeze = {"f2"};
  const Error error = error_of([&] { started(job, 1, kTinyFacts); });
  CHECK(error.message() == "model.new_head makes the layer f2 new, and model.freeze keeps it as it starts");
}

// What load_pretrained says about the file `w` of the folder, for a job of lenet with these images.
std::vector<std::string> lines_of(const TemporaryFolder& folder, const ModelFacts& facts, Weights& weights) {
  job::JobSpec job = lenet_job(8);
  job.model.pretrained = folder / "w";
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  const Program program = build_evaluation_program(job, facts, all_ops());
  Storage storage(program, *device, *solo);
  storage.initialise(8);
  const std::optional<Pretrained> loaded = load_pretrained(job.model, program, storage);
  REQUIRE(loaded);
  for (const ValueId id : runtime::weights_of(program)) {
    const std::string& name = program.value(id).name;
    weights[name] = storage.read(name);
  }
  return loaded->lines;
}

TEST_CASE("weights for colour images are loaded for grey ones, and a line says what became of them") {
  const TemporaryFolder folder;
  save(lenet_job(7), folder / "w");
  Weights grey, colour;
  CHECK(lines_of(folder, kFacts, colour).empty());
  const std::vector<std::string> lines = lines_of(folder, {.input_shape = {1, 12, 12}, .classes = 10}, grey);
  REQUIRE(lines.size() == 1);
  CHECK(
      lines.front().starts_with("model.pretrained: the layer c1 takes 3 channels, and the images have 1: "));
  CHECK(grey.at("c1.weight").size() * 3 == colour.at("c1.weight").size());
  CHECK(grey.at("c1.bias") == colour.at("c1.bias"));
  CHECK(grey.at("c2.weight") == colour.at("c2.weight"));
}

TEST_CASE("weights under PaddlePaddle's names are loaded bit for bit, and a line says so") {
  const TemporaryFolder folder;
  save(lenet_job(7), folder / "w");
  Weights torchvision, paddle;
  CHECK(lines_of(folder, kFacts, torchvision).empty());
  write_safetensors(folder / "w", with_names(read_safetensors(folder / "w"), WeightNames::paddle));
  CHECK(lines_of(folder, kFacts, paddle) ==
        std::vector<std::string>{"model.pretrained: " + (folder / "w") +
                                 " has the names and shapes of PaddlePaddle"});
  CHECK(paddle == torchvision);
}

TEST_CASE("pretrained weights are finite") {
  const TemporaryFolder folder;
  const std::string zeros(1024, '\0');
  const std::array<float, 4> bad = {0, 0, std::numeric_limits<float>::quiet_NaN(), 0};
  Safetensors file;
  for (const auto& [name, shape] : kTiny)
    file.tensors[name] = {DType::f32, shape,
                          std::string_view(zeros).substr(0, static_cast<std::size_t>(count_of(shape)) * 4)};
  file.tensors["f2.bias"].bytes = {reinterpret_cast<const char*>(bad.data()), sizeof bad};
  write_safetensors(folder / "w", file);
  const Error error = error_of([&] { started(tiny_job(folder / "w"), 1, kTinyFacts); });
  CHECK(error.kind() == ErrorKind::data);
  CHECK(error.message().ends_with("/w: the tensor f2.bias holds NaN or infinity"));
}

TEST_CASE("16-bit weights are widened, whole numbers are refused") {
  const TemporaryFolder folder;
  const std::string zeros(1024, '\0');
  const std::array<std::uint16_t, 4> halves = {0x3c00, 0x4000, 0xbc00, 0};  // 1, 2, -1, 0
  Safetensors file;
  for (const auto& [name, shape] : kTiny)
    file.tensors[name] = {DType::f32, shape,
                          std::string_view(zeros).substr(0, static_cast<std::size_t>(count_of(shape)) * 4)};
  file.tensors["f2.bias"] = {DType::f16, {4}, {reinterpret_cast<const char*>(halves.data()), sizeof halves}};
  write_safetensors(folder / "w", file);
  const Weights weights = started(tiny_job(folder / "w"), 1, kTinyFacts).front();
  CHECK(weights.at("f2.bias") == std::vector<float>{1, 2, -1, 0});
  file.tensors["f2.bias"] = {DType::i32, {4}, std::string_view(zeros).substr(0, 16)};
  write_safetensors(folder / "w", file);
  check_error(ErrorKind::data, "f2.bias is i32, wanted f32, f16 or bf16",
              [&] { started(tiny_job(folder / "w"), 1, kTinyFacts); });
}

}  // namespace
}  // namespace fleetrun::runtime::weights_test

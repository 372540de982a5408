#include "runtime/checkpoint/model_card.h"

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/format.h>

#include "runtime/data/expect_error.h"
#include "runtime/graph/program_text.h"

namespace fleetrun::runtime::model_card_test {
namespace {

job::JobSpec photographs() {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet18;
  job.data.train.augment = job::Augment::random_resized_crop;
  job.data.train.mean = {123.675, 116.28, 103.53};
  job.data.train.deviation = {58.395, 57.12, 57.375};
  return job;
}

constexpr ModelFacts kFacts = {.input_shape = {3, 160, 224}, .classes = 3};

ModelCard card_of_photographs() { return make_model_card(photographs(), kFacts, {"cat", "dög", "\"owl\""}); }

Metadata without(Metadata metadata, const std::string& key) {
  metadata.erase(key);
  return metadata;
}

Metadata with(Metadata metadata, const std::string& key, const std::string& text) {
  metadata[key] = text;
  return metadata;
}

TEST_CASE("a model file says under the keys of a job what its model is and how images are prepared") {
  Metadata metadata = to_metadata(card_of_photographs());
  CHECK_FALSE(metadata.at("fleetrun.version").empty());
  metadata.erase("fleetrun.version");
  CHECK(metadata == Metadata{{"fleetrun.format", "1"},
                             {"model.name", "resnet18"},
                             {"model.class_dim", "3"},
                             {"model.input_shape", "[3, 160, 224]"},
                             {"data.mean", "[123.675, 116.28, 103.53]"},
                             {"data.std", "[58.395, 57.12, 57.375]"},
                             {"data.augment", "resize_crop"},
                             {"class_names", R"(["cat", "dög", "\"owl\""])"},
                             {"train.dtype", "f32"}});
}

TEST_CASE("what is written is read back") {
  ModelCard card = card_of_photographs();
  card.algorithms = {{"conv1", "gemm"}, {"layer1.0.conv1", "winograd"}};
  card.dtype = DType::bf16;
  const ModelCard read = read_model_card(to_metadata(card), "m");
  CHECK(to_metadata(read) == to_metadata(card));
  CHECK(read.facts().input_shape == kFacts.input_shape);
  CHECK(read.facts().classes == 3);
  CHECK(read.mean == card.mean);
  CHECK(read.class_names == card.class_names);
  CHECK(read.algorithms == card.algorithms);
}

TEST_CASE("hunt 15: as many classes as in the pretrained file, but others, are told") {
  const ModelCard card = card_of_photographs();
  const Metadata same = to_metadata(card);
  CHECK(difference_of_classes(same, card).empty());
  CHECK(difference_of_classes({}, card).empty());
  CHECK(difference_of_classes(with(same, "model.class_dim", "4"), card).empty());
  const std::string line = difference_of_classes(with(same, "class_names", R"(["jay", "owl", "tit"])"), card);
  CHECK(line.starts_with("warning: model.pretrained was trained for the classes "));
  CHECK(line.find(R"(["jay", "owl", "tit"])") < line.find("and data.train has "));
}

TEST_CASE("hunt 29: a warning names a pretrained model that may have seen the samples of the evaluation") {
  ModelCard card = card_of_photographs();
  card.split = SplitFacts{.share = 0.1, .seed = 1, .train = 90, .evaluation = 10, .digest = "00ff"};
  const Metadata was = to_metadata(card);
  CHECK(difference_of_split(was, card).empty());
  CHECK(difference_of_split({}, card).empty());
  card.split->seed = 2;
  CHECK(
      difference_of_split(was, card) ==
      "warning: model.pretrained was trained with train.seed 1, the job has 2: it may be evaluated here on samples that it was trained on; "
      "train.seed=1 sets aside the same samples as then");
  card.split = SplitFacts{
      .share = 0.1, .seed = 1, .train = 91, .evaluation = 10, .digest = "01ff"};  // one picture more
  CHECK(
      difference_of_split(was, card) ==
      "warning: model.pretrained was trained with 90 samples to train on and 10 to evaluate on, now there are 91 and 10: it may be "
      "evaluated here on samples that it was trained on");
  const Metadata without = with(was, "data.split", R"({"share": 0})");
  CHECK(difference_of_split(without, card).find("was trained without data.split, the job has 0.1: it may") !=
        std::string::npos);
  CHECK(
      difference_of_split(with(was, "class_names", R"(["jay", "owl", "tit"])"), card).empty());  // other data
  card.split = SplitFacts{};
  CHECK(difference_of_split(was, card).empty());
}

TEST_CASE("a model file says which samples its training has set aside, or that it does not know") {
  ModelCard card = card_of_photographs();
  CHECK_FALSE(read_model_card(to_metadata(card), "m").split);
  card.split = SplitFacts{};
  CHECK(to_metadata(card).at("data.split") == R"({"share": 0})");
  CHECK(read_model_card(to_metadata(card), "m").split == card.split);
  card.split = SplitFacts{.share = 0.1, .seed = 1, .train = 90, .evaluation = 10, .digest = "00ff"};
  CHECK(read_model_card(to_metadata(card), "m").split == card.split);
  check_error(ErrorKind::data, "the metadata of m are damaged: data.split: found ",
              [&] { read_model_card(with(to_metadata(card), "data.split", "{}"), "m"); });
}

TEST_CASE("an mlp is built from its hidden layers, and images may be grey") {
  job::JobSpec job;
  job.model.hidden = {8, 4};
  job.data.train.mean = {0};
  job.data.train.deviation = {255};
  const Metadata metadata = to_metadata(make_model_card(job, {{1, 4, 4}, 20}, {}));
  CHECK(metadata.at("model.hidden") == "[8, 4]");
  CHECK_FALSE(metadata.contains("class_names"));
  const ModelCard read = read_model_card(metadata, "m");
  CHECK(read.model.hidden == std::vector<int>{8, 4});
  CHECK(read.class_names.empty());
}

TEST_CASE("images are prepared as for the test pass, which changes nothing at random") {
  job::JobSpec job = photographs();
  const auto augment_of = [&] { return make_model_card(job, kFacts, {}).augment; };
  CHECK(augment_of() == job::Augment::resize_crop);
  job.data.train.augment = job::Augment::crop_flip;
  CHECK(augment_of() == job::Augment::none);
  job.data.test.emplace().augment = job::Augment::resize_crop;
  job.data.test->mean = {1, 2, 3};
  CHECK(augment_of() == job::Augment::resize_crop);
  CHECK(make_model_card(job, kFacts, {}).mean == std::vector<double>{1, 2, 3});
}

TEST_CASE("the programs tell the type of the training and the algorithms of the test pass") {
  const Program training = parse_program(
      "activation a bf16[2,3]\nparameter w bf16[4,3] constant 0.0\nactivation y bf16[2,4]\nfc x=a w=w -> y=y {} forward\n",
      all_ops());
  const Program evaluation = parse_program(
      "feed a f32[1,3,8,8]\nparameter w f32[4,3,3,3] constant 0.0\nactivation c f32[1,4,6,6]\n"
      "conv2d x=a w=w -> y=c {algorithm=\"winograd\"; dilations=[1,1]; groups=1; paddings=[0,0,0,0]; strides=[1,1]} forward\n",
      all_ops());
  ModelCard card = card_of_photographs();
  add_facts_of_programs(card, training, evaluation);
  CHECK(card.dtype == DType::bf16);
  CHECK(card.algorithms == std::map<std::string, std::string>{{"c", "winograd"}});
}

TEST_CASE("a file without metadata, or with a part of them, gets an error that says how to supply them") {
  const Metadata metadata = to_metadata(card_of_photographs());
  const Error bare = error_of([] { read_model_card({{"format", "pt"}}, "w.safetensors"); });
  CHECK(bare.kind() == ErrorKind::data);
  CHECK(
      bare.message() ==
      "w.safetensors has weights only: its metadata does not say of which model they are, of which classes, and how "
      "images are prepared");
  CHECK(bare.hint() == "--job JOB.json takes it from the job of the training");
  check_error(ErrorKind::data, "m has no metadata for model.class_dim",
              [&] { read_model_card(without(metadata, "model.class_dim"), "m"); });
}

TEST_CASE("damaged metadata are named, and those of a newer fleetrun are refused") {
  const Metadata metadata = to_metadata(card_of_photographs());
  check_error(ErrorKind::data, "model.name: found \"resnet19\"",
              [&] { read_model_card(with(metadata, "model.name", "resnet19"), "m"); });
  check_error(ErrorKind::data, "the metadata of m are damaged: ", [&] {
    read_model_card(with(metadata, "model.input_shape", "[3,"), "m");
  });
  check_error(ErrorKind::data, "2 channels, wanted 3 for colour or 1 for grey",
              [&] { read_model_card(with(metadata, "model.input_shape", "[2, 4, 4]"), "m"); });
  check_error(ErrorKind::data, "data.train.mean",
              [&] { read_model_card(with(metadata, "data.mean", "[1]"), "m"); });
  check_error(ErrorKind::protocol, "m has metadata of format 2, and this fleetrun reads up to format 1",
              [&] { read_model_card(with(metadata, "fleetrun.format", "2"), "m"); });
}

TEST_CASE("names, algorithms, type and format that no fleetrun writes are damaged metadata") {
  const Metadata metadata = to_metadata(card_of_photographs());
  const auto complaint_about = [&](const std::string& key, const std::string& text) {
    const Error error = error_of([&] { read_model_card(with(metadata, key, text), "m"); });
    CHECK(error.kind() == ErrorKind::data);
    const std::string start = "the metadata of m are damaged: ";
    CHECK_MESSAGE(error.message().starts_with(start), error.message());
    return error.message().substr(std::min(start.size(), error.message().size()));
  };
  const std::string wanted_names = ", wanted a list of different names, at most 3";
  CHECK(complaint_about("class_names", "xx") == "class_names: found \"xx\"" + wanted_names);
  CHECK(complaint_about("class_names", R"(["a\u0000b"])") ==
        R"(class_names: found "[\"a\\u0000b\"]")" + wanted_names);
  CHECK(complaint_about("class_names", "[1, 2, 3]") == "class_names: found \"[1, 2, 3]\"" + wanted_names);
  CHECK(complaint_about("class_names", R"(["a", "b", "c", "d"])") ==
        R"(class_names: found "[\"a\", \"b\", \"c\", \"d\"]")" + wanted_names);
  CHECK(complaint_about("class_names", R"(["a", "b", "a"])") ==
        R"(class_names: found "[\"a\", \"b\", \"a\"]")" + wanted_names);
  for (const char* text : {"[", "[\"gemm\"]", "{\"conv1\": 1}"})
    CHECK(complaint_about("algorithms", text).ends_with(", wanted an object of strings"));
  CHECK(complaint_about("train.dtype", "i32") ==
        R"(train.dtype: found "i32", wanted one of "f32", "f16", "bf16")");
  for (const char* text : {"x", "-1", "0", "1.5"})
    CHECK(complaint_about("fleetrun.format", text) ==
          fmt::format("fleetrun.format: found \"{}\", wanted a whole number of at least 1", text));
}

TEST_CASE("the last classes of a model need no names") {
  const Metadata metadata = to_metadata(card_of_photographs());
  CHECK(read_model_card(with(metadata, "class_names", R"(["a", "b"])"), "m").class_names ==
        std::vector<std::string>{"a", "b"});
}

}  // namespace
}  // namespace fleetrun::runtime::model_card_test

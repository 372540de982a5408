#include "job/checks/complete_spec.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "job/job_text.h"
#include "job/spec/data_set_facts.h"

namespace fleetrun::job::complete_spec_test {
namespace {

std::string job_on(const std::string& train, const std::string& model = "{\"name\": \"lenet\"}",
                   const std::string& more = "") {
  return "{\"model\": " + model + ",\n\"data\": {\"train\":\n" + train + "\n" + more + "}}";
}

TEST_CASE("channels, mean and std follow from the format") {
  const DataSetSpec idx = parse(job_on(R"({"format": "idx", "images": "i", "labels": "l"})")).spec.data.train;
  CHECK(idx.channels == 1);
  CHECK(parse(job_on(R"({"format": "idx", "images": "i", "labels": "l", "channels": 3})"))
            .spec.data.train.channels == 3);
  CHECK(idx.mean == std::vector<double>{0});
  CHECK(idx.deviation == std::vector<double>{255});
  const DataSetSpec cifar = parse(job_on(R"({"format": "cifar_bin", "path": "p"})")).spec.data.train;
  CHECK(cifar.channels == 3);
  CHECK(cifar.mean == std::vector<double>{0, 0, 0});
  CHECK(cifar.deviation == std::vector<double>{255, 255, 255});
  const DataSetSpec grey =
      parse(job_on(R"({"format": "image_folder", "path": "p", "channels": 1, "mean": [33], "std": [78.5]})"))
          .spec.data.train;
  CHECK(grey.channels == 1);
  CHECK(grey.mean == std::vector<double>{33});
  CHECK(grey.deviation == std::vector<double>{78.5});
}

std::string with_test(const std::string& train_more, const std::string& test_more) {
  return job_on(R"({"format": "image_folder", "path": "p")" + train_more + "}", R"({"name": "lenet"})",
                R"(, "test": {"format": "image_folder", "path": "q")" + test_more + "}");
}

TEST_CASE("row 6: the test samples get the mean and std of the training samples, and others are noted") {
  const std::string values = R"(, "mean": [1, 2, 3], "std": [4, 5, 6])";
  const ParsedJob inherited = parse(with_test(values, ""));
  CHECK(inherited.spec.data.test->mean == std::vector<double>{1, 2, 3});
  CHECK(inherited.spec.data.test->deviation == std::vector<double>{4, 5, 6});
  CHECK(inherited.notes.empty());
  CHECK(parse(with_test(values, values)).notes.empty());
  const ParsedJob other = parse(with_test(values, R"(, "mean": [1, 2, 9])"));
  CHECK(other.spec.data.test->mean == std::vector<double>{1, 2, 9});
  CHECK(other.spec.data.test->deviation == std::vector<double>{4, 5, 6});
  CHECK(
      other.notes ==
      std::vector<std::string>{
          "data.test.mean differs from data.train.mean: the model is evaluated on pixels of another range than it is trained on"});
}

TEST_CASE("hunt 15: test samples that are cut at random are noted") {
  const ParsedJob job = parse(with_test("", R"(, "augment": "random_resized_crop")"));
  CHECK(
      job.notes ==
      std::vector<std::string>{
          "data.test.augment is random: the model is evaluated on random parts of the images; resize_crop is the same without chance"});
  CHECK(parse(with_test("", R"(, "augment": "resize_crop")")).notes.empty());
}

TEST_CASE("mean and std have a number for each channel") {
  CHECK(complaint(job_on(R"({"format": "image_folder", "path": "p", "mean": [1], "std": [1, 2, 3, 4]})")) ==
        "a.json:3:49: data.train.mean: found a list of 1, wanted 3: the samples have 3 channels\n"
        "a.json:3:61: data.train.std: found a list of 4, wanted 3: the samples have 3 channels");
  CHECK(complaint(job_on(R"({"format": "image_folder", "path": "p", "channels": 2})")) ==
        "a.json:3:53: data.train.channels: found 2, wanted 3 for colour or 1 for grey");
}

TEST_CASE("generated samples are grey or have colours as others do, and are no larger than an image may be") {
  const auto complaint_about = [](const std::string& shape) {
    return complaint(job_on(R"({"format": "synthetic", "samples": 9, "classes": 7, "shape": )" + shape + "}",
                            R"({"name": "mlp"})"));
  };
  for (const int channels : {2, 4, 5})
    CHECK(complaint_about(fmt::format("[{}, 8, 8]", channels)) ==
          fmt::format("a.json:3:62: data.train.shape: found {} channels, wanted 3 for colour or 1 for grey",
                      channels));
  CHECK(complaint_about("[3, 65536, 65536]") ==
        "a.json:3:62: data.train.shape: found 65536x65536 pixels, wanted at most 67108864");
  for (const char* good : {"[1, 8, 8]", "[3, 8192, 8192]"}) CHECK(complaint_about(good) == "");
}

TEST_CASE("keys of another format are not for this one") {
  CHECK(
      complaint(job_on(R"({"format": "cifar_bin", "path": "p", "images": "i", "shape": [1, 2, 3]})")) ==
      "a.json:3:48: data.train.images: found \"i\", wanted nothing: data.train.format is \"cifar_bin\", which does not use it\n"
      "a.json:3:62: data.train.shape: found a list of 3, wanted nothing: data.train.format is \"cifar_bin\", which does not use it");
  CHECK(
      complaint(job_on(R"({"format": "synthetic"})")) ==
      "a.json:3:1: data.train.samples: found nothing, wanted a whole number of at least 1, as data.train.format is \"synthetic\"\n"
      "a.json:3:1: data.train.shape: found nothing, wanted a list of 3 whole numbers from 1 to 65536, as "
      "data.train.format is \"synthetic\"\n"
      "a.json:3:1: data.train.classes: found nothing, wanted a whole number from 2 to 1000000, as data.train.format is \"synthetic\"");
}

TEST_CASE("the model has room for the classes of the data, and its input their shape") {
  const std::string set = R"({"format": "synthetic", "samples": 9, "shape": [3, 8, 8], "classes": 7})";
  CHECK(complaint(job_on(set, R"({"name": "mlp", "class_dim": 6, "input_shape": [3, 8, 9]})")) ==
        "a.json:1:40: model.class_dim: found 6, wanted at least 7: data.train has 7 classes\n"
        "a.json:1:58: model.input_shape: found [3, 8, 9], wanted [3, 8, 8]: the samples of data.train have "
        "that shape");
  CHECK(complaint(job_on(set, R"({"name": "mlp", "class_dim": 8, "input_shape": [3, 8, 8]})")) == "");
  CHECK(complaint(job_on(R"({"format": "idx", "images": "i", "labels": "l"})",
                         R"({"name": "mlp", "input_shape": [3, 8, 8]})")) ==
        "a.json:1:42: model.input_shape: found 3 channels, wanted 1 as data.train has");
}

TEST_CASE("a key that is wrong itself starts no further complaints") {
  CHECK(complaint(job_on(R"({"format": "synthetic", "samples": 9, "shape": 3, "classes": 7, "mean": [1, 2]})",
                         R"({"name": "mlp", "input_shape": [3, 8, 8]})")) ==
        "a.json:3:48: data.train.shape: found 3, wanted a list of 3 whole numbers from 1 to 65536");
  CHECK(
      complaint(good_job(R"("optimizer": {"learning_rate": {"name": "cosine", "base": -1, "end": 0.5}})")) ==
      "a.json:4:59: optimizer.learning_rate.base: found -1, wanted a number above 0");
}

TEST_CASE("the test set fits the training set") {
  CHECK(complaint(job_on(R"({"format": "synthetic", "samples": 9, "shape": [1, 8, 8], "classes": 4})",
                         "{\"name\": \"mlp\"}", R"(, "test": {"format": "cifar_bin", "path": "p"})")) ==
        "a.json:4:11: data.test: found samples with 3 channels, wanted 1 as data.train has\n"
        "a.json:4:11: data.test: found 10 classes, wanted at most 4 as data.train has");
}

TEST_CASE("schedules whose parts contradict each other") {
  const auto rate = [](const std::string& schedule) {
    return complaint(
        good_job("\"optimizer\": {\"learning_rate\":\n" + schedule + "}, \"train\": {\"max_steps\": 50}"));
  };
  CHECK(
      rate(R"({"name": "cosine", "warmup_steps": 50})") ==
      "a.json:5:36: optimizer.learning_rate.warmup_steps: found 50, wanted fewer than train.max_steps, which is 50");
  CHECK(
      rate(R"({"name": "polynomial", "base": 0.1, "end": 0.2})") ==
      "a.json:5:44: optimizer.learning_rate.end: found 0.2, wanted less than optimizer.learning_rate.base, which is 0.1");
  CHECK(
      rate(R"({"name": "constant", "end": 0, "unit": "epoch"})") ==
      "a.json:5:29: optimizer.learning_rate.end: found 0, wanted nothing: optimizer.learning_rate.name is \"constant\", "
      "which does not use it\n"
      "a.json:5:40: optimizer.learning_rate.unit: found \"epoch\", wanted nothing: "
      "optimizer.learning_rate.name is \"constant\", which does not use it");
  CHECK(
      rate(R"({"name": "piecewise", "values": [1]})") ==
      "a.json:5:1: optimizer.learning_rate.boundaries: found nothing, wanted a list of 1 or more whole numbers of at "
      "least 1, as optimizer.learning_rate.name is \"piecewise\"");
}

TEST_CASE("variables have names, and those of fleetrun itself are not for jobs") {
  CHECK(
      complaint(good_job(R"("env": {"9A": "x", "A B": "x", "FLEETRUN_RANK": "0", "_ok1": "x"})")) ==
      "a.json:4:15: env.9A: found no name of a variable, wanted letters, digits and _\n"
      "a.json:4:27: env.\"A B\": found no name of a variable, wanted letters, digits and _\n"
      "a.json:4:49: env.FLEETRUN_RANK: found a reserved name, wanted one that does not begin with FLEETRUN_; set this one in fleetrun's own environment");
}

TEST_CASE("a share of the training samples may take the place of a test set, not stand beside it") {
  const std::string split = R"(, "split": 0.25)";
  const JobSpec spec =
      parse(job_on(R"({"format": "image_folder", "path": "p", "augment": "random_resized_crop"})",
                   R"({"name": "lenet"})", split))
          .spec;
  CHECK(spec.data.split == 0.25);
  CHECK_FALSE(spec.data.test);
  CHECK(evaluated_set(spec.data)->augment == Augment::resize_crop);
  CHECK(evaluated_set(spec.data)->path == spec.data.train.path);
  CHECK_FALSE(evaluated_set(parse(good_job()).spec.data));
  CHECK(
      complaint(job_on(R"({"format": "image_folder", "path": "p"})", R"({"name": "lenet"})",
                       R"(, "test": {"format": "image_folder", "path": "q"})" + split)) ==
      "a.json:4:61: data.split: found 0.25 beside data.test, wanted one of the two (data.test=null drops data.test)");
  for (const std::string share : {"0", "1", "-0.5"})
    CHECK(complaint(good_job(), {"data.split=" + share})
              .starts_with("command line: data.split: found " + share + ", wanted"));
  CHECK(parse(good_job("\"train\": {\"eval_every\": 2}"), {"data.split=0.1"}).notes.empty());
}

TEST_CASE("evaluation without a test set is noted") {
  CHECK(parse(good_job("\"train\": {\"eval_every\": 2}")).notes ==
        std::vector<std::string>{"train.eval_every has no effect without data.test or data.split"});
  CHECK(parse(good_job("\"train\": {\"eval_every\": 0}")).notes.empty());
}

TEST_CASE("settings of a strategy that is off have no effect, which a note says") {
  const std::string job = good_job(R"("strategy": {"lars_configs": {"lars_coeff": 0.1}, "amp": true,
"amp_configs": {"incr_ratio": 3}})");
  CHECK(parse(job, {"strategy.gradient_merge_configs.k_steps=4"}).notes ==
        std::vector<std::string>{
            "strategy.gradient_merge_configs of command line has no effect: strategy.gradient_merge is false",
            "strategy.lars_configs of /jobs/a.json:4:30 has no effect: strategy.lars is false"});
  CHECK(parse(job, {"strategy.lars=true"}).notes.empty());
}

TEST_CASE("the groups of a hierarchical all-reduce have no effect without it, which a note says") {
  const std::string size = "strategy.hierarchical_allreduce_inter_nranks=2";
  CHECK(
      parse(good_job(), {size}).notes ==
      std::vector<std::string>{
          "strategy.hierarchical_allreduce_inter_nranks of command line has no effect: strategy.use_hierarchical_allreduce is not true"});
  CHECK(parse(good_job(), {size, "strategy.use_hierarchical_allreduce=true"}).notes.empty());
}

}  // namespace
}  // namespace fleetrun::job::complete_spec_test

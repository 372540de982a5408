#include "job/read/overrides.h"

#include <doctest/doctest.h>

#include "job/job_text.h"
#include "job/keys/job_keys.h"

namespace fleetrun::job::overrides_test {
namespace {

TEST_CASE("values on the command line are JSON where they can be, else text") {
  const JobSpec spec =
      parse(good_job(), {"train.epochs=7", "data.shuffle=false", "model.name=mlp", "model.hidden=[8, 4]",
                         "optimizer.learning_rate={\"name\": \"cosine\", \"base\": 0.5}"})
          .spec;
  CHECK(spec.train.epochs == 7);
  CHECK_FALSE(spec.data.shuffle);
  CHECK(spec.model.name == ModelName::mlp);
  CHECK(spec.model.hidden == std::vector<int>{8, 4});
  CHECK(spec.optimizer.learning_rate.name == ScheduleName::cosine);
  CHECK(spec.optimizer.learning_rate.base == 0.5);
}

TEST_CASE("where a text is wanted, everything is one") {
  const JobSpec spec =
      parse(good_job(), {"env.A=1", "env.B=true", "env.C=\"quoted\"", "env.D=a=b", "output.dir=2021"}).spec;
  CHECK(spec.env ==
        std::map<std::string, std::string>{{"A", "1"}, {"B", "true"}, {"C", "quoted"}, {"D", "a=b"}});
  CHECK(spec.output.dir == "/jobs/2021");
}

TEST_CASE("null takes a value of the file away, as if the key were not written") {
  const std::string text = good_job(
      "\"train\": {\"epochs\": 3}, \"checkpoint\": {\"dir\": \"saved\", \"keep\": 2},"
      " \"output\": {\"trace\": [1, 2]}, \"strategy\": {\"lars\": null}, \"optimizer\": null");
  const JobSpec spec = parse(text, {"checkpoint.dir=null", "output.trace=null", "train.epochs=null",
                                    "train.max_steps=5", "optimizer.name=adam"})
                           .spec;
  CHECK_FALSE(spec.checkpoint.dir);
  CHECK_FALSE(spec.output.trace);
  CHECK(spec.train.max_steps == 5);
  CHECK(spec.optimizer.name == OptimizerName::adam);
  CHECK(parse(good_job(), {"output.dir=\"null\"", "env.A=null"}).spec.output.dir == "/jobs/null");
  CHECK(complaint(good_job(), {"train.epoch=null"}) ==
        "command line: train.epoch: found an unknown key; did you mean \"epochs\"?");
  CHECK(complaint(good_job(), {"model.name=null"})
            .starts_with("a.json:2:10: model.name: found nothing, wanted one of"));
}

TEST_CASE("the last value of a key wins, and all win over the file") {
  CHECK(
      parse(good_job("\"train\": {\"epochs\": 3}"), {"train.epochs=4", "train.epochs=5"}).spec.train.epochs ==
      5);
}

TEST_CASE("objects that the file does not have are made, a plain number for a rate becomes one") {
  CHECK(parse(good_job(), {"train.log_every=2"}).spec.train.log_every == 2);
  const std::string job = good_job("\"optimizer\": {\"learning_rate\": 0.25}");
  const ScheduleSpec rate =
      parse(job, {"optimizer.learning_rate.warmup_steps=9"}).spec.optimizer.learning_rate;
  CHECK(rate.base == 0.25);
  CHECK(rate.warmup_steps == 9);
  CHECK(parse(job, {"optimizer.learning_rate=0.5"}).spec.optimizer.learning_rate.base == 0.5);
}

TEST_CASE("a plain number that replaces a whole schedule is noted") {
  const std::string job =
      good_job("\"optimizer\": {\"learning_rate\": {\"name\": \"cosine\", \"base\": 0.1}}");
  const ParsedJob changed = parse(job, {"optimizer.learning_rate=0.05"});
  CHECK(changed.spec.optimizer.learning_rate.name == ScheduleName::constant);
  CHECK(changed.notes ==
        std::vector<std::string>{
            "optimizer.learning_rate of the command line replaces all of optimizer.learning_rate "
            "of /jobs/a.json:4:32; optimizer.learning_rate.base=0.05 changes only base"});
  CHECK(parse(job, {"optimizer.learning_rate.base=0.05"}).notes.empty());
  const std::string plain = good_job("\"optimizer\": {\"learning_rate\": {\"base\": 0.1}}");
  CHECK(parse(plain, {"optimizer.learning_rate=0.05"}).notes.empty());
  const std::string twice = "optimizer.learning_rate";
  CHECK(parse(good_job(), {twice + ".name=cosine", twice + ".warmup_steps=4", twice + "=0.2"}).notes ==
        std::vector<std::string>{
            "optimizer.learning_rate of the command line replaces all of optimizer.learning_rate "
            "of the words before it; optimizer.learning_rate.base=0.2 changes only base"});
  CHECK(parse(plain, {twice + "=0.3", twice + "=0.2"}).notes.empty());
}

TEST_CASE("an object on the command line that drops other values of the file is noted") {
  const std::string job = good_job("\"train\": {\"epochs\": 3, \"log_every\": 9}");
  const ParsedJob changed = parse(job, {"train={\"log_every\": 3}"});
  CHECK(changed.spec.train.epochs.value_or(1) != 3);
  CHECK(changed.notes ==
        std::vector<std::string>{"train of the command line replaces all of train of /jobs/a.json:4:10; "
                                 "train.log_every=VALUE changes only log_every"});
  CHECK(parse(job, {"train={\"log_every\": 3, \"epochs\": 4}"}).notes.empty());
  CHECK(parse(job, {"train={}"}).notes.front().ends_with("; train.KEY=VALUE changes only KEY"));
  CHECK(parse(good_job(), {"train={\"log_every\": 3}"}).notes.empty());
}

TEST_CASE("an object on the command line that drops values of earlier words is noted") {
  const std::string replaced = "train of the command line replaces all of train of the words before it; ";
  CHECK(parse(good_job(), {"train.epochs=7", "train={\"log_every\": 3}"}).notes ==
        std::vector<std::string>{replaced + "train.log_every=VALUE changes only log_every"});
  CHECK(parse(good_job(), {"train={\"log_every\": 3}", "train={\"epochs\": 2}"}).notes ==
        std::vector<std::string>{replaced + "train.epochs=VALUE changes only epochs"});
  CHECK(parse(good_job(), {"train={\"epochs\": 3}", "train.epochs=null", "train={\"log_every\": 3}"})
            .notes.empty());
  const std::string job = good_job("\"optimizer\": {\"learning_rate\": 0.25}");
  CHECK(parse(job, {"optimizer.learning_rate.warmup_steps=3", "optimizer.learning_rate=0.2"}).notes ==
        std::vector<std::string>{
            "optimizer.learning_rate of the command line replaces all of optimizer.learning_rate "
            "of the words before it; optimizer.learning_rate.base=0.2 changes only base"});
}

TEST_CASE("an object below an object, a plain number and variables are lost with a note, too") {
  const std::string job = good_job(
      "\"optimizer\": {\"learning_rate\": {\"name\": \"cosine\", \"base\": 0.25}}, \"env\": {\"A_TOKEN\": \"a\"}");
  CHECK(parse(job, {"optimizer={\"learning_rate\": {\"base\": 0.5}}"}).notes.size() == 1);
  CHECK(parse(job, {"env={\"B_TOKEN\": \"hunter\"}"}).notes ==
        std::vector<std::string>{"env of the command line replaces all of env of /jobs/a.json:4:74; "
                                 "env.B_TOKEN=VALUE changes only B_TOKEN"});
  const std::string plain = good_job("\"optimizer\": {\"learning_rate\": 0.25}");
  CHECK(parse(plain, {"optimizer.learning_rate={\"name\": \"cosine\"}"}).notes.size() == 1);
  CHECK(parse(plain, {"optimizer={\"learning_rate\": {\"base\": 0.5}}"}).notes.empty());
}

TEST_CASE("max_steps on the command line takes the place of epochs in the file, and the other way round") {
  const ParsedJob by_steps = parse(good_job("\"train\": {\"epochs\": 3}"), {"train.max_steps=10"});
  CHECK(by_steps.spec.train.max_steps == 10);
  CHECK_FALSE(by_steps.spec.train.epochs.has_value());
  CHECK(by_steps.notes ==
        std::vector<std::string>{
            "train.max_steps of the command line replaces train.epochs of /jobs/a.json:4:21"});
  const ParsedJob by_epochs = parse(good_job("\"train\": {\"max_steps\": 3}"), {"train.epochs=10"});
  CHECK(by_epochs.spec.train.epochs == 10);
  CHECK_FALSE(by_epochs.spec.train.max_steps.has_value());
  CHECK(complaint(good_job(), {"train.max_steps=10", "train.epochs=1"}) ==
        "command line: train.epochs: found 1 beside train.max_steps at command line, wanted one of the two");
}

// A good job with one more member in the section data.
std::string job_with_data(const std::string& member, const std::string& more = "") {
  std::string text = good_job(more);
  const std::string end_of_set = "\"classes\": 10}";
  return text.insert(text.find(end_of_set) + end_of_set.size(), ", " + member);
}

TEST_CASE("of every pair of keys that exclude each other the command line's replaces the file's") {
  const Key keys = job_keys();
  int pairs = 0;
  for_each_key(keys, [&](const std::string& path, const Key& key) {
    if (key.rules.excludes.empty()) return;
    ++pairs;
    const std::string other = key.rules.excludes;
    const std::size_t dot = other.find('.');
    const std::string section = other.substr(0, dot), member = "\"" + other.substr(dot + 1) + "\": 7";
    const ParsedJob job =
        parse(section == "data" ? job_with_data(member) : good_job("\"" + section + "\": {" + member + "}"),
              {path + "=9"});
    CHECK(job.notes.front().starts_with(path + " of the command line replaces " + other + " of "));
    for (const KeyValue& value : job.values) {
      if (value.key == path) CHECK((value.value == "9" && value.origin == "command line"));
      if (value.key == other) CHECK((value.value == "null" && value.origin.starts_with("default: ")));
    }
  });
  CHECK(pairs == 4);  // epochs and max_steps, global_batch and batch_size, from both sides
}

TEST_CASE("a job has a global batch or a batch size, whichever section comes first") {
  const ParsedJob plain = parse(good_job(""));
  CHECK(plain.spec.data.batch_size == 32);
  CHECK_FALSE(plain.spec.train.global_batch.has_value());
  CHECK(complaint(job_with_data("\"batch_size\": 8", "\"train\": {\"global_batch\": 64}")) ==
        "a.json:4:27: train.global_batch: found 64 beside data.batch_size at a.json:3:110, wanted "
        "one of the two");
  CHECK(complaint(good_job(), {"train.global_batch=64", "data.batch_size=8"}) ==
        "command line: data.batch_size: found 8 beside train.global_batch at command line, wanted one of the "
        "two");
  CHECK(complaint(good_job(), {"train.global_batch=0"}) ==
        "command line: train.global_batch: found 0, wanted a whole number of at least 1");
}

TEST_CASE("a global batch is refused beside gradients that grow with the number of ranks") {
  const std::string words =
      complaint(good_job(), {"train.global_batch=64", "strategy.build_strategy.gradient_scale_strategy=One"});
  CHECK(words.find("train.global_batch: found 64 with strategy.build_strategy.gradient_scale_strategy One, "
                   "wanted data.batch_size or gradient_scale_strategy CoeffNumDevice") != std::string::npos);
}

TEST_CASE("a training that the command line shortens does not fight what the file says about later steps") {
  const std::string job = good_job(
      "\"optimizer\": {\"learning_rate\": {\"base\": 0.1, \"warmup_steps\": 200}}, "
      "\"train\": {\"epochs\": 3}, \"output\": {\"trace\": [30, 40]}");
  CHECK(
      parse(job, {"train.max_steps=20"}).notes ==
      std::vector<std::string>{
          "train.max_steps of the command line replaces train.epochs of /jobs/a.json:4:89",
          "optimizer.learning_rate.warmup_steps is 200: the training ends before, after the 20 steps of the command line",
          "output.trace begins at step 30: the training ends before, after the 20 steps of the command line"});
  CHECK(
      complaint(good_job(), {"train.max_steps=20", "optimizer.learning_rate.warmup_steps=200"}) ==
      "command line: optimizer.learning_rate.warmup_steps: found 200, wanted fewer than train.max_steps, which is 20");
}

TEST_CASE("what the file says for another choice than the command line's is noted, not refused") {
  const ParsedJob job = parse(good_job("\"optimizer\": {\"momentum\": 0.5}"), {"optimizer.name=sgd"});
  CHECK(job.notes == std::vector<std::string>{
                         "optimizer.momentum is not used: optimizer.name is \"sgd\" on the command line"});
  CHECK(
      complaint(good_job("\"optimizer\": {\"name\": \"sgd\"}"), {"optimizer.momentum=0.5"}) ==
      "command line: optimizer.momentum: found 0.5, wanted nothing: optimizer.name is \"sgd\", which does not use it");
}

TEST_CASE("an empty checkpoint.resume is not a path") {
  CHECK(complaint(good_job(), {"checkpoint.resume="}) ==
        "command line: checkpoint.resume: found \"\", wanted auto, never or the path of a checkpoint");
}

TEST_CASE("problems of the command line come after those of the file, in its order") {
  CHECK(
      complaint(good_job("\"device\": \"tpu\""),
                {"train.epoch=3", "model.name=lenett", "train.epochs.a=3", "checkpoint.keep=0",
                 "optimizer.learning_rate=1e309", "data.batch_size=many", "env={\"A\": 1, \"A\": \"2\"}"}) ==
      "a.json:4:11: device: found \"tpu\", wanted one of \"auto\", \"cpu\", \"cuda\"\n"
      "command line: train.epoch: found an unknown key; did you mean \"epochs\"?\n"
      "command line: model.name: found \"lenett\", wanted one of \"mlp\", \"lenet\", \"resnet20\", "
      "\"resnet18\", \"resnet34\", \"resnet50\", \"resnet101\", \"resnet152\", \"vgg16\", "
      "\"mobilenet_v1\"; did you mean \"lenet\"?\n"
      "command line: train.epochs: found an object, wanted a whole number of at least 1\n"
      "command line: checkpoint.keep: found 0, wanted a whole number of at least 1\n"
      "command line: optimizer.learning_rate: found 1e309, wanted a number that fits into 64 bits (up to about 1.8e308)\n"
      "command line: data.batch_size: found \"many\", wanted a whole number of at least 1\n"
      "command line: env.A: found the key again, wanted it once; it is first at 1:2\n"
      "command line: env.A: found 1, wanted a string");
}

TEST_CASE("a value in the way of a longer path is named with its place") {
  CHECK(complaint(good_job("\"train\": 5"), {"train.epochs=3"}) ==
        "a.json:4:10: train: found 5, wanted an object\n"
        "command line: train.epochs: found 5 as train at a.json:4:10, wanted an object there");
}

TEST_CASE(
    "any folder may be the output when the command line says so; a relative path starts at the job file") {
  CHECK(parse(good_job(), {"output.dir=out"}).spec.output.dir == "/jobs/out");
  CHECK(parse(good_job(), {"output.dir=../out"}).spec.output.dir == "/out");
  CHECK(parse(good_job(), {"output.dir=/scratch/run7/"}).spec.output.dir == "/scratch/run7");
}

TEST_CASE("words after the job file that are not overrides are bad usage") {
  CHECK(complaint(good_job(), {"train.epochs"}) ==
        "2 found \"train.epochs\" after the job file, wanted train.epochs=VALUE");
  CHECK(complaint(good_job(), {"=3"}) == "2 found \"=3\" after the job file, wanted key.path=value");
  CHECK(complaint(good_job(), {"train..epochs=3"}) ==
        "2 found \"train..epochs=3\" after the job file, wanted key.path=value");
  CHECK(complaint(good_job(), {"--gpus=0"}) ==
        "2 found \"--gpus=0\" after the job file, wanted key.path=value");
}

TEST_CASE("flags of other programs after the job file are answered with the key of the job") {
  const auto answer = [](const std::vector<std::string>& words) { return complaint(good_job(), words); };
  CHECK(answer({"--batch_size", "8"}) ==
        "2 found \"--batch_size 8\" after the job file, wanted data.batch_size=8");
  CHECK(answer({"--batch-size=8"}) ==
        "2 found \"--batch-size=8\" after the job file, wanted data.batch_size=8");
  CHECK(answer({"train.epochs=2", "--lr", "0.1"}) ==
        "2 found \"--lr 0.1\" after the job file, wanted optimizer.learning_rate=0.1");
  CHECK(answer({"epochs", "3"}) == "2 found \"epochs 3\" after the job file, wanted train.epochs=3");
  CHECK(answer({"--device", "cpu"}) == "2 found \"--device cpu\" after the job file, wanted device=cpu");
  CHECK(answer({"--output", "x"}) == "2 found \"--output x\" after the job file, wanted output.dir=x");
  CHECK(answer({"--seed", "--verbose"}) == "2 found \"--seed\" after the job file, wanted train.seed=VALUE");
  CHECK(answer({"batch_size=8"}) ==
        "command line: batch_size: found an unknown key; did you mean \"data.batch_size\"?");
  CHECK(answer({"lr=0.1"}) ==
        "command line: lr: found an unknown key; did you mean \"optimizer.learning_rate\"?");
}

}  // namespace
}  // namespace fleetrun::job::overrides_test

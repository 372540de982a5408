#include "job/read/aliases.h"

#include <doctest/doctest.h>

#include "job/job_text.h"
#include "support/temporary_folder.h"

namespace fleetrun::job::aliases_test {
namespace {

TEST_CASE("an alias fills the key that it stands for, with a note") {
  const ParsedJob job = parse(
      good_job(R"("strategy": {"thread_num": 3, "BuildStrategy": {"gradient_scale_strategy": "One"}})"));
  CHECK(job.spec.strategy.execution_strategy.num_threads == 3);
  CHECK(job.spec.strategy.build_strategy.gradient_scale_strategy == GradientScale::One);
  CHECK(job.notes ==
        std::vector<std::string>{"strategy.BuildStrategy is taken as strategy.build_strategy",
                                 "strategy.thread_num is taken as strategy.execution_strategy.num_threads"});
}

TEST_CASE("on the command line, too, where it wins over the key in the file") {
  const std::string job = good_job(R"("strategy": {"execution_strategy": {"num_threads": 2}})");
  CHECK(parse(job, {"strategy.thread_num=4"}).spec.strategy.execution_strategy.num_threads == 4);
  CHECK(parse(job, {"strategy.BuildStrategy.gradient_scale_strategy=One"})
            .spec.strategy.build_strategy.gradient_scale_strategy == GradientScale::One);
}

std::string origin_of(const ParsedJob& job, const std::string& key) {
  for (const KeyValue& value : job.values)
    if (value.key == key) return value.origin;
  return "";
}

TEST_CASE("an alias is named where its value holds, and nowhere else") {
  const std::string key = "strategy.execution_strategy.num_threads";
  const std::string job = good_job(R"("strategy": {"thread_num": 3})");
  CHECK(origin_of(parse(job), key) == "alias strategy.thread_num, /jobs/a.json:4:28");
  CHECK(origin_of(parse(job, {key + "=4"}), key) == "command line");
  CHECK(origin_of(parse(job, {key + "=null"}), key) == "default");
  CHECK(origin_of(parse(job, {"strategy.thread_num=4"}), key) == "alias strategy.thread_num, command line");
  TemporaryFolder folder;
  folder.write("s.prototxt", "execution_strategy { num_threads: 2 }");
  const ParsedJob with_file =
      parse_job_text(job, folder / "a.json", {"strategy=s.prototxt", "strategy.thread_num=null"});
  CHECK(origin_of(with_file, key) == folder / "s.prototxt:1:22");
  const std::string in_object = good_job(R"("strategy": {"BuildStrategy": {"enable_inplace": true}})");
  CHECK(origin_of(parse(in_object, {"strategy.build_strategy.enable_inplace=false"}),
                  "strategy.build_strategy.enable_inplace") == "command line");
}

TEST_CASE("a key and its alias together are a problem") {
  CHECK(
      complaint(good_job(R"("strategy": {"thread_num": 3, "execution_strategy": {"num_threads": 2}})")) ==
      "a.json:4:28: strategy.thread_num: found an alias of strategy.execution_strategy.num_threads, wanted one of the "
      "two; the other is at a.json:4:69");
}

TEST_CASE("a switch that has no effect says so") {
  CHECK(parse(good_job(R"("strategy": {"a_sync": false})")).notes ==
        std::vector<std::string>{"strategy.a_sync has no effect in collective mode"});
  CHECK(parse(good_job(R"("strategy": {"cudnn_batchnorm_spatial_persistent": false})")).notes ==
        std::vector<std::string>{"strategy.cudnn_batchnorm_spatial_persistent has no effect on the CPU"});
}

}  // namespace
}  // namespace fleetrun::job::aliases_test

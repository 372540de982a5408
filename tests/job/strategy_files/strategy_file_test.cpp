// The strategy file of a job: what it sets, what wins over it, and what is wrong with it.
#include "job/strategy_files/strategy_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "job/job_text.h"
#include "job/keys/job_keys.h"
#include "job/save_strategy.h"
#include "support/temporary_folder.h"

namespace fleetrun::job::strategy_file_test {
namespace {

// A job beside its strategy file.
struct Jobs {
  explicit Jobs(const std::string& prototxt) { folder.write("s.prototxt", prototxt); }

  ParsedJob parse(const std::string& keys, const std::vector<std::string>& overrides = {}) const {
    return parse_job_text(good_job(keys), folder / "job.json", overrides);
  }

  // What is wrong, without the folder.
  std::string complaint(const std::string& keys, const std::vector<std::string>& overrides = {}) const {
    try {
      parse(keys, overrides);
      return "";
    } catch (const Error& error) {
      std::string words = std::to_string(error.exit_code()) + " " + error.message();
      for (std::size_t at = words.find(folder.path()); at != std::string::npos;
           at = words.find(folder.path()))
        words.erase(at, folder.path().size() + 1);
      return words;
    }
  }

  TemporaryFolder folder;
};

const std::string kNamed = R"("strategy_file": "s.prototxt")";

// "value (where it was set)", without the folder.
std::string effective(const ParsedJob& job, const std::string& key, const Jobs& jobs) {
  for (const KeyValue& value : job.values) {
    if (value.key != key) continue;
    const std::size_t at = value.origin.find(jobs.folder.path());
    return value.value + " (" +
           (at == 0 ? value.origin.substr(jobs.folder.path().size() + 1) : value.origin) + ")";
  }
  return "";
}

TEST_CASE("a strategy file beside the job sets keys of its strategy") {
  const Jobs jobs(
      "amp: true\namp_configs {\n  decr_ratio: 0.3\n  custom_white_list: \"fc\"\n}\nbuild_strategy { reduce_strategy: 1 }\n");
  const ParsedJob job = jobs.parse(kNamed);
  CHECK(job.spec.strategy.amp);
  CHECK(job.spec.strategy.amp_configs.decr_ratio == 0.3);
  CHECK(job.spec.strategy.build_strategy.reduce_strategy == ReduceStrategy::Reduce);
  CHECK(effective(job, "strategy.amp", jobs) == "true (s.prototxt:1:1)");
  CHECK(effective(job, "strategy.amp_configs.decr_ratio", jobs) == "0.3 (s.prototxt:3:3)");
  CHECK(effective(job, "strategy.amp_configs.custom_white_list", jobs) == "[\"fc\"] (s.prototxt:4:3)");
  CHECK(effective(job, "strategy.amp_configs.incr_ratio", jobs) == "2 (default)");
  CHECK(*job.spec.strategy_file == jobs.folder / "s.prototxt");
}

TEST_CASE("the keys of the job win over the strategy file, and the command line over both") {
  const Jobs jobs(
      "amp: true nccl_comm_num: 2 amp_configs { incr_ratio: 3 decr_ratio: 0.3 custom_white_list: ['a', 'b'] }");
  const std::string keys =
      kNamed +
      R"(, "strategy": {"nccl_comm_num": 4, "amp_configs": {"decr_ratio": 0.4, "custom_white_list": ["c"]}})";
  const ParsedJob job = jobs.parse(keys, {"strategy.amp=false", "strategy.nccl_comm_num=5"});
  CHECK(effective(job, "strategy.amp", jobs) == "false (command line)");
  CHECK(effective(job, "strategy.nccl_comm_num", jobs) == "5 (command line)");
  CHECK(job.spec.strategy.amp_configs.decr_ratio == 0.4);
  CHECK(job.spec.strategy.amp_configs.custom_white_list == std::vector<std::string>{"c"});
  CHECK(effective(job, "strategy.amp_configs.incr_ratio", jobs) == "3 (s.prototxt:1:42)");
}

TEST_CASE("a value that the job overrides may be wrong in the strategy file") {
  const Jobs jobs("nccl_comm_num: 0");
  CHECK(jobs.complaint(kNamed) ==
        "78 s.prototxt:1:1: strategy.nccl_comm_num: found 0, wanted a whole number from 1 to 64");
  CHECK(jobs.complaint(kNamed + R"(, "strategy": {"nccl_comm_num": 1})") == "");
  CHECK(jobs.complaint(kNamed, {"strategy.nccl_comm_num=1"}) == "");
  CHECK(jobs.complaint(kNamed + R"(, "strategy": {"nccl_comm_num": null})") != "");
}

TEST_CASE("\"strategy\": FILE is another way to name the strategy file") {
  const Jobs jobs("nccl_comm_num: 3");
  CHECK(jobs.parse(R"("strategy": "s.prototxt")").spec.strategy.nccl_comm_num == 3);
  CHECK(jobs.parse("", {"strategy=s.prototxt"}).spec.strategy.nccl_comm_num == 3);
  CHECK(jobs.parse("", {"strategy_file=s.prototxt"}).spec.strategy.nccl_comm_num == 3);
  CHECK(jobs.parse(R"("strategy": "s.prototxt")", {"strategy.amp=true"}).spec.strategy.amp);
  CHECK(jobs.parse(R"("strategy": "other")", {"strategy=s.prototxt"}).spec.strategy.nccl_comm_num == 3);
  CHECK(
      jobs.complaint(R"("strategy": "s.prototxt", "strategy_file": "s.prototxt")") ==
      "78 job.json:4:13: strategy: found another name of strategy_file, wanted one of the two; the other is at job.json:4:27");
}

TEST_CASE("strategy=FILE on the command line keeps the keys of the job, like strategy_file=FILE") {
  const Jobs jobs("nccl_comm_num: 3 conv_workspace_size_limit: 7");
  const std::string keys = R"("strategy": {"amp": true, "conv_workspace_size_limit": 9})";
  for (const char* name : {"strategy=s.prototxt", "strategy_file=s.prototxt"}) {
    CAPTURE(name);
    const StrategySpec strategy = jobs.parse(keys, {name}).spec.strategy;
    CHECK(strategy.amp);
    CHECK(strategy.nccl_comm_num == 3);
    CHECK(strategy.conv_workspace_size_limit == 9);
  }
}

TEST_CASE("strategy=FILE on the command line may stand before and behind other keys of the strategy") {
  const Jobs jobs("amp: true nccl_comm_num: 3");
  const std::string keys = R"("strategy": "other.prototxt")";
  const std::vector<std::string> name_first = {"strategy=s.prototxt", "strategy.amp=false"};
  const std::vector<std::string> name_last = {"strategy.amp=false", "strategy=s.prototxt"};
  for (const auto& words : {name_first, name_last}) {
    const StrategySpec strategy = jobs.parse(keys, words).spec.strategy;
    CHECK_FALSE(strategy.amp);
    CHECK(strategy.nccl_comm_num == 3);
  }
}

TEST_CASE("of strategy and strategy_file on the command line the last one wins") {
  const Jobs jobs("nccl_comm_num: 3");
  const auto communicators = [&](const std::string& keys, const std::vector<std::string>& words) {
    return jobs.parse(keys, words).spec.strategy.nccl_comm_num;
  };
  CHECK(communicators("", {"strategy=s.prototxt", "strategy_file=null"}) == 1);
  CHECK(communicators("", {"strategy=s.prototxt", "strategy=null"}) == 1);
  CHECK(communicators("", {"strategy=null", "strategy=s.prototxt"}) == 3);
  CHECK(communicators("", {"strategy=other", "strategy_file=s.prototxt", "strategy=null"}) == 3);
  CHECK(communicators(R"("strategy": "s.prototxt")", {"strategy=null"}) == 1);
  CHECK(communicators(kNamed + R"(, "strategy": {"nccl_comm_num": 2})", {"strategy=null"}) == 3);
}

TEST_CASE("strategy_file=null on the command line leaves the file out") {
  const Jobs jobs("broken");
  CHECK(jobs.complaint(kNamed) != "");
  CHECK(jobs.complaint(kNamed, {"strategy_file=null"}) == "");
}

TEST_CASE("what is not built is refused as in a job file, with the place in the strategy file") {
  const Jobs jobs("amp: true\nasp: true\nbuild_strategy {\n  fuse_gemm_epilogue: true\n}\nmode: PS\n");
  CHECK(
      jobs.complaint(kNamed) ==
      "78 s.prototxt:2:1: strategy.asp: found true, not supported by this build\n"
      "s.prototxt:4:3: strategy.build_strategy.fuse_gemm_epilogue: found true, not supported by this build\n"
      "s.prototxt:6:1: strategy.mode: found \"PS\", not supported by this build");
}

TEST_CASE("every switch that job.json refuses is refused in a strategy file, unless it is off") {
  const Key keys = job_keys();
  for (const Key& key : find_key(keys, "strategy")->members) {
    if (key.rules.support != Support::later || key.name.ends_with("_configs")) continue;
    CAPTURE(key.name);
    CHECK(Jobs(key.name + ": true").complaint(kNamed) ==
          "78 s.prototxt:1:1: strategy." + key.name + ": found true, not supported by this build");
    CHECK(Jobs(key.name + ": false").complaint(kNamed) == "");
    CHECK(Jobs("").complaint(R"("strategy": {")" + key.name + "\": true}") ==
          "78 job.json:4:" + std::to_string(18 + key.name.size()) + ": strategy." + key.name +
              ": found true, not supported by this build");
  }
}

TEST_CASE("values that hold anyway need no key") {
  const Jobs usual("a_sync: true execution_strategy { use_thread_barrier: false }");
  CHECK(usual.parse(kNamed).notes.empty());
  CHECK(Jobs("execution_strategy { use_thread_barrier: true }").parse(kNamed).notes.size() == 1);
  CHECK(
      Jobs(
          "pipeline: false split_data: true tensor_parallel_configs { } build_strategy { debug_graphviz_path: '' }")
          .complaint(kNamed) == "");
}

TEST_CASE("fields without effect are named once for each message") {
  const Jobs jobs(
      "qat_configs {\n  channel_wise_abs_max: false\n  weight_bits: 4\n}\na_sync_configs { k_steps: 100 }\n");
  std::vector<std::string> notes = jobs.parse(kNamed).notes;
  for (std::string& note : notes) note.erase(note.find(jobs.folder.path()), jobs.folder.path().size() + 1);
  CHECK(notes == std::vector<std::string>{
                     "qat_configs of s.prototxt:2:3 has no effect: qat is false",
                     "a_sync_configs of s.prototxt:5:18 has no effect: it is for parameter servers"});
  CHECK(
      Jobs("qat_configs { channel_wise_abs_max: false } qat: true").complaint(kNamed) ==
      "78 s.prototxt:1:15: strategy.qat_configs.channel_wise_abs_max: found false, not supported by this build\n"
      "s.prototxt:1:45: strategy.qat: found true, not supported by this build");
}

TEST_CASE("micro_batch of PaddlePaddle 2.0 is the number of micro-batches") {
  const JobSpec spec = Jobs("pipeline_configs { micro_batch: 4 } pipeline: true").parse(kNamed).spec;
  CHECK(spec.strategy.pipeline);
  CHECK(spec.strategy.pipeline_configs.accumulate_steps == 4);
}

TEST_CASE("a job may turn off what its strategy file asks for and this build does not have") {
  const Jobs jobs(
      "asp: true\nqat: true\nqat_configs { weight_bits: 8 }\nbuild_strategy { fuse_gemm_epilogue: true }");
  const std::string keys =
      kNamed + R"(, "strategy": {"asp": false, "build_strategy": {"fuse_gemm_epilogue": false}})";
  CHECK(jobs.complaint(keys, {"strategy.qat=false"}) == "");
  CHECK(
      jobs.complaint(kNamed, {"strategy.qat=false", "strategy.asp=false"}) ==
      "78 s.prototxt:4:18: strategy.build_strategy.fuse_gemm_epilogue: found true, not supported by this build");
  CHECK(jobs.complaint(keys, {"strategy.qat=null"}) != "");
  CHECK(jobs.complaint(keys, {"strategy.qat=true"}) != "");
  CHECK(Jobs("amp: true").complaint(kNamed, {"strategy.asp=false"}) != "");  // as without a strategy file
}

TEST_CASE("what a job turns off in its strategy file is off for a rank and in a saved strategy") {
  const Jobs jobs("asp: true nccl_comm_num: 2");
  const std::vector<std::string> overrides = {"strategy.asp=false"};
  const ParsedJob job = jobs.parse(kNamed, overrides);
  CHECK(parse_handed_job(job.text, "/elsewhere/job.json", overrides).spec.strategy.nccl_comm_num == 2);
  CHECK(save_strategy_of(job, PaddleVersion::paddle_3, false).text == "nccl_comm_num: 2\nasp: false\n");
}

TEST_CASE("a switch of the job decides whether the settings of the file have an effect") {
  const Jobs jobs("amp_configs { use_pure_fp16: true }");
  CHECK(jobs.complaint(kNamed) == "");
  CHECK(jobs.complaint(kNamed, {"strategy.amp=true"}) ==
        "78 s.prototxt:1:15: strategy.amp_configs.use_pure_fp16: found true, not supported by this build");
}

TEST_CASE("the mistakes of both files are listed together") {
  const Jobs jobs("amp: true\nampp: true");
  CHECK(jobs.complaint(kNamed + ", \"devise\": \"cpu\"") ==
        "78 job.json:4:32: devise: found an unknown key; did you mean \"device\"?\n"
        "s.prototxt:2:1: ampp: found a field that DistributedStrategy does not have; did you mean amp?");
}

TEST_CASE("a number without a finite value is refused") {
  CHECK(Jobs("amp_configs { incr_ratio: inf }").complaint(kNamed) ==
        "78 s.prototxt:1:15: strategy.amp_configs.incr_ratio: found inf, wanted a finite number");
  CHECK(Jobs("amp_configs { incr_ratio: nan }").complaint(kNamed) ==
        "78 s.prototxt:1:15: strategy.amp_configs.incr_ratio: found nan, wanted a finite number");
}

TEST_CASE("a strategy file that cannot be read ends as a job file would") {
  const Jobs jobs("");
  CHECK(jobs.complaint(R"("strategy_file": "none.prototxt")") ==
        "66 opening none.prototxt: No such file or directory (errno 2)");
  std::filesystem::create_directory(jobs.folder / "folder");
  CHECK(jobs.complaint(R"("strategy_file": "folder")").starts_with("78 "));
  CHECK(jobs.complaint(R"("strategy_file": "/dev/null")").starts_with("78 "));
  jobs.folder.write("huge", std::string((std::size_t{1} << 20) + 1, '#'));
  CHECK(jobs.complaint(R"("strategy_file": "huge")").starts_with("78 "));
  CHECK(jobs.complaint(R"("strategy_file": 3)") == "78 job.json:4:18: strategy_file: found 3, wanted a path");
  CHECK(jobs.complaint(R"("strategy_file": {"settings": {}})") ==
        "78 job.json:4:18: strategy_file: found an object, wanted a path");
}

TEST_CASE("a strategy file that is not there is named with the place that names it") {
  const auto words = [](const std::string& keys, const std::vector<std::string>& overrides) {
    try {
      parse_job_text(good_job(keys), "a.json", overrides);
    } catch (const Error& error) {
      return error.describe("fleetrun");
    }
    return std::string();
  };
  const std::string missing =
      "fleetrun: error: opening none.prototxt: No such file or directory (errno 2)\n  while reading strategy_file of ";
  CHECK(words(R"("strategy_file": "none.prototxt")", {}) == missing + "a.json:4:18\n");
  CHECK(words(R"("strategy": "none.prototxt")", {}) == missing + "a.json:4:13\n");
  CHECK(words(kNamed, {"strategy=none.prototxt"}) == missing + "command line\n");
}

TEST_CASE("a rank gets what the launcher read, and reads no strategy file") {
  const Jobs jobs("amp: true nccl_comm_num: 2");
  const std::vector<std::string> overrides = {"strategy_file=s.prototxt", "strategy.nccl_comm_num=3"};
  const ParsedJob job =
      jobs.parse(R"("strategy": {"conv_workspace_size_limit": 7}, "device": "cpu")", overrides);
  std::filesystem::remove(jobs.folder / "s.prototxt");
  const ParsedJob of_rank = parse_handed_job(job.text, jobs.folder / "job.json", overrides);
  CHECK(of_rank.spec.strategy.amp);
  CHECK(of_rank.spec.strategy.nccl_comm_num == 3);
  CHECK(of_rank.spec.strategy.conv_workspace_size_limit == 7);
  CHECK(of_rank.spec.device == DeviceChoice::cpu);
}

TEST_CASE("nodes that keep the same strategy file in different folders hand the same text to their ranks") {
  const Jobs one("amp: true"), other("amp:true");
  CHECK(one.parse(kNamed).text == other.parse(kNamed).text);
  CHECK(one.parse(kNamed).text != Jobs("amp: false").parse(kNamed).text);
}

TEST_CASE("a rank takes every form of naming a strategy file from the launcher") {
  const Jobs jobs("nccl_comm_num: 2");
  const auto handed = [&](const std::string& keys, const std::vector<std::string>& overrides) {
    const ParsedJob job = jobs.parse(keys, overrides);
    return parse_handed_job(job.text, "/elsewhere/job.json", overrides).spec.strategy.nccl_comm_num;
  };
  CHECK(handed(kNamed, {}) == 2);
  CHECK(handed(R"("strategy": "s.prototxt")", {}) == 2);
  CHECK(handed("", {"strategy=s.prototxt"}) == 2);
  CHECK(handed(R"("strategy": {"amp": true})", {"strategy=s.prototxt"}) == 2);
  CHECK(handed(R"("strategy": "s.prototxt")", {"strategy=null"}) == 1);
  CHECK(handed(R"("strategy_file": "other")", {"strategy_file=s.prototxt"}) == 2);
  CHECK(handed(kNamed, {"strategy_file=null"}) == 1);
  CHECK(jobs.parse("").text == good_job());
}

TEST_CASE("load gives the keys of a job for a strategy file") {
  const Jobs jobs(
      "nccl_comm_num: 2 build_strategy { reduce_strategy: 1 enable_addto: false } gradient_scale_configs { scale_strategy: 'sum' }");
  CHECK(
      to_json(load_strategy_file(jobs.folder / "s.prototxt").settings) ==
      R"({"nccl_comm_num": 2, "build_strategy": {"reduce_strategy": "Reduce", "gradient_scale_strategy": "One"}})");
  CHECK_THROWS_AS(load_strategy_file(Jobs("asp: true").folder / "s.prototxt"), Error);
}

TEST_CASE("the files of both versions set the same keys of sharding") {
  for (const std::string file :
       {"sharding: true sharding_configs { fuse_broadcast_MB: 16.5 sharding_group_size: 4 }",
        "sharding: true sharding_configs { segment_broadcast_MB: 16.5 sharding_degree: 4 mp_degree: 1 }"}) {
    const Jobs jobs(file);
    const ParsedJob job = jobs.parse(kNamed);
    CHECK(job.spec.strategy.sharding);
    CHECK(job.spec.strategy.sharding_configs.sharding_degree == 4);
    CHECK(job.spec.strategy.sharding_configs.segment_broadcast_MB == 16.5);
  }
  CHECK(Jobs("sharding: true sharding_configs { mp_degree: 2 }").complaint(kNamed) ==
        "78 s.prototxt:1:35: strategy.sharding_configs.mp_degree: found 2, not supported by this build");
}

}  // namespace
}  // namespace fleetrun::job::strategy_file_test

// Strategies that are written for PaddlePaddle.
#include "job/save_strategy.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "job/keys/job_keys.h"
#include "job/read/draft.h"
#include "job/read/json_tree.h"
#include "job/strategy_files/load_prototxt.h"
#include "job/strategy_files/strategy_fields.h"
#include "job/strategy_files/strategy_file.h"
#include "job_text.h"
#include "support/temporary_folder.h"

namespace fleetrun::job::save_strategy_test {
namespace {

const std::string kFiles = std::string(FLEETRUN_SOURCE_DIR) + "/tests/job/strategies/";

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Saved for PaddlePaddle 3, from a strategy in a job file.
SavedStrategy saved(const std::string& strategy, const std::vector<std::string>& overrides = {}) {
  return save_strategy_of(parse(good_job("\"strategy\": " + strategy), overrides), PaddleVersion::paddle_3,
                          false);
}

// FleetX's published example. enable_sequential_execution and execution_strategy are only for PaddlePaddle 2.0. fuse_broadcast_ops is not set
// there, but PaddlePaddle's BuildStrategy() has it on.
std::string published_example(const std::string& build = "", const std::string& more = "") {
  return R"({"sync_nccl_allreduce": true, "nccl_comm_num": 2, "fuse_all_reduce_ops": true,
    "build_strategy": {"fuse_elewise_add_act_ops": true, "fuse_bn_act_ops": true, "enable_auto_fusion": true,
                       "fuse_all_optimizer_ops": true, "fuse_broadcast_ops": true)" +
         build + R"(},
    "amp": true, "amp_configs": {"init_loss_scaling": 128, "decr_every_n_nan_or_inf": 2, "incr_every_n_steps": 1000, "incr_ratio": 2.0,
      "use_dynamic_loss_scaling": true, "decr_ratio": 0.5, "custom_white_list": [], "custom_black_list": []})" +
         more + "}";
}

TEST_CASE("the published example is written byte for byte as PaddlePaddle 3.3.1 writes it") {
  CHECK(content(kFiles + "VERSION") == "paddle 3.3.1\n");
  const SavedStrategy strategy = saved(published_example());
  CHECK(strategy.text == content(kFiles + "paddle_3/published_example.prototxt"));
  CHECK(strategy.left_out.empty());
}

TEST_CASE("the published example is written for PaddlePaddle 2.0 with the same meaning as there") {
  const std::string job = published_example(
      R"(, "enable_sequential_execution": true)",
      R"(, "execution_strategy": {"num_threads": 3, "num_iteration_per_drop_scope": 100, "num_iteration_per_run": 1})");
  const SavedStrategy strategy =
      save_strategy_of(parse(good_job("\"strategy\": " + job)), PaddleVersion::paddle_2, false);
  CHECK(strategy.left_out.empty());
  TemporaryFolder folder;
  folder.write("ours", strategy.text);
  CHECK(to_json(read_strategy_file(folder / "ours").root) ==
        to_json(read_strategy_file(kFiles + "paddle_2/published_example.prototxt").root));
}

TEST_CASE("only what the job sets is written") {
  CHECK(saved("{}").text == "");
  CHECK(saved(R"({"nccl_comm_num": 2, "amp": false})").text == "amp: false\nnccl_comm_num: 2\n");
  CHECK(saved("{}", {"strategy.nccl_comm_num=3"}).text == "nccl_comm_num: 3\n");
  CHECK(saved(R"({"fuse_grad_size_in_MB": 16.0, "last_comm_group_size_MB": 0.25})").text ==
        "fuse_grad_size_in_MB: 16\nlast_comm_group_size_MB: 0.25\n");
}

TEST_CASE("what a job sets is written whatever the name of its file") {
  const ParsedJob job = parse_job_text(good_job(R"("strategy": {"nccl_comm_num": 2})"), "default.json", {});
  CHECK(save_strategy_of(job, PaddleVersion::paddle_3, false).text == "nccl_comm_num: 2\n");
}

TEST_CASE("a build_strategy is written in full, since PaddlePaddle has other defaults") {
  const std::string text = saved(R"({"build_strategy": {"fuse_bn_act_ops": true}})").text;
  CHECK(text.find("  enable_inplace: true\n") != std::string::npos);
  CHECK(text.find("  fuse_gemm_epilogue: false\n") != std::string::npos);
  CHECK(text.find("gradient_scale_configs") == std::string::npos);
}

TEST_CASE("values that PaddlePaddle cannot hold are named with their places") {
  const SavedStrategy strategy = saved(R"({"execution_strategy": {"num_threads": 3},
"hierarchical_allreduce_algorithm": "scatter", "fuse_grad_size_in_MB": 0.5, "nccl_comm_num": 2})");
  CHECK(strategy.text == "nccl_comm_num: 2\n");
  REQUIRE(strategy.left_out.size() == 3);
  CHECK(
      strategy.left_out[0] ==
      "/jobs/a.json:4:52: strategy.execution_strategy.num_threads: found a value for which PaddlePaddle 3 has no field; PaddlePaddle 2.0 has one");
  CHECK(
      strategy.left_out[1] ==
      "/jobs/a.json:5:37: strategy.hierarchical_allreduce_algorithm: found a value for which PaddlePaddle 3 has no field");
  CHECK(
      strategy.left_out[2] ==
      "/jobs/a.json:5:72: strategy.fuse_grad_size_in_MB: found 0.5, wanted a whole number in the range of the field");
}

TEST_CASE("a value that a float rounds to a limit of its key is named, not written") {
  const SavedStrategy strategy =
      saved(R"({"amp_configs": {"incr_ratio": 1.00000000001, "decr_ratio": 0.1}})");
  CHECK(strategy.text == "amp_configs {\n  decr_ratio: 0.1\n}\n");
  REQUIRE(strategy.left_out.size() == 1);
  CHECK(strategy.left_out[0].ends_with(
      "strategy.amp_configs.incr_ratio: found 1.00000000001, wanted a number that a float does not round to 0 or 1"));
}

TEST_CASE("with --all every key that PaddlePaddle has is written") {
  const SavedStrategy strategy = save_strategy_of(parse(good_job()), PaddleVersion::paddle_2, true);
  CHECK(strategy.left_out.empty());
  CHECK(strategy.text.find("a_sync: true\n") != std::string::npos);
  CHECK(strategy.text.find("execution_strategy {\n  num_threads: 1\n") != std::string::npos);
}

TEST_CASE("a job with a strategy file is written with all fields of the file, changed by the job") {
  TemporaryFolder folder;
  folder.write("s.prototxt", "nccl_comm_num: 2 a_sync_configs { k_steps: 100 } amp: true");
  const ParsedJob job = parse_job_text(good_job(R"("strategy_file": "s.prototxt")"), folder / "job.json",
                                       {"strategy.amp=false"});
  CHECK(save_strategy_of(job, PaddleVersion::paddle_3, false).text ==
        "amp: false\nnccl_comm_num: 2\na_sync_configs {\n  k_steps: 100\n}\n");
}

TEST_CASE("a file of PaddlePaddle 2.0 is written for 3, without the fields that 3 does not have") {
  const std::string path = kFiles + "paddle_2/sharding.prototxt";
  const SavedStrategy strategy = save_strategy_again(read_strategy_file(path), "f", PaddleVersion::paddle_3);
  CHECK(strategy.text == "sharding: true\nsharding_configs {\n  hybrid_dp: true\n}\n");
  REQUIRE(strategy.left_out.size() == 2);
  CHECK(
      strategy.left_out[0] ==
      "f:3:3: sharding_configs.fuse_broadcast_MB: found a value for which PaddlePaddle 3 has no field; PaddlePaddle 2.0 has one");
}

TEST_CASE("the degree of sharding has another field in each version") {
  const ParsedJob job = parse(good_job(R"("strategy": {"sharding": true, "sharding_configs":
      {"sharding_degree": 4, "segment_broadcast_MB": 16.5, "hybrid_dp": true}})"));
  CHECK(save_strategy_of(job, PaddleVersion::paddle_2, false).text ==
        "sharding: true\nsharding_configs {\n  fuse_broadcast_MB: 16.5\n  hybrid_dp: true\n"
        "  sharding_group_size: 4\n}\n");
  CHECK(save_strategy_of(job, PaddleVersion::paddle_3, false).text ==
        "sharding: true\nsharding_configs {\n  segment_broadcast_MB: 16.5\n  sharding_degree: 4\n"
        "  hybrid_dp: true\n}\n");
}

TEST_CASE("the number of micro-batches has another field in each version") {
  const std::string strategy = R"({"pipeline": true, "pipeline_configs": {"accumulate_steps": 4}})";
  const ParsedJob job = parse(good_job("\"strategy\": " + strategy));
  CHECK(save_strategy_of(job, PaddleVersion::paddle_2, false).text ==
        "pipeline: true\npipeline_configs {\n  micro_batch: 4\n}\n");
  const SavedStrategy of_3 = saved(strategy);
  CHECK(of_3.left_out.empty());
  CHECK(of_3.text == "pipeline: true\npipeline_configs {\n  accumulate_steps: 4\n}\n");
  TemporaryFolder folder;
  folder.write("s.prototxt", of_3.text);
  const ParsedJob again =
      parse_job_text(good_job(R"("strategy_file": "s.prototxt")"), folder / "job.json", {});
  CHECK(again.spec.strategy.pipeline_configs.accumulate_steps == 4);
}

// The text of a strategy that sets this one field.
StrategyText text_of(const std::string& path, const JsonValue& value, PaddleVersion version) {
  JsonValue root = JsonValue::object();
  put_at(root, path, value);
  return prototxt_plugin().write(root, version, {});
}

TEST_CASE("each version gets every key that it has a field for, and the field is read as that key") {
  for (const PaddleVersion version : {PaddleVersion::paddle_2, PaddleVersion::paddle_3})
    for (const KeyValue& one : parse(good_job()).values) {
      if (!one.key.starts_with("strategy.")) continue;
      CAPTURE(one.key);
      const std::string key = one.key.substr(std::string("strategy.").size());
      const JsonValue setting = read_json(one.value).root;
      const FieldOfKey field = field_of_key(key, setting, version);
      const StrategyText written = text_of(field.path, field.value, version);
      const bool has_own_name = text_of(key, setting, version).problems.empty();
      if (has_own_name) CHECK(written.problems.empty());
      const bool is_empty_list = setting.is(JsonValue::Kind::list) && setting.items.empty();
      if (!written.problems.empty() || written.text.empty() || is_empty_list) continue;
      const auto read = map_fields(prototxt_plugin().read(written.text), job_keys(), nullptr);
      REQUIRE(read.size() == 1);
      CHECK(read.front().key == key);
    }
}

TEST_CASE("only a text in exactly the form of a saved strategy is known as one") {
  CHECK(is_saved_strategy(content(kFiles + "paddle_2/sharding.prototxt")));
  CHECK(is_saved_strategy(content(kFiles + "paddle_3/published_example.prototxt")));
  CHECK(is_saved_strategy(saved(R"({"build_strategy": {"fuse_bn_act_ops": true}})").text));
  CHECK(is_saved_strategy("amp: true\nnccl_comm_num: 2\n"));
  for (const char* text : {"amp: true", "# mine\namp: true\n", "nccl_comm_num: 2\namp: true\n",
                           "ampp: true\n", "{\"model\": {\"name\": \"mlp\"}}\n", "a shopping list\n"}) {
    CAPTURE(text);
    CHECK_FALSE(is_saved_strategy(text));
  }
}

}  // namespace
}  // namespace fleetrun::job::save_strategy_test

// The protobuf text of strategies: files of both versions of PaddlePaddle, broken files, and what is written again.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "job/read/draft.h"
#include "job/read/json_tree.h"
#include "job/strategy_files/load_prototxt.h"

namespace fleetrun::job::prototxt_test {
namespace {

const std::filesystem::path kFiles = std::filesystem::path(FLEETRUN_SOURCE_DIR) / "tests/job/strategies";

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> files_of(const std::string& version) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFiles / version))
    paths.push_back(entry.path());
  return paths;
}

StrategyDocument read(std::string_view text) { return prototxt_plugin().read(text); }
StrategyText write(const JsonValue& root, PaddleVersion version) {
  return prototxt_plugin().write(root, version, {});
}

// What is wrong with a text, as in messages about the file f.
std::string complaint(std::string_view text) { return describe_problems("f", read(text).problems); }

TEST_CASE("the files of PaddlePaddle 3 are written again byte for byte") {
  const auto paths = files_of("paddle_3");
  CHECK(paths.size() >= 20);
  for (const auto& path : paths) {
    CAPTURE(path.string());
    const StrategyDocument document = read(content(path));
    CHECK(complaint(content(path)) == "");
    CHECK(document.version != PaddleVersion::paddle_2);
    const StrategyText again = write(document.root, PaddleVersion::paddle_3);
    CHECK(again.text == content(path));
    CHECK(again.problems.empty());
  }
}

TEST_CASE("the files of PaddlePaddle 2.0 keep their meaning when they are written again") {
  const auto paths = files_of("paddle_2");
  CHECK(paths.size() >= 9);
  for (const auto& path : paths) {
    CAPTURE(path.string());
    const StrategyDocument document = read(content(path));
    CHECK(complaint(content(path)) == "");
    CHECK(document.version == PaddleVersion::paddle_2);
    const StrategyText again = write(document.root, PaddleVersion::paddle_2);
    CHECK(again.problems.empty());
    CHECK(to_json(read(again.text).root) == to_json(document.root));
  }
}

TEST_CASE("every form of the text that protobuf knows is read") {
  const auto root_of = [](std::string_view text) { return to_json(read(text).root); };
  CHECK(root_of("") == "{}");
  CHECK(root_of("# nothing\n") == "{}");
  CHECK(root_of("amp: t dgc: 1, lars: True; lamb: false") ==
        R"({"amp": true, "dgc": true, "lars": true, "lamb": false})");
  CHECK(root_of("amp_configs: < incr_ratio: 1.5f >") == R"({"amp_configs": {"incr_ratio": 1.5}})");
  CHECK(root_of("dgc_configs { sparsity: [0.5, 1] sparsity: 2 }") ==
        R"({"dgc_configs": {"sparsity": [0.5, 1, 2]}})");
  CHECK(root_of("conv_workspace_size_limit: 0x10 mode: 2") ==
        R"({"conv_workspace_size_limit": 16, "mode": "PS"})");
  CHECK(root_of(R"(recompute_configs { checkpoints: "a" "b" checkpoints: '\x41' })") ==
        R"({"recompute_configs": {"checkpoints": ["ab", "A"]}})");
  CHECK(root_of("amp_configs { }") == R"({"amp_configs": {}})");
}

TEST_CASE("a number keeps its digits") {
  const JsonValue root = read("amp_configs { decr_ratio: 0.8 } lars_configs { epsilon: 1e-9 }").root;
  CHECK(find_at(root, "amp_configs.decr_ratio")->number == 0.8);
  CHECK(find_at(root, "lars_configs.epsilon")->number == 1e-9);
}

TEST_CASE("the largest float is read as a number that a float can hold, and written as it was") {
  for (const std::string number : {"3.40282347e+38", "-3.40282347e+38"}) {
    const std::string text = "amp_configs {\n  init_loss_scaling: " + number + "\n}\n";
    const JsonValue root = read(text).root;
    const double found = find_at(root, "amp_configs.init_loss_scaling")->number;
    CHECK(std::abs(found) == double{std::numeric_limits<float>::max()});
    const StrategyText again = write(root, PaddleVersion::paddle_3);
    CHECK(again.problems.empty());
    CHECK(find_at(read(again.text).root, "amp_configs.init_loss_scaling")->number == found);
  }
}

TEST_CASE("values know where they are written, and fields their defaults") {
  const StrategyDocument document =
      read("\tamp: true # é\nlars_configs {\n  lars_coeff: 0.001\n  epsilon: 2 }");
  CHECK(find_at(document.root, "amp")->position == TextPosition{1, 2});
  CHECK(find_at(document.root, "lars_configs")->position == TextPosition{2, 1});
  CHECK(find_at(document.root, "lars_configs.epsilon")->position == TextPosition{4, 3});
  CHECK(document.at_default == std::vector<std::string>{"lars_configs.lars_coeff"});
}

TEST_CASE("the fields tell the version") {
  CHECK(read("amp: true").version == PaddleVersion::any);
  CHECK(read("execution_strategy { num_threads: 2 }").version == PaddleVersion::paddle_2);
  CHECK(read("sharding_configs { fuse_broadcast_MB: 1.5 }").version == PaddleVersion::paddle_2);
  CHECK(read("sharding_configs { sharding_degree: 2 }").version == PaddleVersion::paddle_3);
  CHECK(read("hybrid_configs { }").version == PaddleVersion::paddle_3);
}

TEST_CASE("fields of two versions in one file are refused") {
  CHECK(
      complaint("asp: true\namp: true\nexecution_strategy { }") ==
      "f:3:1: execution_strategy: found a field of PaddlePaddle 2.0, and asp of PaddlePaddle 3 in line 1, wanted fields of one version");
  CHECK(
      complaint("sharding_configs {\n fuse_broadcast_MB: 1\n stage: 2 }") ==
      "f:2:2: fuse_broadcast_MB: found a field of PaddlePaddle 2.0, and stage of PaddlePaddle 3 in line 3, wanted fields of one version");
}

TEST_CASE("unknown fields are all named with their places") {
  CHECK(
      complaint(
          "amp: true\nampp: true\namp_configs {\n  incr_ratioo : 1 # incr_ratioo\n}\nzzz { a { b: 1 } c: [ {}, { d: 2 } ] }\n") ==
      "f:2:1: ampp: found a field that DistributedStrategy does not have; did you mean amp?\n"
      "f:4:3: incr_ratioo: found a field that AMPConfig does not have; did you mean incr_ratio?\n"
      "f:6:1: zzz: found a field that DistributedStrategy does not have");
  CHECK(complaint("hybrid_configs { dp: 1 }") == "f:1:18: dp: found a field that HybridConfig does not have");
  CHECK(complaint("execution_strategy { threads: 1 }") ==
        "f:1:22: threads: found a field that ExecutionStrategy does not have");
}

TEST_CASE("a broken text is refused with line and column") {
  CHECK(complaint("amp: true\n  amp: false") == "f:2:3: found amp for the second time, wanted it once");
  CHECK(complaint("amp_configs { } amp_configs { }") ==
        "f:1:17: found amp_configs for the second time, wanted it once");
  CHECK(complaint("amp: maybe") == "f:1:6: found maybe for amp, wanted true or false");
  CHECK(complaint("amp: \"true\"") == "f:1:6: found \"true\", wanted the name of a field or a value");
  CHECK(complaint("nccl_comm_num: 1.5") == "f:1:16: found 1.5, wanted a whole number");
  CHECK(complaint("nccl_comm_num: true") == "f:1:16: found true, wanted a whole number");
  CHECK(complaint("nccl_comm_num: 99999999999") ==
        "f:1:16: found 99999999999, wanted a number in the range of the field's type");
  CHECK(complaint("mode: FAST") == "f:1:7: found FAST, which is not a value of mode");
  CHECK(complaint("amp_configs { incr_ratio: 'x' }") == "f:1:27: found 'x', wanted a number");
  CHECK(complaint("amp_configs {\n  incr_ratio: 2") ==
        "f:2:16: found the end of the file, wanted the name of a field or a value");
  CHECK(complaint("amp_configs { } }") == "f:1:17: found }, wanted the name of a field or a value");
  CHECK(complaint("amp true") == "f:1:5: found true, wanted :");
  CHECK(complaint("recompute_configs { checkpoints: \"a\n\" }").starts_with("f:1:"));
  CHECK(complaint("{\"strategy\": {}}") == "f:1:1: found {, wanted the name of a field or a value");
  CHECK(complaint("execution_strategy { num_threads: x }") == "f:1:35: found x, wanted a whole number");
  CHECK(complaint("hybrid_configs { dp_degree: x }") == "f:1:29: found x, wanted a whole number");
}

TEST_CASE("what is no text is refused") {
  using namespace std::string_literals;
  CHECK(complaint("\xEF\xBB\xBF"
                  "amp: true") == "f:1:1: found a byte order mark, wanted UTF-8 without one");
  CHECK(complaint("amp: \xFF") == "f:1:6: found the byte 0xFF, wanted UTF-8");
  CHECK(complaint("amp: true\0"s) == "f:1:10: found the character U+0000, wanted text without it");
  CHECK(complaint("\x7F"
                  "ELF\x02\x01")
            .starts_with("f:1:"));
  CHECK(complaint("\x10\x01\x1A\x02").starts_with("f:1:"));  // the binary form of protobuf
  CHECK(complaint(std::string(100000, '{')) == "f:1:65: found more than 64 open brackets, wanted fewer");
}

TEST_CASE("messages inside each other end before the stack does") {
  std::string deep;
  for (int i = 0; i < 60; ++i) deep += "hybrid_configs { ";
  CHECK(complaint(deep) != "");
  std::string unknown;
  for (int i = 0; i < 100000; ++i) unknown += "a { ";
  CHECK(complaint(unknown).find("found more than 64 open brackets") != std::string::npos);
}

TEST_CASE("a value that a version cannot hold is named, and the rest is written") {
  const JsonValue root =
      read(
          "amp: true execution_strategy { num_threads: 3 } build_strategy { enable_sequential_execution: true }")
          .root;
  const StrategyText three = write(root, PaddleVersion::paddle_3);
  CHECK(three.text == "amp: true\nbuild_strategy {\n}\n");
  CHECK(
      describe_problems("f", three.problems) ==
      "f:1:32: execution_strategy.num_threads: found a value for which PaddlePaddle 3 has no field; PaddlePaddle 2.0 has one\n"
      "f:1:66: build_strategy.enable_sequential_execution: found a value for which PaddlePaddle 3 has no field; PaddlePaddle 2.0 has one");
  CHECK(write(root, PaddleVersion::paddle_2).problems.empty());
}

// Texts of the files with some bytes changed, taken out or repeated.
std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  constexpr std::string_view kLikely = "{}[]<>:\"'#,;\n\\0-.e\x01\xC3";
  for (std::size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = below(text.size());
    const std::size_t length = std::min(text.size() - at, 1 + below(20));
    switch (below(4)) {
      case 0:
        text[at] = kLikely[below(kLikely.size())];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(below(text.size()), text.substr(at, length));
        break;
      default:
        text.insert(at, 1, kLikely[below(kLikely.size())]);
        break;
    }
  }
  return text;
}

TEST_CASE("a text with random changes is refused with a place, or read and written again as it is") {
  std::mt19937 random(1);
  auto paths = files_of("paddle_2");
  for (const auto& path : files_of("paddle_3")) paths.push_back(path);
  std::sort(paths.begin(), paths.end());
  int good = 0;
  for (int round = 0; round < 100; ++round) {
    for (const auto& path : paths) {
      const std::string text = mutate(content(path), random);
      CAPTURE(text);
      const StrategyDocument document = read(text);
      for (const JsonProblem& problem : document.problems) {
        CHECK(problem.position.line >= 1);
        CHECK(problem.position.column >= 1);
      }
      if (!document.problems.empty()) continue;
      ++good;
      const auto version =
          document.version == PaddleVersion::any ? PaddleVersion::paddle_3 : document.version;
      const StrategyText again = write(document.root, version);
      CHECK(again.problems.empty());
      CHECK(to_json(read(again.text).root) == to_json(document.root));
    }
  }
  CHECK(good > 100);
}

}  // namespace
}  // namespace fleetrun::job::prototxt_test

// fleetrun strategy, and jobs with a strategy file: what they print, and how they end.
#include "e2e/launcher.h"

namespace fleetrun::strategy_command_test {
namespace {

const char* const kJob = R"({
"model": {"name": "mlp"},
"data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}},
"strategy_file": "s.prototxt",
"strategy": {"conv_workspace_size_limit": 512}
})";

TEST_CASE("strategy show lists the fields of a strategy file and what becomes of them") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\nasp: true\nexecution_strategy { num_threads: 3 }\n");
  CHECK(launch.run_words({"strategy", "show", "s.prototxt"}).code == 78);
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\nasp: true\nsplit_data: true\nelastic: true\n");
  const ChildResult result = launch.run_words({"strategy", "show", "s.prototxt"});
  CHECK(result.code == 0);
  CHECK(
      result.out ==
      "s.prototxt: fields of PaddlePaddle 3\n"
      "s.prototxt:1:1  nccl_comm_num  2     strategy.nccl_comm_num\n"
      "s.prototxt:2:1  asp            true  not supported by this build\n"
      "s.prototxt:3:1  split_data     true  no change: the value is the default\n"
      "s.prototxt:4:1  elastic        true  no effect: PaddlePaddle does not use it; --nnodes=MIN:MAX makes a run elastic\n");
}

TEST_CASE("strategy show lists the strategy keys of a job") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\n");
  launch.folder.write("job.json", kJob);
  const ChildResult result = launch.run_words({"strategy", "show", "job.json", "strategy.amp=true"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "  s.prototxt:1:1\n"));
  CHECK(contains(result.out, "  job.json:5:43\n"));
  CHECK(contains(result.out, "  command line\n"));
  CHECK(contains(result.out, "strategy_file"));
  CHECK_FALSE(contains(result.out, "data.train"));
}

TEST_CASE("strategy save writes a file that strategy load turns into keys again") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\n");
  launch.folder.write("job.json", kJob);
  const ChildResult saved =
      launch.run_words({"strategy", "save", "job.json", "strategy.amp=true", "out.prototxt"});
  CHECK_MESSAGE(saved.code == 0, saved.err);
  CHECK(saved.out == "");
  CHECK(launch.folder.read("out.prototxt") ==
        "amp: true\nnccl_comm_num: 2\nconv_workspace_size_limit: 512\n");
  CHECK(launch.run_words({"strategy", "save", "out.prototxt", "-"}).out ==
        launch.folder.read("out.prototxt"));
  const ChildResult loaded = launch.run_words({"strategy", "load", "out.prototxt"});
  CHECK(nlohmann::json::parse(loaded.out) ==
        nlohmann::json::parse(
            R"({"strategy": {"amp": true, "nccl_comm_num": 2, "conv_workspace_size_limit": 512}})"));
}

TEST_CASE("strategy save names what the version of PaddlePaddle does not have") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\nexecution_strategy {\n  num_threads: 3\n}\n");
  const Words save = {"strategy", "save", "--paddle=3", "s.prototxt", "out.prototxt"};
  const ChildResult refused = launch.run_words(save);
  CHECK(refused.code == 78);
  CHECK(
      refused.err ==
      "fleetrun: error: s.prototxt:3:3: execution_strategy.num_threads: found a value for which PaddlePaddle 3 has no field; "
      "PaddlePaddle 2.0 has one\n  hint: --partial leaves such values out; --paddle=2 or --paddle=3 chooses the version\n");
  CHECK_FALSE(launch.folder.has("out.prototxt"));
  const ChildResult partial =
      launch.run_words({"strategy", "save", "--partial", "--paddle=3", "s.prototxt", "out.prototxt"});
  CHECK(partial.code == 0);
  CHECK(partial.err.starts_with(
      "fleetrun: warning: left out: s.prototxt:3:3: execution_strategy.num_threads: "));
  CHECK(launch.folder.read("out.prototxt") == "nccl_comm_num: 2\n");
  CHECK(launch.run_words({"strategy", "save", "s.prototxt", "-"}).out == launch.folder.read("s.prototxt"));
}

TEST_CASE("strategy names a bad command line") {
  const Launch launch;
  launch.folder.write("s.prototxt", "");
  const auto complaint = [&](Words words) {
    words.insert(words.begin(), "strategy");
    const ChildResult result = launch.run_words(words);
    CHECK(result.code == 2);
    return result.err.substr(0, result.err.find('\n'));
  };
  CHECK(complaint({}) == "fleetrun: error: found no task, wanted save, load or show");
  CHECK(complaint({"lod", "s.prototxt"}) == "fleetrun: error: found lod, wanted save, load or show");
  CHECK(complaint({"load"}) == "fleetrun: error: found 0 words after load, wanted one strategy file");
  CHECK(complaint({"show"}) == "fleetrun: error: found no file, wanted a strategy file or a job file");
  CHECK(complaint({"save", "s.prototxt"}) ==
        "fleetrun: error: found no file to write, wanted JOB.json OUT.prototxt");
  CHECK(complaint({"save", "--paddle=4", "s.prototxt", "-"}) ==
        "fleetrun: error: --paddle is 4, wanted 2 or 3");
  CHECK(complaint({"save", "s.prototxt", "a=b", "-"}) ==
        "fleetrun: error: found a=b after a strategy file, wanted the file to write");
  CHECK(launch.run_words({"strategy", "load", "none.prototxt"}).code == 66);
}

TEST_CASE("a job trains with its strategy file, which its ranks do not read") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\nexecution_strategy { num_threads: 3 }\n");
  launch.folder.write("job.json", kJob);
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "--device=cpu", "job.json", "train.threads=1"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.out, "all-reduces by 2 communicators, each waited for; num_threads 3"),
                result.out);
}

TEST_CASE("a job with a bad strategy file ends before anything is started") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\nasp: true\n");
  launch.folder.write("job.json", kJob);
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--device=cpu", "job.json"});
  CHECK(result.code == 78);
  CHECK(result.err ==
        "fleetrun: error: s.prototxt:2:1: strategy.asp: found true, not supported by this build\n");
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("a launch of a program loads neither libprotobuf nor the library that reads strategy files") {
  const Launch launch;
  const ChildResult result =
      launch.run_words({"--nproc_per_node=1", "--console=all", "sh", "-c", "cat /proc/$PPID/maps"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "/bin/fleetrun"));
  CHECK_FALSE(contains(result.out, "libprotobuf"));
  CHECK_FALSE(contains(result.out, "libfleetrun_prototxt"));
}

}  // namespace
}  // namespace fleetrun::strategy_command_test

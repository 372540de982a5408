// fleetrun strategy, and jobs with a strategy file: what they print, and how they end.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/system/unique_fd.h"
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

TEST_CASE("strategy show shows inf and nan as they are in the file") {
  const Launch launch;
  launch.folder.write("s.prototxt", "amp_configs { incr_ratio: inf decr_ratio: nan }\n");
  const std::string out = launch.run_words({"strategy", "show", "s.prototxt"}).out;
  CHECK(contains(out, "incr_ratio  inf  "));
  CHECK(contains(out, "decr_ratio  nan  "));
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

TEST_CASE("strategy save replaces nothing but what it wrote itself") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2  # the nodes have two links\n");
  launch.folder.write("job.json", kJob);
  launch.folder.write("list.txt", "milk, bread\n");
  std::filesystem::create_symlink("list.txt", launch.folder / "link");
  for (const char* file : {"s.prototxt", "list.txt", "link"}) {
    CAPTURE(file);
    const std::string before = launch.folder.read(file);
    const ChildResult result = launch.run_words({"strategy", "save", "job.json", file});
    CHECK(result.code == 73);
    CHECK(result.err == fmt::format("fleetrun: error: {} is in the way: {} that fleetrun did not write\n"
                                    "  hint: choose another name, or move it away\n",
                                    file, file == std::string("link") ? "a link" : "a file"));
    CHECK(launch.folder.read(file) == before);
  }
  CHECK(std::filesystem::is_symlink(launch.folder / "link"));
  CHECK(launch.run_words({"strategy", "save", "job.json", "out"}).code == 0);
  std::filesystem::permissions(launch.folder / "out", std::filesystem::perms(0604));
  CHECK(launch.run_words({"strategy", "save", "job.json", "strategy.amp=true", "out"}).code == 0);
  CHECK(contains(launch.folder.read("out"), "amp: true"));
  CHECK(std::filesystem::status(launch.folder / "out").permissions() == std::filesystem::perms(0604));
}

TEST_CASE("strategy save writes no job file, as when the two names are swapped") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\n");
  launch.folder.write("job.json", kJob);
  for (const char* from : {"s.prototxt", "job.json"}) {
    const ChildResult result = launch.run_words({"strategy", "save", from, "job.json"});
    CHECK(result.code == 2);
    CHECK(contains(result.err,
                   "found job.json as the file to write, wanted a strategy file, such as OUT.prototxt"));
  }
  CHECK(launch.folder.read("job.json") == kJob);
}

TEST_CASE("strategy save writes into a pipe or its stdout, and leaves both what they are") {
  const Launch launch;
  launch.folder.write("s.prototxt", "nccl_comm_num: 2\n");
  const std::string pipe = launch.folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(launch.run_words({"strategy", "save", "s.prototxt", "pipe"}).code == 0);
  std::string text(100, '\0');
  text.resize(static_cast<std::size_t>(std::max(::read(reader.get(), text.data(), text.size()), ssize_t{0})));
  CHECK(text == "nccl_comm_num: 2\n");
  CHECK(std::filesystem::is_fifo(pipe));
  std::filesystem::create_symlink("/proc/self/fd/1", launch.folder / "stdout");  // as /dev/stdout is
  CHECK(launch.run_words({"strategy", "save", "s.prototxt", "stdout"}).out == "nccl_comm_num: 2\n");
  CHECK(std::filesystem::is_symlink(launch.folder / "stdout"));
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

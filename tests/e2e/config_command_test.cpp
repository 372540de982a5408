// fleetrun config: what it prints, and how it ends.
#include <regex>

#include "e2e/launcher.h"

namespace fleetrun::config_command_test {
namespace {

const char* const kJob = R"({
"model": {"name": "mlp"},
"data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}},
"strategy": {"thread_num": 2}
})";

TEST_CASE("config shows a line for each key, notes apart, and makes no file") {
  const Launch launch;
  launch.folder.write("job.json", kJob);
  const ChildResult result = launch.run_words({"config", "job.json", "train.epochs=3"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "\nmodel.hidden"));
  CHECK(std::regex_search(result.out, std::regex("\ntrain\\.epochs +3 +command line\n")));
  CHECK(contains(result.out, "  job.json:2:19\n"));
  CHECK(contains(result.out, "  alias strategy.thread_num, job.json:4:28\n"));
  CHECK(result.err ==
        "fleetrun: note: strategy.thread_num is taken as strategy.execution_strategy.num_threads\n");
  CHECK_FALSE(launch.folder.has("log"));
  CHECK_FALSE(launch.folder.has("output"));
}

TEST_CASE("config gives the values as JSON") {
  const Launch launch;
  launch.folder.write("job.json", kJob);
  const ChildResult result = launch.run_words({"config", "--json", "job.json"});
  const nlohmann::json shown = nlohmann::json::parse(result.out);
  CHECK(shown["file"] == "job.json");
  CHECK(shown["values"]["data.train.shape"]["value"] == nlohmann::json({1, 8, 8}));
  CHECK(shown["values"]["data.train.shape"]["origin"] == "job.json:3:67");
  CHECK(shown["notes"].size() == 1);
  CHECK(launch.run_words({"config", "job.json", "--json"}).out == result.out);
}

TEST_CASE("config prints the schema, the keys and its help without a job") {
  const Launch launch;
  CHECK(nlohmann::json::parse(launch.run_words({"config", "--schema"}).out)["title"] == "fleetrun job");
  CHECK(launch.run_words({"config", "--keys"}).out.starts_with("| key | value |"));
  CHECK(launch.run_words({"config", "--help"}).out.starts_with("usage: fleetrun config"));
}

TEST_CASE("config tells all that is wrong with a job at once") {
  const Launch launch;
  launch.folder.write("job.json", "{\"modle\": 1,\n\"train\": {\"epochs\": 0}}");
  const ChildResult result = launch.run_words({"config", "job.json"});
  CHECK(result.code == 78);
  CHECK(result.out == "");
  CHECK(result.err ==
        "fleetrun: error: job.json:1:1: model: found nothing, wanted an object\n"
        "job.json:1:1: data: found nothing, wanted an object\n"
        "job.json:1:2: modle: found an unknown key; did you mean \"model\"?\n"
        "job.json:2:21: train.epochs: found 0, wanted a whole number of at least 1\n");
}

TEST_CASE("config names a bad command line") {
  const Launch launch;
  const ChildResult unknown = launch.run_words({"config", "--shema"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err ==
        "fleetrun: error: unknown flag --shema; did you mean --schema?\n  hint: fleetrun config --help\n");
  CHECK(launch.run_words({"config"}).code == 2);
  CHECK(launch.run_words({"config", "nosuch.json"}).code == 66);
}

}  // namespace
}  // namespace fleetrun::config_command_test

#include "launch/nodes/terms.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launch/cli/command_line.h"

namespace fleetrun::launch::terms_test {
namespace {

LaunchOptions options_of(const std::vector<std::string>& words) {
  return parse_launch_options(words, {}).options;
}

Terms terms(const std::vector<std::string>& words, const std::string& job = "") {
  return terms_of(options_of(words), {}, job);
}

std::string value(const Terms& terms, const std::string& name) {
  const auto found =
      std::find_if(terms.begin(), terms.end(), [&](const auto& term) { return term.first == name; });
  return found == terms.end() ? "none" : found->second;
}

TEST_CASE("nodes of one run may differ in what concerns one node only") {
  CHECK(terms({"--ips=10.0.0.1,10.0.0.2", "--nproc_per_node=2", "--log_dir=a", "--node_rank=0",
               "train.py"}) == terms({"--ips=10.0.0.1, 10.0.0.2", "--nproc_per_node=4", "--log_dir=b",
                                      "--node_rank=1", "--console=all", "train.py"}));
}

TEST_CASE("what concerns the whole run is a term: flags, the program, its arguments") {
  const Terms one = terms({"--timeout=60", "train.py", "--lr", "0 1"});
  CHECK(value(one, "--timeout") == "60");
  CHECK(value(one, "the program") == "train.py");
  CHECK(value(one, "its arguments") == "--lr '0 1'");
  CHECK(value(one, "the device") == "cpu");
  CHECK(one != terms({"--timeout=61", "train.py", "--lr", "0 1"}));
}

TEST_CASE("of a job file each value is a term, and its folder is none") {
  const Terms one =
      terms({"a/job.json"}, R"({"train": {"epochs": 2}, "model": {"name": "mlp", "hidden": [1, 2]}})");
  CHECK(value(one, "train.epochs of the job file") == "2");
  CHECK(value(one, "model.hidden of the job file") == "[1, 2]");
  CHECK(one ==
        terms({"b/job.json"}, R"({"train": {"epochs": 2}, "model": {"name": "mlp", "hidden": [1,2]}})"));
}

TEST_CASE("terms are shown without the secrets among a job's variables") {
  CHECK(shown_term("env.API_TOKEN of the job file", "\"a\"") == "***");
  CHECK(shown_term("env.LEVEL of the job file", "3") == "3");
  CHECK(shown_term("its arguments", "'my job.json' env.API_TOKEN=a train.epochs=2") ==
        "'my job.json' 'env.API_TOKEN=***' train.epochs=2");
  CHECK(shown_term("its arguments", "nothing") == "nothing");
  CHECK(shown_term("its arguments", R"(job.json 'env={"API_TOKEN":"a"}')") ==
        R"(job.json 'env={"API_TOKEN": "***"}')");
  CHECK(shown_term("--timeout", "5") == "5");
}

TEST_CASE("terms are shown without the secrets among the variables of flags") {
  const Terms one = terms({"--env", "API_TOKEN=a b", "-x", "1:A_KEY=b", "--env=LEVEL=3", "train.py"});
  CHECK(shown_term("--env", value(one, "--env")) == "'API_TOKEN=***' '1:A_KEY=***' LEVEL=3");
  CHECK(one != terms({"--env", "API_TOKEN=c", "-x", "1:A_KEY=b", "--env=LEVEL=3", "train.py"}));
  CHECK(shown_term("--env", "'API_TOKEN=a") == "words that cannot be read");
  CHECK(shown_term("--env", "nothing") == "nothing");
  CHECK(shown_term("--nccl", "NCCL_DEBUG=INFO") == "NCCL_DEBUG=INFO");
}

}  // namespace
}  // namespace fleetrun::launch::terms_test

#include "launch/console/banner.h"

#include <cstdlib>
#include <ctime>
#include <sstream>

#include <doctest/doctest.h>

#include "base/system/file.h"
#include "launch/cli/command_line.h"
#include "launch/plan/env_dialects.h"
#include "launch/plan/world_lists.h"

namespace fleetrun::launch::banner_test {
namespace {

std::string expected(const std::string& name) {
  return read_file(std::string(FLEETRUN_SOURCE_DIR) + "/tests/launch/expected/" + name, 65536);
}

LaunchOptions options_of(const std::vector<std::string>& words) {
  return parse_launch_options(words, {}).options;
}

Environment first_worker(const std::vector<int>& ports, bool device_ids_given = true) {
  ClusterSpec cluster;
  Endpoints endpoints;
  cluster.device_ids_given = device_ids_given;
  for (const int port : ports) {
    cluster.device_ids.push_back({static_cast<int>(endpoints.ranks.size())});
    endpoints.ranks.push_back({"127.0.0.1", static_cast<std::uint16_t>(port)});
  }
  Environment environment;
  write_paddle_environment(cluster, endpoints, 0, {}, environment);
  write_world_lists(list_world(cluster, endpoints), "", environment);
  return environment;
}

TEST_CASE("the configuration banner is the published one") {
  CHECK(configuration_banner(options_of({"--gpus=0,1", "job.json"})) == expected("banner-gpus-0-1.txt"));
  CHECK(configuration_banner(options_of({"--nproc_per_node=4", "--log_dir=out", "train.py", "--lr",
                                         "0.1"})) == expected("banner-nproc-4-script.txt"));
}

TEST_CASE("the arguments of a job are shown without the secrets among its variables") {
  const std::string banner = configuration_banner(
      options_of({"job.json", "train.epochs=2", "env.LEVEL=3", "env.A_TOKEN=a", R"(env={"A_TOKEN":"a"})"}));
  CHECK(banner.find("training_script_args: ['train.epochs=2', 'env.LEVEL=3', 'env.A_TOKEN=***', "
                    "'env={\"A_TOKEN\": \"***\"}']\n") != std::string::npos);
}

TEST_CASE("the environment table is the published one") {
  CHECK(environment_table(first_worker({10097, 59371})) == expected("env-table-2-ranks.txt"));
  CHECK(environment_table(first_worker({20485, 5000, 5001, 5002, 5003, 23281, 41983, 17503})) ==
        expected("env-table-8-ranks.txt"));
}

TEST_CASE("without selected GPUs the table has four rows") {
  const std::string table = environment_table(first_worker({10097, 59371}, false));
  CHECK(table.find("FLAGS_selected_gpus") == std::string::npos);
  CHECK(table.find("PADDLE_TRAINER_ID") != std::string::npos);
}

TEST_CASE("a narrow terminal gets a narrow table, which wraps nowhere") {
  const Environment worker = first_worker({10097, 59371});
  CHECK(environment_table(worker, 60) ==
        "+==========================================================+\n"
        "|        Distributed Envs               Value              |\n"
        "+----------------------------------------------------------+\n"
        "| PADDLE_CURRENT_ENDPOINT          127.0.0.1:10097         |\n"
        "|     PADDLE_TRAINERS_NUM                 2                |\n"
        "|PADDLE_TRAINER_ENDPOINTS  127.0.0.1:10097,127.0.0.1:59371 |\n"
        "|     FLAGS_selected_gpus                 0                |\n"
        "|       PADDLE_TRAINER_ID                 0                |\n"
        "+==========================================================+\n");
  for (std::size_t columns = 40; columns < 120; ++columns) {
    std::istringstream table(environment_table(worker, columns));
    for (std::string line; std::getline(table, line);) CHECK(line.size() <= columns);
  }
  CHECK(environment_table(worker, 39).starts_with("PADDLE_CURRENT_ENDPOINT: 127.0.0.1:10097\n"));
}

TEST_CASE("a list is written as Python writes it") {
  CHECK(python_list({}) == "[]");
  CHECK(python_list({"a", "it's", "\"both\" it's", "back\\slash", "a\nb\tc", "\x01"}) ==
        R"(['a', "it's", '"both" it\'s', 'back\\slash', 'a\nb\tc', '\x01'])");
}

TEST_CASE("a log line has level, local time with milliseconds and our name") {
  const std::time_t noon = 1611067852;
  std::tm local{};
  ::localtime_r(&noon, &local);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  const auto time = std::chrono::system_clock::from_time_t(noon) + std::chrono::milliseconds(7);
  CHECK(log_text("INFO", time, "hello") == "INFO " + std::string(text) + ",007 fleetrun] hello\n");
  const auto before_1970 = std::chrono::system_clock::time_point(std::chrono::milliseconds(-1));
  CHECK(log_text("INFO", before_1970, "hello").ends_with(":59,999 fleetrun] hello\n"));
}

}  // namespace
}  // namespace fleetrun::launch::banner_test

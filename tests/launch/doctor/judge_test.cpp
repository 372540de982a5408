#include "launch/doctor/judge.h"

#include <doctest/doctest.h>

#include "launch/doctor/examined.h"

namespace fleetrun::launch::judge_test {
namespace {

using Texts = std::vector<std::string>;
using testing::healthy;
using testing::texts_of;

TEST_CASE("nothing is wrong with nodes that are alike") {
  for (const int nodes : {1, 2, 3, 8}) CHECK(texts_of(judge(healthy(nodes))) == Texts{});
}

TEST_CASE("a node that did not join is named, and the others are judged") {
  Examination examination = healthy(3);
  examination.nodes[1] = {.address = "10.0.0.2",
                          .silent = "it did not join within 5 s (--join_timeout)",
                          .facts = {},
                          .clock = {},
                          .speed = {}};
  examination.nodes[2].facts->shm_free = 1 << 20;
  CHECK(texts_of(judge(examination)) ==
        Texts{"absent: node 1 (10.0.0.2): it did not join within 5 s (--join_timeout)",
              "shm: node 2 (10.0.0.3, host2): /dev/shm has 1 MiB free, wanted 64 MiB"});
}

TEST_CASE("the node is named that differs from most, also if it is the first") {
  Examination examination = healthy(3);
  examination.nodes[0].facts->binary = "xyz";
  examination.nodes[2].facts->terms = {{"--grace", "3"}};
  CHECK(
      texts_of(judge_sameness(examination)) ==
      Texts{
          "fleetrun: node 0 (10.0.0.1, host0): the hash of the program fleetrun is xyz, and abc on the other nodes",
          "settings: node 2 (10.0.0.3, host2): --grace is 3, and 10 on the other nodes"});
}

TEST_CASE("a term that differs is named without its secret") {
  Examination examination = healthy(3);
  for (int node = 0; node < 3; ++node)
    examination.nodes[static_cast<std::size_t>(node)].facts->terms = {
        {"--env", node == 2 ? "API_TOKEN=b LEVEL=1" : "API_TOKEN=a LEVEL=2"}};
  CHECK(texts_of(judge_sameness(examination)) ==
        Texts{"settings: node 2 (10.0.0.3, host2): --env is 'API_TOKEN=***' LEVEL=1, and 'API_TOKEN=***' "
              "LEVEL=2 on the other nodes"});
}

TEST_CASE("a node that cannot read its job file is named once") {
  Examination examination = healthy(2);
  examination.nodes[1].facts->job_problem = "job.json: No such file or directory (errno 2)";
  examination.nodes[1].facts->terms.clear();
  CHECK(texts_of(judge_sameness(examination)) ==
        Texts{"job: node 1 (10.0.0.2, host1): job.json: No such file or directory (errno 2)"});
}

TEST_CASE(
    "a full disk is named once for all folders on one path, and a folder without permission with the reason") {
  Examination examination = healthy(1);
  examination.nodes[0].facts->folders = {
      {"--log_dir", "/full", 5 << 20, ""},
      {"output.dir", "/full", 5 << 20, ""},
      {"checkpoint.dir", "/theirs", 0, "fleetrun may not write to /theirs"}};
  CHECK(texts_of(judge_resources(examination)) ==
        Texts{"disk: node 0 (10.0.0.1, host0): the disk of /full (--log_dir) has 5 MiB free, wanted 256 MiB",
              "disk: node 0 (10.0.0.1, host0): /theirs (checkpoint.dir): fleetrun may not write to /theirs"});
}

TEST_CASE("a taken port that the user named is a finding, and PaddlePaddle's port a remark") {
  Examination examination = healthy(1);
  examination.nodes[0].facts->taken = {
      {6070, false, "pid 7 (nc)"}, {7000, true, "pid 8 (nc)"}, {7001, true, "pid 8 (nc)"}};
  const auto findings = judge(examination);
  CHECK(
      texts_of(findings) ==
      Texts{"ports: node 0 (10.0.0.1, host0): port 7000, 7001 is taken by pid 8 (nc)",
            "ports: node 0 (10.0.0.1, host0): port 6070 is taken by pid 7 (nc); the ranks get other ports"});
  CHECK(findings[0].serious);
  CHECK_FALSE(findings[1].serious);
}

TEST_CASE("of three clocks the one is named that differs, also if it is that of the first node") {
  Examination examination = healthy(3);
  for (const int node : {1, 2}) examination.nodes[static_cast<std::size_t>(node)].clock->seconds = -3;
  CHECK(texts_of(judge_clocks(examination)) ==
        Texts{"clock: node 0 (10.0.0.1, host0): its clock is 3.00 s ahead of that of the other nodes"});
  examination.nodes[0].clock->error = 4;  // the measurement says nothing
  CHECK(judge_clocks(examination).empty());
}

TEST_CASE("of two clocks the second is compared with the first") {
  Examination examination = healthy(2);
  examination.nodes[1].clock->seconds = -3;
  CHECK(texts_of(judge_clocks(examination)) ==
        Texts{"clock: node 1 (10.0.0.2, host1): its clock is 3.00 s behind that of node 0"});
}

TEST_CASE("a CPU below 0.9 of the median is slow") {
  Examination examination = healthy(3);
  examination.nodes[1].speed->gflops = 18.1;
  CHECK(slow_nodes(examination).empty());
  examination.nodes[1].speed->gflops = 17.9;
  CHECK(slow_nodes(examination) == std::vector<int>{1});
}

TEST_CASE("a CPU that was measured again is compared with the node that was measured beside it") {
  Examination examination = healthy(3);
  examination.nodes[0].speed->gflops = 30;
  CHECK(usual_node(examination, 1) == 2);
  examination.nodes[1].speed = CpuSpeed{.gflops = 15, .share = 1, .beside = 16};
  CHECK(slow_nodes(examination).empty());
  examination.nodes[1].speed->beside = 17;
  CHECK(slow_nodes(examination) == std::vector<int>{1});
}

TEST_CASE("a CPU that other programs use is not called slow, however slow it is beside them") {
  Examination examination = healthy(3);
  examination.nodes[1].speed = CpuSpeed{.gflops = 5, .share = 0.6, .beside = {}};
  CHECK(slow_nodes(examination).empty());
}

TEST_CASE(
    "while other programs use the other cores, the doctor does not call a CPU slow, and says so in a remark") {
  Examination examination = healthy(3);
  examination.nodes[1].speed = CpuSpeed{.gflops = 15, .share = 1, .others = 0.4};
  CHECK(slow_nodes(examination).empty());
  const auto findings = judge(examination);
  CHECK(texts_of(findings) ==
        Texts{"busy: node 1 (10.0.0.2, host1): other programs use its CPUs: 40 % of all its cores"});
  CHECK_FALSE(findings[0].serious);
  examination.nodes[1].speed->others = 0.05;
  CHECK(slow_nodes(examination) == std::vector<int>{1});
}

TEST_CASE("a slow CPU is measured before and after a usual one, and the faster measurement counts") {
  Examination examination = healthy(3);
  const auto confirm = [&](double before, double usual, double after) {
    take_confirmation({.before = {.gflops = before}, .usual = {.gflops = usual}, .after = {.gflops = after}},
                      1, 2, examination);
    return slow_nodes(examination);
  };
  CHECK(confirm(15, 20, 16) == std::vector<int>{1});
  CHECK(confirm(15, 20, 19).empty());  // the machine of both becomes faster
  CHECK(confirm(19, 20, 15).empty());  // or slower
  examination.nodes[1] = healthy(3).nodes[1];
  examination.nodes[1].facts->cpu_limit = 0.5;
  examination.nodes[1].speed->gflops = 10;
  take_confirmation(
      {.before = {.gflops = 10}, .usual = {.gflops = 10, .others = 0.5}, .after = {.gflops = 10}}, 1, 2,
      examination);
  CHECK(slow_nodes(examination) == std::vector<int>{1});  // other programs beside the usual one
}

TEST_CASE("time that a cgroup takes makes a node slow, and time that other programs take is a remark") {
  Examination examination = healthy(2);
  examination.nodes[1].speed = CpuSpeed{.gflops = 10, .share = 0.5, .beside = {}};
  auto findings = judge(examination);
  CHECK(
      texts_of(findings) ==
      Texts{
          "busy: node 1 (10.0.0.2, host1): other programs use its CPUs: one thread got only 50 % of a core"});
  CHECK_FALSE(findings[0].serious);
  examination.nodes[1].facts->cpu_limit = 0.5;
  findings = judge(examination);
  CHECK(
      texts_of(findings) ==
      Texts{
          "cpu: node 1 (10.0.0.2, host1): its CPU is slow: 10.0 GFLOP/s, and 20.0 on the median node; its cgroup "
          "allows 0.5 cores"});
  CHECK(findings[0].serious);
}

TEST_CASE("a node with fewer GPUs than the others is named") {
  Examination examination = healthy(3);
  for (const std::size_t node : {0U, 2U}) examination.nodes[node].facts->gpus = {"A", "A"};
  examination.nodes[1].facts->gpus = {"A"};
  CHECK(texts_of(judge_devices(examination)) ==
        Texts{"gpus: node 1 (10.0.0.2, host1): the number of GPUs is 1, and 2 on the other nodes"});
}

TEST_CASE("what a node says about itself arrives as it was sent") {
  Examination examination = healthy(1);
  NodeFacts& facts = *examination.nodes[0].facts;
  facts.taken = {{7000, true, "pid 8 (nc)"}};
  facts.cpu_limit = 1.5;
  facts.probe = {"10.0.0.1", 6070};
  facts.nccl = {"one"};
  CHECK(to_json(to_value(read_node_facts(to_value(facts)))) == to_json(to_value(facts)));
}

TEST_CASE("an answer in which anything is missing is no error") {
  CHECK(read_node_facts(JsonValue::object()).host.empty());
  CHECK(read_link_facts(JsonValue()).segments == 0);
}

}  // namespace
}  // namespace fleetrun::launch::judge_test

#include "launch/starters/agent_order.h"

#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::agent_order_test {
namespace {

AgentOrder order_by(StartBy starter) {
  AgentOrder order = {.key = {},
                      .folder = "/home/me/a \"b\"",
                      .environment = {"LR=0.1", "EMPTY="},
                      .called_as = CalledAs::torchrun,
                      .hosts = "n1:4,n2:4,n3",
                      .allocation = {.scheduler = Scheduler::slurm,
                                     .found_in = "SLURM_JOB_NODELIST",
                                     .node_count = 3,
                                     .nodes = {{"n1", 4}, {"n2", 4}, {"n3", std::nullopt}},
                                     .started_on_every_node = true,
                                     .start_by = starter,
                                     .job_id = "4242",
                                     .job_id_source = "SLURM_JOB_ID"},
                      .node = {}};
  for (std::size_t i = 0; i < RunKey::kBytes; ++i) order.key.bytes[i] = static_cast<std::uint8_t>(7 * i);
  return order;
}

std::optional<int> node_of(StartBy starter, const test::Texts& variables, const std::string& host = "n9") {
  return find_agent_node(order_by(starter), test::facts_of(variables).environment, host);
}

TEST_CASE("an order arrives as it was sent, on one line") {
  AgentOrder order = order_by(StartBy::srun);
  const std::string text = to_text(order);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK((parse_agent_order(text) == order));
  order.node = 2;
  CHECK((parse_agent_order(to_text(order)) == order));
  order.folder = "/home/caf\xe9";
  order.environment = {"NAME=caf\xc3\xa9", "BYTES=\x01\x7f\x80\xbf\xc0\xff"};
  CHECK((parse_agent_order(to_text(order)) == order));
}

TEST_CASE("a text that is no order is an error that says what is wrong") {
  CHECK(test::error_of([] { parse_agent_order("n1"); }) ==
        "what the fleetrun on the first node sent to start this node makes no sense: it is not JSON | "
        "all nodes need the same version of fleetrun");
  std::string text = to_text(order_by(StartBy::ssh));
  CHECK(test::error_of([&] { parse_agent_order(text.substr(0, text.size() / 2)); }) != "no error");
  text.replace(text.find("00070e"), 6, "00070g");
  CHECK(test::error_of([&] { parse_agent_order(text); }).find("its key is not hexadecimal") !=
        std::string::npos);
  CHECK(test::error_of([] { parse_agent_order("{}"); }).find("\"key\" is missing") != std::string::npos);
}

TEST_CASE("variables of a login session or of a machine stay where they are") {
  Environment environment;
  for (const char* name : {"LR", "PATH", "CUDA_VISIBLE_DEVICES", "PADDLE_JOB_ID"}) environment.set(name, "x");
  for (const char* name : {"HOME", "PWD", "SSH_CONNECTION", "XDG_RUNTIME_DIR", "HOSTNAME", "DISPLAY"})
    environment.set(name, "x");
  environment.set("BYTES", "\xff");
  CHECK(forwarded_variables(environment) == std::vector<std::string>{"BYTES=\xff", "CUDA_VISIBLE_DEVICES=x",
                                                                     "LR=x", "PADDLE_JOB_ID=x", "PATH=x"});
}

TEST_CASE("an agent finds its node by what its starter tells it") {
  AgentOrder order = order_by(StartBy::ssh);
  order.node = 2;
  CHECK(find_agent_node(order, {}, "n1") == 2);
  CHECK(node_of(StartBy::srun, {{"SLURMD_NODENAME", "n2"}}) == 1);
  CHECK(node_of(StartBy::mpirun, {{"OMPI_COMM_WORLD_RANK", "1"}}) == 2);  // task 0 is on n2
  CHECK(node_of(StartBy::mpirun, {{"PMI_RANK", "0"}}) == 1);
}

TEST_CASE("without a variable an agent finds its node by the name of its host") {
  CHECK(node_of(StartBy::pbsdsh, {}, "n3") == 2);
  CHECK(node_of(StartBy::pbsdsh, {}, "n2.cluster.example") == 1);
  CHECK(node_of(StartBy::pbsdsh, {}, "n1") == 0);
  CHECK_FALSE(node_of(StartBy::pbsdsh, {}, "login"));
}

}  // namespace
}  // namespace fleetrun::launch::agent_order_test

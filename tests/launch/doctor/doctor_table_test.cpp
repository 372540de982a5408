#include "launch/doctor/doctor_table.h"

#include <doctest/doctest.h>

#include <sstream>

#include "base/json/json_reader.h"
#include "launch/doctor/examined.h"

namespace fleetrun::launch::doctor_table_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("no line of the table is longer than 80 characters") {
  for (const int nodes : {1, 4, 14, 40}) {
    Examination examination = testing::healthy(nodes);
    examination.nodes[0].address = "fd00:1234:5678:9abc:def0:1234:5678:9abc";
    examination.nodes[0].facts->host = "a-very-long-host-name.of.some.cluster.example.org";
    examination.nodes[0].facts->shm_free = 0;
    std::istringstream text(doctor_table(examination, judge(examination)));
    for (std::string line; std::getline(text, line);) CHECK_MESSAGE(line.size() <= 80, line);
  }
}

TEST_CASE("the table says which node cannot connect to which, and what is wrong") {
  Examination examination = testing::healthy(2);
  examination.reach[0].problem = "no answer";
  examination.links.erase(examination.links.begin());
  const std::string text = doctor_table(examination, judge(examination));
  CHECK_MESSAGE(contains(text, "\n   0     .   NO\n   1    50    .\n"), text);
  CHECK_MESSAGE(contains(text, "\n1 finding\n* node 1 (10.0.0.2, host1): node 0 cannot connect to it"), text);
}

TEST_CASE("the table says that nothing is wrong, and notes follow") {
  Examination examination = testing::healthy(2);
  CHECK(contains(doctor_table(examination, judge(examination)), "\nnothing wrong was found\n"));
  examination.nodes[0].speed = CpuSpeed{10, 0.5};
  CHECK(contains(doctor_table(examination, judge(examination)),
                 "\nnothing wrong was found\n  note: node 0 (10.0.0.1, host0): other programs"));
}

TEST_CASE("the JSON has all facts and findings") {
  Examination examination = testing::healthy(2);
  examination.nodes[1].facts->shm_free = 0;
  const JsonValue root = read_json(doctor_json(examination, judge(examination))).root;
  CHECK(root.find("nodes")->value.items.size() == 2);
  CHECK(root.find("reach")->value.items.size() == 2);
  CHECK(root.find("links")->value.items.size() == 2);
  REQUIRE(root.find("findings")->value.items.size() == 1);
  const JsonValue& finding = root.find("findings")->value.items[0];
  CHECK(finding.find("topic")->value.text == "shm");
  CHECK(finding.find("nodes")->value.items[0].integer == 1);
}

TEST_CASE("the JSON has the terms without their secrets") {
  Examination examination = testing::healthy(1);
  examination.nodes[0].facts->terms = {{"--env", "API_TOKEN=hunter"}, {"--grace", "3"}};
  const std::string text = doctor_json(examination, {});
  CHECK_FALSE(contains(text, "hunter"));
  CHECK(contains(text, "'API_TOKEN=***'"));
  CHECK(contains(text, "\"3\""));
}

TEST_CASE("a text is wrapped between words") {
  CHECK(wrap_words("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap_words("", 7).empty());
}

}  // namespace
}  // namespace fleetrun::launch::doctor_table_test

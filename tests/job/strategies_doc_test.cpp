// docs/strategies.md tells what each switch does: it knows every one of them, and their defaults.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "job/keys/job_keys.h"
#include "job/keys/key.h"

namespace fleetrun::job::strategies_doc_test {
namespace {

std::string document() {
  std::ifstream file(FLEETRUN_SOURCE_DIR "/docs/strategies.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Below strategy, without objects: those of this build, and those that are refused.
void collect(const Key& object, const std::string& path, std::map<std::string, bool>& supported) {
  for (const Key& key : object.members) {
    const std::string below = path.empty() ? key.name : path + "." + key.name;
    const bool is_later = key.rules.support == Support::later;
    if (key.is_object() && !is_later)
      collect(key, below, supported);
    else if (!key.name.ends_with("_configs"))
      supported[below] = !is_later;
  }
}

std::map<std::string, bool> strategy_switches() {
  std::map<std::string, bool> supported;
  const Key keys = job_keys();
  collect(*find_key(keys, "strategy"), "", supported);
  return supported;
}

TEST_CASE("docs/strategies.md has a row for every switch of this build") {
  const std::string text = document();
  CHECK(text.find("EFFECT(") == std::string::npos);  // where a measurement is to be put in
  for (const auto& [key, is_supported] : strategy_switches()) {
    if (!is_supported) continue;
    CAPTURE(key);
    CHECK(text.find("`" + key + "`") != std::string::npos);
  }
}

TEST_CASE("docs/strategies.md has no row for a key that there is not") {
  const std::map<std::string, bool> switches = strategy_switches();
  std::istringstream lines(document());
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    ++rows;
    const std::string cell = line.substr(2, line.find(" | ") - 2);
    for (std::size_t begin = cell.find('`'); begin != std::string::npos;) {
      const std::size_t end = cell.find('`', begin + 1);
      const std::string key = cell.substr(begin + 1, end - begin - 1);
      CAPTURE(key);
      CHECK(switches.count(key) == 1);
      begin = cell.find('`', end + 1);
    }
  }
  CHECK(rows > 20);
}

}  // namespace
}  // namespace fleetrun::job::strategies_doc_test

#include "base/run/eval_folder.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::eval_folder_test {
namespace {

TEST_CASE("a report replaces the one before, with the files that only that one had") {
  const TemporaryFolder home;
  const std::string folder = home / "eval";
  require_own_eval_folder(folder);
  publish_eval_report(folder, {{"report.txt", "first"}, {"job.json", "{}"}});
  require_own_eval_folder(folder);
  publish_eval_report(folder, {{"report.txt", "second"}});
  CHECK(home.read("eval/report.txt") == "second");
  CHECK_FALSE(home.has("eval/job.json"));
}

TEST_CASE("hunt 2: an evaluation that was killed while it replaced the report blocks no other one") {
  const TemporaryFolder home;
  const std::string folder = home / "eval";
  publish_eval_report(folder, {{"report.txt", "second"}});
  const std::string second = home.read("eval/.fleetrun_eval");
  publish_eval_report(folder, {{"report.txt", "first"}, {"report.json", "first"}});
  home.write("eval/.fleetrun_eval", home.read("eval/.fleetrun_eval") + second);  // as it is at that moment
  home.write("eval/report.txt", "second");
  require_own_eval_folder(folder);
  publish_eval_report(folder, {{"report.txt", "third"}});
  CHECK(home.read("eval/report.txt") == "third");
}

TEST_CASE("a file of the user under the name of a report is refused, and nothing is replaced") {
  const TemporaryFolder home;
  const std::string folder = home / "eval";
  publish_eval_report(folder, {{"report.txt", "first"}});
  home.write("eval/confusion.csv", "mine");
  CHECK_THROWS_AS(publish_eval_report(folder, {{"report.txt", "second"}}), Error);
  CHECK(home.read("eval/report.txt") == "first");
  CHECK(home.read("eval/confusion.csv") == "mine");
}

}  // namespace
}  // namespace fleetrun::eval_folder_test

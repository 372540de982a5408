#include "launch/page/run_page.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/processor_time.h"
#include "support/slowdown.h"

namespace fleetrun::launch::run_page_test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

PageFacts failed_run() {
  PageFacts facts = {.name = "default", .run_id = "default-1", .host = "alpha", .command = "python train.py"};
  facts.end = PageEnd{.cause = "exited",
                      .message = "rank 1 exited with code 3",
                      .exit_code = 3,
                      .exception = "ValueError: bad batch (train.py:12, in main)",
                      .last_lines = {"loading", "<script>alert(1)</script> & more"},
                      .text = "fleetrun: rank 1 exited with code 3\n"};
  facts.ranks = {
      {.rank = 0, .state = "killed by SIGTERM (15)", .role = "stopped", .log = "workerlog.0"},
      {.rank = 1, .state = "exited with code 3", .role = "primary", .log = "workerlog.1", .peak_kib = 20480}};
  return facts;
}

TEST_CASE("the page of a failure has the cause, the last lines, what the others did and links to the logs") {
  const std::string page = run_page(failed_run());
  for (const char* part :
       {"ended with code 3", "2 ranks on alpha", "rank 1 exited with code 3", "ValueError: bad batch",
        "loading", "killed by SIGTERM (15)", "href=\"workerlog.0\"", "20 MiB", "prefers-color-scheme"})
    CHECK_MESSAGE(has(page, part), part);
  CHECK(!has(page, "<main data-running"));
}

TEST_CASE("text of other people stays text: no tag, no end of an attribute") {
  PageFacts facts = failed_run();
  for (std::string* text :
       {&facts.name, &facts.host, &facts.command, &facts.run_id, &facts.end->message, &facts.end->exception,
        &facts.end->cause, &facts.ranks[0].state, &facts.ranks[0].log})
    *text = "\"'><script>alert(2)</script>";
  facts.job = {{"env.A", "\"</td><script>alert(2)</script>\"", "<script>alert(2)</script>", true}};
  facts.attempts = {{0, "<script>alert(2)</script>", "attempt-0"}};
  facts.notes = {"<script>alert(2)</script>"};
  const std::string page = run_page(facts);
  CHECK(!has(page, "<script>alert"));
  CHECK(has(page, "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"));
  CHECK(has(page, "&quot;&#39;&gt;&lt;script&gt;"));
}

TEST_CASE("a page of a job has curves, goodput, the parts of a step and the job with its defaults folded") {
  PageFacts facts = {.name = "job", .progress = "training  epoch 1/2"};
  facts.history = parse_history(
      "step,loss,acc1,learning_rate,images_per_second,test_acc1\n1,2.5,0.1,0.1,900,\n2,,,,,0.5\n");
  facts.ranks = {
      {.rank = 0, .state = "running", .steps = 10, .spent_ns = {60'000'000, 30'000'000, 10'000'000}}};
  facts.job = {{"train.epochs", "2", "job.json:3:5", true}, {"train.seed", "1", "default", false}};
  const std::string page = run_page(facts);
  for (const char* part :
       {"<main data-running", "1 rank on ", "Loss", "Accuracy", "Learning rate", "Throughput",
        "compute 60.0 %", "<td class=\"n\">6.00</td>", "<td class=\"n\">10.00</td>", "training  epoch 1/2",
        "<details id=\"defaults\">", "train.seed"})
    CHECK_MESSAGE(has(page, part), part);
}

TEST_CASE("a page of 20,000 logged steps and 8 ranks has at most 2 MB and is drawn within a second") {
  std::string csv = "step,loss,acc1,learning_rate,images_per_second\n";
  for (int i = 1; i <= 20'000; ++i)
    csv += fmt::format("{},{},{},0.1,{}\n", i, 2.5 / i, i / 2e4, 900 + i % 97);
  PageFacts facts;
  facts.ranks.resize(8);
  std::string page;
  const double seconds = testing::processor_seconds_of([&] {
    facts.history = parse_history(csv);
    page = run_page(facts);
  });
  CHECK(seconds < 1 * testing::kSlowdown);
  CHECK(page.size() <= 2'000'000);
}

}  // namespace
}  // namespace fleetrun::launch::run_page_test

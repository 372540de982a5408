#include "runtime/observe/train_report.h"

#include <numeric>

#include <fmt/format.h>

#include "base/json/json_value.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "runtime/observe/time_book.h"

namespace fleetrun::runtime {
namespace {

// Seconds of a rank in the middle, and which part of them was what.
JsonValue goodput(const TrainReport& report) {
  const double seconds =
      static_cast<double>(std::accumulate(report.time.begin(), report.time.end(), std::int64_t{0})) /
      report.timed_ranks / 1e9;
  const std::array<int, kTimeUses> shares = shares_of(report.time);
  JsonValue json = JsonValue::object({{"seconds", seconds}});
  for (std::size_t use = 0; use < kTimeUses; ++use)
    json.add(std::string(kTimeUseNames[use]), shares[use] / 1000.0);
  return json;
}

// What was done, and of a training that was stopped also what was planned.
std::string length_of(const TrainReport& report) {
  if (!report.stopped)
    return fmt::format("{}, {}", plural(report.epochs, "epoch"), plural(report.steps, "step"));
  return fmt::format("{} of {} ({} of {})", report.steps, plural(report.planned_steps, "step"),
                     report.whole_epochs, plural(report.planned_epochs, "epoch"));
}

}  // namespace

std::string to_json(const TrainReport& report) {
  JsonValue json = JsonValue::object({{"world_size", report.world_size},
                                      {"epochs", report.epochs},
                                      {"steps", report.steps},
                                      {"train_seconds", report.train_seconds},
                                      {"images_per_second", report.images_per_second},
                                      {"parameter_bytes", report.parameter_bytes},
                                      {"gradient_bytes", report.gradient_bytes},
                                      {"sent_bytes", report.sent_bytes},
                                      {"activation_bytes", report.activation_bytes},
                                      {"activation_bytes_saved", report.activation_bytes_saved},
                                      {"in_place_pairs", report.in_place_pairs},
                                      {"goodput", goodput(report)}});
  json.add("classes", report.classes);
  json.add("train_samples", report.train_samples);
  if (report.test_samples > 0) json.add("test_samples", report.test_samples);
  if (report.loss) json.add("loss", *report.loss);
  if (report.whole_epochs < report.epochs) json.add("whole_epochs", report.whole_epochs);
  if (report.skipped_samples > 0) json.add("skipped_samples", report.skipped_samples);
  if (report.resumed_at > 0) json.add("resumed_at", report.resumed_at);
  if (report.stopped) {
    json.add("stopped", true);
    json.add("planned_epochs", report.planned_epochs);
    json.add("planned_steps", report.planned_steps);
  }
  if (!report.checkpoint.empty()) json.add("checkpoint", report.checkpoint);
  if (!report.resume.empty()) json.add("resume", report.resume);
  if (report.test_loss) json.add("test_loss", *report.test_loss);
  if (report.test_accuracy) json.add("test_accuracy", *report.test_accuracy);
  if (report.test_epochs) json.add("test_epochs", *report.test_epochs);
  if (report.best) {
    ScoredEpoch epoch = report.best->epoch;
    epoch.data_set.clear();  // they only tell a resumed training whether its scores can be compared
    epoch.place = 0;
    JsonValue best = as_json(epoch);
    best.add("file", report.best->file);
    json.add("best", std::move(best));
  }
  if (!report.early_end.empty()) json.add("early_stopping", report.early_end);
  if (!report.run_id.empty()) json.add("run_id", report.run_id);
  return to_json_tall(json);
}

std::string describe(const TrainReport& report) {
  std::string text =
      fmt::format("trained {} on {} in {:.1f} s: {:.1f} images/s", length_of(report),
                  plural(report.world_size, "rank"), report.train_seconds, report.images_per_second);
  if (report.resumed_at > 0) text += fmt::format(", resumed at step {}", report.resumed_at);
  if (report.skipped_samples > 0)
    text += fmt::format(", {} skipped", plural(report.skipped_samples, "sample"));
  if (report.test_accuracy) text += fmt::format(", test accuracy {:.5f}", *report.test_accuracy);
  if (report.test_epochs) text += fmt::format(" after {}", plural(*report.test_epochs, "epoch"));
  return text;
}

std::string describe_data(const TrainReport& report) {
  const std::string test =
      report.test_samples > 0 ? fmt::format(", {} for the test", plural(report.test_samples, "image")) : "";
  return fmt::format("data: {} of {}{}", plural(report.train_samples, "image"),
                     plural(report.classes, "class", "es"), test);
}

std::string describe_best(const TrainReport& report) {
  std::string lines;
  if (!report.early_end.empty()) lines += report.early_end + '\n';
  if (report.best)
    lines += fmt::format("best epoch {}: {}, weights: {}\n", report.best->epoch.epoch,
                         describe(report.best->epoch), printable(report.best->file));
  return lines;
}

std::string describe_memory(const TrainReport& report) {
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); };
  return fmt::format(
      "memory per rank: parameters {:.1f} MiB, gradients {:.1f} MiB, activations {:.1f} MiB ({:.1f} MiB saved, {} in-place pairs)",
      mib(report.parameter_bytes), mib(report.gradient_bytes), mib(report.activation_bytes),
      mib(report.activation_bytes_saved), report.in_place_pairs);
}

}  // namespace fleetrun::runtime

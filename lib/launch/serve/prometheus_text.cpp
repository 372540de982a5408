#include "launch/serve/prometheus_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/text/printable.h"

namespace fleetrun::launch {
namespace {

// As many digits as a double has. NaN and infinity as Prometheus writes them.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// The families one after the other, each with its help and type, as the format wants it.
class Writer {
 public:
  void family(const std::string& name, const char* type, const char* help) {
    name_ = "fleetrun_" + name;
    text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name_, type, help);
  }
  void sample(double value, const std::string& labels = "") {
    text_ += name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + number(value) + "\n";
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

std::string label(const char* name, const std::string& value) {
  return fmt::format("{}=\"{}\"", name, escape_label(value));
}
std::string rank_label(const RunMetrics& run, std::size_t rank) {
  return fmt::format("rank=\"{}\"", static_cast<std::size_t>(run.first_rank) + rank);
}

void write_run(const RunMetrics& run, Writer& writer) {
  writer.family("info", "gauge", "The run of these metrics.");
  writer.sample(1, fmt::format("{},{},{},{}", label("run_id", run.run_id), label("job_id", run.job_id),
                               label("host", run.host), label("version", run.version)));
  writer.family("start_time_seconds", "gauge", "Start of the run, in seconds since 1970.");
  writer.sample(run.start_time);
  writer.family("restarts_total", "counter", "Restarts of all ranks after a failure.");
  writer.sample(run.restarts);
  writer.family("workers", "gauge", "Number of ranks.");
  writer.sample(static_cast<double>(run.ranks.size()));
  writer.family("worker_up", "gauge", "1 while the rank's process runs, otherwise 0.");
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    writer.sample(run.ranks[rank].up ? 1 : 0, rank_label(run, rank));
  writer.family("worker_exit_code", "gauge",
                "Exit code of the rank in this attempt; 128 + n after signal n.");
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    if (const auto& code = run.ranks[rank].exit_code) writer.sample(*code, rank_label(run, rank));
  if (!run.exit_code) return;
  writer.family("exit_code", "gauge", "Exit code of the run; docs/exit-codes.md lists them.");
  writer.sample(*run.exit_code);
}

using ValueOf = std::function<double(const RankMetrics& rank, const Progress& progress)>;

struct RankFamily {
  const char* name;
  const char* type;
  const char* help;
  ValueOf value;
};

const std::vector<RankFamily>& rank_families() {
  static const std::vector<RankFamily> families = {
      {"epoch", "gauge", "Current epoch, from 0.", [](const auto&, const auto& at) { return at.epoch; }},
      {"epochs", "gauge", "Epochs of the whole training; 0 if unknown.",
       [](const auto&, const auto& at) { return at.epochs; }},
      {"step", "gauge", "Steps done, those before a checkpoint included.",
       [](const auto&, const auto& at) { return static_cast<double>(at.step); }},
      {"steps", "gauge", "Steps of the whole training; 0 if unknown.",
       [](const auto&, const auto& at) { return static_cast<double>(at.steps); }},
      {"loss", "gauge", "The last loss that the rank fetched.",
       [](const auto&, const auto& at) { return at.loss; }},
      {"images_per_second", "gauge", "Speed of the rank in its last step.",
       [](const auto&, const auto& at) { return at.images_per_second; }},
      {"communication_ratio", "gauge", "Part of its last step in which the rank only communicated.",
       [](const auto& rank, const auto&) { return rank.communication_share; }},
      {"heartbeat_age_seconds", "gauge", "Time since the last sign of life of the rank.",
       [](const auto& rank, const auto&) { return rank.heartbeat_age; }},
  };
  return families;
}

void write_training(const RunMetrics& run, Writer& writer) {
  for (const RankFamily& family : rank_families()) {
    writer.family(family.name, family.type, family.help);
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
      if (const auto& progress = run.ranks[rank].progress)
        writer.sample(family.value(run.ranks[rank], *progress), rank_label(run, rank));
  }
  writer.family("phase", "gauge", "1 for the current phase of the rank.");
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    if (const auto& progress = run.ranks[rank].progress)
      writer.sample(1, fmt::format("{},phase=\"{}\"", rank_label(run, rank), describe(progress->phase)));
  writer.family("time_seconds_total", "counter",
                "Time of the rank since the run began, by use (docs/seeing-a-run.md).");
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    for (std::size_t use = 0; use < kTimeUses; ++use)
      writer.sample(static_cast<double>(run.ranks[rank].spent_ns[use]) / 1e9,
                    fmt::format("{},use=\"{}\"", rank_label(run, rank), kTimeUseNames[use]));
}

struct GpuFamily {
  const char* name;
  const char* help;
  double (*value)(const GpuLoad& load);  // less than 0: not known
};

constexpr std::array kGpuFamilies = {
    GpuFamily{"gpu_utilization_ratio",
              "Part of the last second in which a kernel ran on the GPU of the rank.",
              [](const GpuLoad& load) { return load.busy_percent / 100.0; }},
    GpuFamily{"gpu_memory_used_bytes", "Memory of the GPU of the rank that is in use, by all processes.",
              [](const GpuLoad& load) { return static_cast<double>(load.memory_used); }},
    GpuFamily{"gpu_memory_total_bytes", "Memory of the GPU of the rank.",
              [](const GpuLoad& load) { return static_cast<double>(load.memory_total); }},
    GpuFamily{"gpu_temperature_celsius", "Temperature of the GPU of the rank.",
              [](const GpuLoad& load) { return static_cast<double>(load.celsius); }},
    GpuFamily{"gpu_power_watts", "Power that the GPU of the rank draws.",
              [](const GpuLoad& load) { return static_cast<double>(load.milliwatts) / 1000; }},
};

void write_gpus(const RunMetrics& run, Writer& writer) {
  for (const GpuFamily& family : kGpuFamilies) {
    const auto is_known = [&](const RankMetrics& rank) { return family.value(rank.gpu) >= 0; };
    if (std::ranges::none_of(run.ranks, is_known)) continue;
    writer.family(family.name, "gauge", family.help);
    for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
      if (is_known(run.ranks[rank])) writer.sample(family.value(run.ranks[rank].gpu), rank_label(run, rank));
  }
}

void write_stragglers(const RunMetrics& run, Writer& writer) {
  writer.family("straggler_ratio", "gauge",
                "Time per step without communication of a rank that was found to be slow, divided by the "
                "median of the ranks.");
  for (const StragglerMetrics& one : run.stragglers)
    writer.sample(one.factor, fmt::format("rank=\"{}\",{},{}", one.rank, label("host", one.host),
                                          label("phase", one.phase)));
}

}  // namespace

std::string escape_label(const std::string& text) {
  std::string escaped;
  for (const char letter : valid_utf8(text)) {
    if (letter == '\\' || letter == '"') escaped += '\\';
    if (letter == '\n')
      escaped += "\\n";
    else
      escaped += letter;
  }
  return escaped;
}

std::string prometheus_text(const RunMetrics& run) {
  Writer writer;
  write_run(run, writer);
  if (!run.ranks.empty() && run.ranks.front().progress) write_training(run, writer);
  write_gpus(run, writer);
  if (!run.stragglers.empty()) write_stragglers(run, writer);
  return writer.take();
}

}  // namespace fleetrun::launch

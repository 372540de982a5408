#include "launch/serve/figures_json.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

std::string as_text(double value) { return fmt::format("{}", value); }

double double_in(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::text);
  return value == nullptr ? 0 : std::strtod(value->text.c_str(), nullptr);
}

template <typename Number>
Number whole_in(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::integer);
  return value != nullptr && std::in_range<Number>(value->integer) ? static_cast<Number>(value->integer) : 0;
}

JsonValue progress_json(const std::optional<Progress>& progress) {
  if (!progress) return JsonValue();
  return JsonValue::object({{"phase", static_cast<int>(progress->phase)},
                            {"epoch", progress->epoch},
                            {"epochs", progress->epochs},
                            {"step", progress->step},
                            {"steps", progress->steps},
                            {"loss", as_text(progress->loss)},
                            {"images_per_second", as_text(progress->images_per_second)}});
}

std::optional<Progress> progress_in(const JsonValue& rank) {
  const JsonValue* const value = rank.find("progress", Kind::object);
  if (value == nullptr) return std::nullopt;
  const int last = static_cast<int>(Phase::finished);
  return Progress{.phase = static_cast<Phase>(std::clamp(whole_in<int>(*value, "phase"), 0, last)),
                  .epoch = whole_in<std::uint32_t>(*value, "epoch"),
                  .epochs = whole_in<std::uint32_t>(*value, "epochs"),
                  .step = whole_in<std::uint64_t>(*value, "step"),
                  .steps = whole_in<std::uint64_t>(*value, "steps"),
                  .loss = double_in(*value, "loss"),
                  .images_per_second = double_in(*value, "images_per_second")};
}

GpuLoad gpu_in(const JsonValue& rank) {
  const JsonValue* const gpu = rank.find("gpu", Kind::object);
  if (gpu == nullptr) return {};
  const auto read = [&](const char* key, auto& value) {
    if (gpu->find(key, Kind::integer) != nullptr) value = whole_in<std::decay_t<decltype(value)>>(*gpu, key);
  };
  GpuLoad load;
  read("busy_percent", load.busy_percent);
  read("memory_used", load.memory_used);
  read("memory_total", load.memory_total);
  read("celsius", load.celsius);
  read("milliwatts", load.milliwatts);
  return load;
}

JsonValue rank_figures(const RankMetrics& rank) {
  JsonValue spent = JsonValue::list({});
  for (const std::int64_t time : rank.spent_ns) spent.items.emplace_back(time);
  return JsonValue::object({{"up", rank.up},
                            {"exit_code", rank.exit_code},
                            {"progress", progress_json(rank.progress)},
                            {"spent_ns", spent},
                            {"communication_share", as_text(rank.communication_share)},
                            {"heartbeat_age", as_text(rank.heartbeat_age)},
                            {"first_step", rank.first_step},
                            {"peak_kib", rank.peak_kib},
                            {"gpu", gpu_json(rank.gpu)}});
}

RankMetrics read_rank(const JsonValue& value) {
  const JsonValue* const up = value.find("up", Kind::boolean);
  RankMetrics rank = {.up = up != nullptr && up->boolean,
                      .exit_code = {},
                      .progress = progress_in(value),
                      .spent_ns = {},
                      .communication_share = double_in(value, "communication_share"),
                      .heartbeat_age = double_in(value, "heartbeat_age"),
                      .first_step = whole_in<std::uint64_t>(value, "first_step"),
                      .peak_kib = whole_in<std::uint64_t>(value, "peak_kib"),
                      .gpu = gpu_in(value)};
  if (value.find("exit_code", Kind::integer) != nullptr) rank.exit_code = whole_in<int>(value, "exit_code");
  const JsonValue* const spent = value.find("spent_ns", Kind::list);
  for (std::size_t use = 0; spent != nullptr && use < std::min(kTimeUses, spent->items.size()); ++use)
    rank.spent_ns[use] = spent->items[use].integer;
  return rank;
}

}  // namespace

JsonValue gpu_json(const GpuLoad& load) {
  if (load == GpuLoad()) return {};
  JsonValue json = JsonValue::object();
  const auto add = [&](const char* key, std::int64_t value) {
    if (value >= 0) json.add(key, value);
  };
  add("busy_percent", load.busy_percent);
  add("memory_used", load.memory_used);
  add("memory_total", load.memory_total);
  add("celsius", load.celsius);
  add("milliwatts", load.milliwatts);
  return json;
}

JsonValue figures_json(const std::vector<RankMetrics>& ranks) {
  JsonValue list = JsonValue::list({});
  for (const RankMetrics& rank : ranks) list.items.push_back(rank_figures(rank));
  return JsonValue::object({{"figures", list}});
}

std::vector<RankMetrics> read_figures(const JsonValue& figures) {
  std::vector<RankMetrics> ranks;
  const JsonValue* const list = figures.find("figures", Kind::list);
  if (list == nullptr) return ranks;
  for (const JsonValue& rank : list->items) ranks.push_back(read_rank(rank));
  return ranks;
}

}  // namespace fleetrun::launch

#include "launch/cli/tune_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/text/plural.h"
#include "job/read/json_tree.h"
#include "launch/cli/bench_table.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

constexpr double kLeastBudget = 1, kMostBudget = 24 * 3600;
constexpr std::size_t kMostMemory = std::size_t{1} << 50;

double number_at(const JsonValue& object, const char* key) {
  const JsonMember* const member = object.find(key);
  return member == nullptr ? 0 : member->value.number;
}

std::string text_at(const JsonValue& object, const char* key) {
  const JsonMember* const member = object.find(key);
  return member == nullptr ? "" : member->value.text;
}

std::vector<std::string> texts_at(const JsonValue& object, const char* key) {
  std::vector<std::string> texts;
  if (const JsonValue* const list = object.find(key, Kind::list))
    for (const JsonValue& item : list->items) texts.push_back(item.text);
  return texts;
}

std::vector<JsonValue> items_at(const JsonValue& object, const char* key) {
  const JsonValue* const list = object.find(key, Kind::list);
  return list == nullptr ? std::vector<JsonValue>() : list->items;
}

std::string beginning(const JsonValue& result) {
  const std::string ranks = plural(static_cast<int>(number_at(result, "ranks")), "rank");
  const JsonMember* const kept = result.find("kept");
  if (kept != nullptr && kept->value.boolean)
    return fmt::format("{}: no step was timed, because the result of {} is kept (--again measures anew)\n",
                       ranks, text_at(result, "made"));
  return fmt::format("{}: {} timed in {:.0f} s\n", ranks,
                     plural(static_cast<int>(number_at(result, "timed_steps")), "step"),
                     number_at(result, "seconds"));
}

std::string effect_row(const JsonValue& effect, std::size_t width) {
  return fmt::format("{:{}}  {:5.3f}  {:5.3f} to {:5.3f}  {:5}\n", text_at(effect, "name"), width,
                     number_at(effect, "ratio"), number_at(effect, "low"), number_at(effect, "high"),
                     static_cast<int>(number_at(effect, "turns")));
}

std::size_t widest_name(const std::vector<JsonValue>& effects, std::size_t least) {
  for (const JsonValue& effect : effects) least = std::max(least, text_at(effect, "name").size());
  return least;
}

std::string tried_table(const JsonValue& result) {
  const std::vector<JsonValue> tried = items_at(result, "tried");
  const std::size_t width = widest_name(tried, 20);
  std::string text = fmt::format(
      "a step of the unchanged job takes {:.3g} ms. Each ratio is the time of a step with the setting, divided by this time:\n\n{:{}}  ratio  95 % interval   turns\n",
      number_at(result, "default_ms"), "setting", width);
  for (const JsonValue& effect : tried) text += effect_row(effect, width);
  if (const auto same = texts_at(result, "same"); !same.empty())
    text += fmt::format("no change here, or not possible: {}\n", fmt::join(same, "; "));
  if (const auto left = texts_at(result, "left_out"); !left.empty())
    text += fmt::format("not tried, because the budget is too small: {}\n", fmt::join(left, "; "));
  return text;
}

std::string verdict(const JsonValue& result) {
  const JsonValue* const confirmed = result.find("confirmed", Kind::object);
  const std::vector<std::string> settings = texts_at(result, "settings");
  if (confirmed == nullptr && settings.empty()) return "\nresult: nothing is faster than the unchanged job\n";
  if (confirmed == nullptr) return fmt::format("\nresult: {}\n", fmt::join(settings, " "));
  const std::string found =
      fmt::format("{} takes {:.3f} ({:.3f} to {:.3f}) of the time, in {} turns against the unchanged job",
                  text_at(*confirmed, "name"), number_at(*confirmed, "ratio"), number_at(*confirmed, "low"),
                  number_at(*confirmed, "high"), static_cast<int>(number_at(*confirmed, "turns")));
  if (!settings.empty()) return "\nresult: " + found + "\n";
  return fmt::format("\nresult: the unchanged job; {}, which is not a clear difference\n", found);
}

std::string explanation(const JsonValue& result) {
  const std::vector<JsonValue> explained = items_at(result, "explained");
  if (explained.empty()) return "";
  std::string text = "\nthe result without one of its settings, divided by the result:\n";
  const std::size_t width = widest_name(explained, 20);
  for (const JsonValue& effect : explained) {
    std::string row = effect_row(effect, width);
    row.pop_back();
    const double low = number_at(effect, "low"), high = number_at(effect, "high");
    const char* const words = low > 1    ? "it makes the step faster"
                              : high < 1 ? "it makes the step slower"
                                         : "no clear effect";
    text += fmt::format("{}  {}\n", row, number_at(effect, "turns") > 0 ? words : "no effect here");
  }
  return text;
}

}  // namespace

std::vector<Flag> tune_flags() {
  return {
      {.names = {"--budget"}, .argument = "TIME", .help = "Time for everything: 90s, 3m or 1h (default: 3m)"},
      {.names = {"--memory"},
       .argument = "SIZE",
       .help =
           "Memory that a rank may use, such as 8GB. Also tries larger batches and recompute that fit into it"},
      {.names = {"--amp"},
       .help = "Also try mixed precision and sums in half precision, which change the results"},
      {.names = {"--explain"},
       .help = "Also measure which setting of the result matters, and how sure that is"},
      {.names = {"--again"}, .help = "Measure even if this host has kept a result for this job"},
      {.names = {"--json"}, .help = "Print JSON"},
  };
}

double parse_duration(const std::string& source, const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  const std::string unit(stop, end);
  const double seconds = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  const double value = number * seconds;
  if (problem != std::errc() || !(value >= kLeastBudget && value <= kMostBudget))
    throw Error(
        ErrorKind::usage,
        fmt::format("{} is \"{}\", wanted a time from 1s to 24h, such as 90s, 3m or 1h", source, text));
  return value;
}

TuneRequest parse_tune_flags(const FoundFlags& found) {
  TuneRequest request = {
      .amp = found.has("--amp"), .explain = found.has("--explain"), .again = found.has("--again")};
  if (const auto text = found.value("--budget")) request.budget_seconds = parse_duration("--budget", *text);
  if (const auto text = found.value("--memory"))
    request.memory = static_cast<std::int64_t>(parse_size("--memory", *text, kMostMemory));
  return request;
}

std::vector<std::string> tuned_settings(const JsonValue& result) { return texts_at(result, "settings"); }

JsonValue settings_as_job(const std::vector<std::string>& settings) {
  JsonValue root = JsonValue::object();
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    const std::string value = setting.substr(equals + 1);
    const JsonDocument document = read_json(value);  // a word such as Reduce is not JSON but text
    job::put_at(root, setting.substr(0, equals),
                document.problems.empty() && document.complete ? document.root : JsonValue(value));
  }
  return root;
}

std::string tune_table(const JsonValue& result) {
  std::string text = beginning(result) + tried_table(result) + verdict(result) + explanation(result);
  text += "\nthe published advice:\n";
  for (const std::string& note : texts_at(result, "notes")) text += "  " + note + "\n";
  return text;
}

}  // namespace fleetrun::launch

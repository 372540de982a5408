#include "launch/console/banner.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json/redact_variables.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kBorders = 2;
constexpr std::size_t kLongestName = 24;      // characters
constexpr std::size_t kLeastValueWidth = 12;  // that an endpoint's port and the end of its host fit into

struct TableWidths {
  std::size_t indent = 4;
  std::size_t name = 40;   // right-aligned
  std::size_t value = 45;  // centred

  std::size_t all() const { return indent + kBorders + name + kGap + value; }
};
static_assert(TableWidths().indent + kBorders + 40 + kGap + 45 == kTableColumns);

// In the order of the published tables.
constexpr std::array kTableNames = {"PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINERS_NUM",
                                    "PADDLE_TRAINER_ENDPOINTS", "FLAGS_selected_gpus", "PADDLE_TRAINER_ID"};

// The last characters of a value that does not fit.
std::string shortened(const std::string& value, std::size_t width) {
  constexpr std::string_view kDots = "... ";
  if (value.size() < width) return value;
  return fmt::format("{}{}", kDots, value.substr(value.size() - (width - kDots.size())));
}

std::string table_row(const std::string& name, const std::string& value, const TableWidths& widths) {
  return fmt::format("{:{}}|{:>{}}{:{}}{:^{}}|\n", "", widths.indent, name, widths.name, "", kGap,
                     shortened(value, widths.value), widths.value);
}

std::string table_line(char kind, const TableWidths& widths) {
  return fmt::format("{:{}}+{}+\n", "", widths.indent, std::string(widths.name + kGap + widths.value, kind));
}

std::string environment_list(const Environment& worker) {
  std::string text;
  for (const char* name : kTableNames)
    if (const auto value = worker.get(name)) text += fmt::format("{}: {}\n", name, *value);
  return text;
}

// As Python's repr() of a str: single quotes unless only double ones avoid a backslash.
std::string python_repr(const std::string& text) {
  const bool use_double = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = use_double ? '"' : '\'';
  std::string repr(1, quote);
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == quote || letter == '\\')
      repr += {'\\', letter};
    else if (letter == '\n')
      repr += "\\n";
    else if (letter == '\r')
      repr += "\\r";
    else if (letter == '\t')
      repr += "\\t";
    else if (code < 0x20 || code == 0x7f)
      repr += fmt::format("\\x{:02x}", code);
    else
      repr += letter;
  }
  return repr + quote;
}

}  // namespace

std::string python_list(const std::vector<std::string>& items) {
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const std::string& item : items) texts.push_back(python_repr(item));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string configuration_banner(const LaunchOptions& options) {
  const auto& workers = options.nproc_per_node.value;
  std::string text = "-----------  Configuration Arguments -----------\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  add("gpus", options.gpus.value.value_or("None"));
  add("heter_worker_num", "None");
  add("heter_workers", "");
  add("http_port", "None");
  add("ips", options.ips.value);
  add("log_dir", options.log_dir.value);
  add("nproc_per_node", workers ? show_value(*workers) : "None");
  add("server_num", "None");
  add("servers", "");
  add("training_script", options.program);
  add("training_script_args", python_list(redact_variables(options.arguments)));
  add("worker_num", "None");
  add("workers", "");
  return text + std::string(48, '-') + "\n";
}

std::string environment_table(const Environment& worker, std::size_t columns) {
  TableWidths widths;
  if (columns < widths.all()) {
    const std::size_t rest = kBorders + kLongestName + kGap;
    if (columns < rest + kLeastValueWidth) return environment_list(worker);
    widths = {.indent = 0, .name = kLongestName, .value = std::min(widths.value, columns - rest)};
  }
  std::string text =
      table_line('=', widths) + table_row("Distributed Envs", "Value", widths) + table_line('-', widths);
  for (const char* name : kTableNames)
    if (const auto value = worker.get(name)) text += table_row(name, *value, widths);
  return text + table_line('=', widths);
}

std::string log_text(std::string_view level, std::chrono::system_clock::time_point time,
                     std::string_view message) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);  // downwards, also before 1970
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("{} {},{:03} fleetrun] {}\n", level, text, milliseconds, message);
}

}  // namespace fleetrun::launch

#include "launch/cli/help.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json/json_value.h"
#include "base/text/printable.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kWidth = 100;     // characters of a line of help
constexpr std::size_t kFlagWidth = 26;  // a longer flag stands on a line of its own

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (column > indent && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) lines += ' ';
    lines += word;
    column += word.size() + (column > indent ? 1 : 0);
    start = end + 1;
  }
  return lines;
}

std::string row(const std::string& name, const std::string& meaning) {
  const bool own_line = name.size() + 4 > kFlagWidth;
  return fmt::format(
      "  {}{}{}\n", name,
      own_line ? "\n" + std::string(kFlagWidth, ' ') : std::string(kFlagWidth - 2 - name.size(), ' '),
      wrapped(meaning, kFlagWidth));
}

std::string rows(const std::vector<Flag>& flags, const std::string& section) {
  std::string text;
  for (const Flag& flag : flags)
    if (flag.shown() && flag.section == section) text += row(describe_flag(flag), describe_meaning(flag));
  return text;
}

// Of flags of another launcher only their names: its users know what they mean.
std::string names_in(const std::vector<Flag>& flags, const std::string& section) {
  std::vector<std::string> names;
  for (const Flag& flag : flags)
    if (flag.section == section) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return fmt::format("  {}\n", wrapped(fmt::format("{}", fmt::join(names, " ")), 2));
}

bool is_foreign(const std::vector<Flag>& flags, const std::string& section) {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const Flag& flag) { return flag.foreign && flag.section == section; });
}

// In the order of the table.
std::vector<std::string> sections_of(const std::vector<Flag>& table) {
  std::vector<std::string> sections;
  for (const Flag& flag : table)
    if (flag.shown() && std::find(sections.begin(), sections.end(), flag.section) == sections.end())
      sections.push_back(flag.section);
  return sections;
}

std::string_view describe(Origin origin) {
  constexpr std::array<std::string_view, 4> kNames = {"default", "file", "environment", "flag"};
  return kNames.at(static_cast<std::size_t>(origin));
}

std::vector<const Flag*> with_values(const std::vector<Flag>& table) {
  std::vector<const Flag*> flags;
  for (const Flag& flag : table)
    if (flag.show != nullptr) flags.push_back(&flag);
  return flags;
}

std::string config_as_text(const std::vector<const Flag*>& flags) {
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const Flag* flag : flags) {
    name_width = std::max(name_width, flag->name().size() - 2);
    value_width = std::max(value_width, flag->show().size());
  }
  std::string text;
  for (const Flag* flag : flags) {
    const Source source = flag->shown_source();
    const std::string value = flag->show();
    text += fmt::format("{:{}}  {:{}}  {}\n", flag->name().substr(2), name_width, value.empty() ? "-" : value,
                        value_width, source.name.empty() ? describe(source.origin) : source.name);
  }
  return text;
}

std::string config_as_json(const std::vector<const Flag*>& flags) {
  JsonValue document = JsonValue::object();
  for (const Flag* flag : flags) {
    const Source source = flag->shown_source();
    const std::string value = flag->show();
    JsonValue entry = JsonValue::object();
    entry.add("value", value.empty() ? JsonValue() : JsonValue(value));
    entry.add("origin", std::string(describe(source.origin)));
    if (!source.name.empty()) entry.add("source", source.name);
    document.add(flag->name().substr(2), std::move(entry));
  }
  return to_json_lines(document);
}

}  // namespace

const std::vector<std::string>& launch_forms() {
  static const std::vector<std::string> forms = {"[flags] script.py|program [arguments]",
                                                 "[flags] job.json [key.path=value ...]",
                                                 "[flags] -- program [arguments]", "subcommand [arguments]"};
  return forms;
}

std::string describe_flag(const Flag& flag) {
  std::vector<std::string> names = flag.names;
  for (std::string& name : names) {
    if (flag.needs_value()) name += " " + flag.argument;
    if (!flag.bare.empty()) name += "[=" + flag.argument + "]";
  }
  // "--help, -h"; the meaning of a flag with a value lists its other names
  return flag.takes_value() ? names.front() : fmt::format("{}", fmt::join(names, ", "));
}

std::string describe_meaning(const Flag& flag) {
  std::vector<std::string> notes;
  if (flag.show != nullptr && !flag.show().empty()) notes.push_back("default: " + flag.show());
  if (!flag.variable.empty()) notes.push_back("$" + flag.variable);
  if (flag.takes_value() && flag.names.size() > 1)
    notes.push_back(fmt::format("also {}", fmt::join(flag.names.begin() + 1, flag.names.end(), ", ")));
  if (flag.repeats) notes.emplace_back("may be given several times");
  return notes.empty() ? flag.help : fmt::format("{} ({})", flag.help, fmt::join(notes, "; "));
}

std::string launch_help(const std::vector<Flag>& table, const std::vector<Subcommand>& subcommands) {
  std::string text;
  for (const std::string& form : launch_forms())
    text += fmt::format("{} fleetrun {}\n", text.empty() ? "usage:" : "      ", form);
  text +=
      "\nStarts one worker per device and supervises them. A worker runs a script or a program, with the\n"
      "environment variables of PaddlePaddle and PyTorch set. Or it trains what a job.json describes, without\n"
      "Python. Flags go before the script or program; fleetrun interprets nothing after it. A flag wins over\n"
      "its environment variable ($NAME), which wins over the file of --config.\n";
  for (const std::string& section : sections_of(table))
    if (is_foreign(table, section))
      text += fmt::format("\n{} (man fleetrun explains them):\n{}", section, names_in(table, section));
    else
      text += fmt::format("\n{}:\n{}", section, rows(table, section));
  text += "\nSubcommands (each has --help; to run a program of the same name, put -- before it):\n";
  for (const Subcommand& one : subcommands) text += row(one.name, one.summary);
  return text;
}

std::string subcommand_help(const Subcommand& subcommand) {
  return fmt::format("usage: fleetrun {}{}{}\n\n{}\n\n{}{}", subcommand.name,
                     subcommand.arguments.empty() ? "" : " ", subcommand.arguments,
                     wrapped(subcommand.summary + ".", 0),
                     subcommand.details.empty() ? "" : wrapped(subcommand.details, 0) + "\n\n",
                     rows(flags_of(subcommand), ""));
}

std::string describe_config(const std::vector<Flag>& table, const std::string& format) {
  return format == "json" ? config_as_json(with_values(table))
                          : printable_lines(config_as_text(with_values(table)));
}

}  // namespace fleetrun::launch

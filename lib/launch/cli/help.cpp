#include "launch/cli/help.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_value.h"
#include "base/printable.h"

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

std::string rows(const std::vector<Option>& options, const std::string& section) {
  std::string text;
  for (const Option& option : options)
    if (option.shown() && option.section == section)
      text += row(describe_flag(option), describe_meaning(option));
  return text;
}

// Of flags of another launcher only their names: its users know what they mean.
std::string names_in(const std::vector<Option>& options, const std::string& section) {
  std::vector<std::string> names;
  for (const Option& option : options)
    if (option.section == section) names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("  {}\n", wrapped(fmt::format("{}", fmt::join(names, " ")), 2));
}

bool is_foreign(const std::vector<Option>& options, const std::string& section) {
  return std::any_of(options.begin(), options.end(),
                     [&](const Option& option) { return option.foreign && option.section == section; });
}

// In the order of the table.
std::vector<std::string> sections_of(const std::vector<Option>& table) {
  std::vector<std::string> sections;
  for (const Option& option : table)
    if (option.shown() && std::find(sections.begin(), sections.end(), option.section) == sections.end())
      sections.push_back(option.section);
  return sections;
}

std::string_view describe(Origin origin) {
  constexpr std::array<std::string_view, 4> kNames = {"default", "file", "environment", "flag"};
  return kNames.at(static_cast<std::size_t>(origin));
}

std::vector<const Option*> with_values(const std::vector<Option>& table) {
  std::vector<const Option*> options;
  for (const Option& option : table)
    if (option.show != nullptr && !option.is_called("--show_config") && !option.is_called("--dry_run"))
      options.push_back(&option);
  return options;
}

std::string config_as_text(const std::vector<const Option*>& options) {
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const Option* option : options) {
    name_width = std::max(name_width, option->name().size() - 2);
    value_width = std::max(value_width, option->show().size());
  }
  std::string text;
  for (const Option* option : options) {
    const Source source = option->shown_source();
    const std::string value = option->show();
    text +=
        fmt::format("{:{}}  {:{}}  {}\n", option->name().substr(2), name_width, value.empty() ? "-" : value,
                    value_width, source.name.empty() ? describe(source.origin) : source.name);
  }
  return text;
}

std::string config_as_json(const std::vector<const Option*>& options) {
  JsonValue document = JsonValue::of_object();
  for (const Option* option : options) {
    const Source source = option->shown_source();
    const std::string value = option->show();
    JsonValue entry = JsonValue::of_object();
    entry.add("value", value.empty() ? JsonValue() : JsonValue::of_text(value));
    entry.add("origin", JsonValue::of_text(std::string(describe(source.origin))));
    if (!source.name.empty()) entry.add("source", JsonValue::of_text(source.name));
    document.add(option->name().substr(2), std::move(entry));
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

std::string describe_flag(const Option& option) {
  std::vector<std::string> names = option.names;
  for (std::string& name : names) {
    if (option.takes == Option::Takes::value) name += " " + option.argument;
    if (option.takes == Option::Takes::optional_value) name += "[=" + option.argument + "]";
  }
  const bool aliases = option.takes == Option::Takes::nothing;  // "--help, -h"; others stand in the meaning
  return aliases ? fmt::format("{}", fmt::join(names, ", ")) : names.front();
}

std::string describe_meaning(const Option& option) {
  std::vector<std::string> notes;
  if (option.show != nullptr && !option.show().empty()) notes.push_back("default: " + option.show());
  if (!option.variable.empty()) notes.push_back("$" + option.variable);
  if (option.takes != Option::Takes::nothing && option.names.size() > 1)
    notes.push_back(fmt::format("also {}", fmt::join(option.names.begin() + 1, option.names.end(), ", ")));
  if (option.repeats) notes.emplace_back("may be given several times");
  return notes.empty() ? option.help : fmt::format("{} ({})", option.help, fmt::join(notes, "; "));
}

std::string launch_help(const std::vector<Option>& table) {
  std::string text;
  for (const std::string& form : launch_forms())
    text += fmt::format("{} fleetrun {}\n", text.empty() ? "usage:" : "      ", form);
  text +=
      "\nStarts one worker per device and watches over them: a script or program with the environments of\n"
      "PaddlePaddle and PyTorch, or what a job file says, without Python. Nothing behind the script or "
      "program\n"
      "is interpreted. A flag wins over the environment, which wins over the file of --config.\n";
  for (const std::string& section : sections_of(table))
    if (is_foreign(table, section))
      text += fmt::format("\n{} (man fleetrun explains them):\n{}", section, names_in(table, section));
    else
      text += fmt::format("\n{}:\n{}", section, rows(table, section));
  text += "\nSubcommands (each has --help; behind -- a program may have their names):\n";
  for (const Subcommand& one : subcommands()) text += row(one.name, one.summary);
  return text;
}

std::string subcommand_help(const Subcommand& subcommand) {
  return fmt::format("usage: fleetrun {}{}{}\n\n{}\n\n{}", subcommand.name,
                     subcommand.arguments.empty() ? "" : " ", subcommand.arguments, subcommand.summary,
                     rows(subcommand.options, ""));
}

std::string describe_config(const std::vector<Option>& table, const std::string& format) {
  return format == "json" ? config_as_json(with_values(table))
                          : printable_lines(config_as_text(with_values(table)));
}

}  // namespace fleetrun::launch

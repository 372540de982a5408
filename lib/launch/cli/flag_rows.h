// What the rows of the tables of flags are made of.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "launch/cli/flag.h"
#include "launch/cli/flag_values.h"

namespace fleetrun::launch {

// Several spellings in one text, as "--gpus,--devices".
std::vector<std::string> split_names(const std::string& text);

// A flag with a value of its own. `parse` takes the source's name and the text, and throws Error(usage).
template <typename T, typename Parse>
// NOLINTNEXTLINE(readability-function-size): the columns of a row of the table
Option value(const std::string& names, std::string argument, std::string variable, Setting<T>& setting,
             Parse parse, std::string help) {
  Option option{.names = split_names(names),
                .argument = std::move(argument),
                .variable = std::move(variable),
                .help = std::move(help)};
  option.set = [&setting, parse](const std::string& text, const Source& source) {
    setting = {parse(source.name, text), source.origin, source.name};
  };
  option.show = [&setting] { return show_value(setting.value); };
  option.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return option;
}

// A flag that may come several times, each with one item of a list.
template <typename T, typename Parse>
Option list(const std::string& names, std::string argument, Setting<std::vector<T>>& setting, Parse parse,
            std::string help) {
  Option option{.names = split_names(names), .argument = std::move(argument), .help = std::move(help)};
  option.repeats = true;
  option.set = [&setting, parse](const std::string& text, const Source& source) {
    setting.value.push_back(parse(source.name, text));
    setting.origin = source.origin;
    setting.source = source.name;
  };
  option.show = [&setting] { return show_value(setting.value); };
  option.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return option;
}

Option on_or_off(const std::string& names, Setting<bool>& setting, std::string help);

// A feature of several nodes or of later versions: takes only the values that mean "without it".
Option only(const std::string& names, std::vector<std::string> allowed, std::string variable,
            const std::string& feature, std::string help);

// Known, and refused with the reason.
Option refused(const std::string& names, const std::string& why, std::string help = "");

// Known and without effect here: adds "--flag: why" to `notes`. `harmless` values say nothing.
Option noted(const std::string& names, std::string argument, std::vector<std::string>& notes, std::string why,
             const std::vector<std::string>& harmless = {});

// Answered instead of launching; options.cpp looks whether it was given.
Option question(const std::string& names, std::string help);

// Changes of a row, for rows that need them.
Option completing(Option::Completes what, Option option);
Option one_of(std::vector<std::string> choices, Option option);
Option with_optional_value(Option option);

// All of them under this heading of --help.
std::vector<Option> in_section(const char* section, std::vector<Option> options);

// Flags of another launcher: --help only lists their names, the manual page explains them.
std::vector<Option> accepted_from(const char* launcher, std::vector<Option> options);

std::string as_text(const std::string& source, const std::string& text);

}  // namespace fleetrun::launch

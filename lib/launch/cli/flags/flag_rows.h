// What makes a row of the table of flags do something. Each function takes a row and fills in `set` and `show`.
#pragma once
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/flags/flag_values.h"

namespace fleetrun::launch {

std::string listed(const std::vector<std::string>& names);  // "cpu, cuda or auto"

template <typename T>
Flag showing(const Setting<T>& setting, Flag flag) {
  flag.show = [&setting] { return show_value(setting.value); };
  flag.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return flag;
}

// Sets `setting`. `parse` takes the name of the source and the text, and throws Error(usage).
template <typename T, typename Parse>
Flag value(Setting<T>& setting, Parse parse, Flag flag) {
  flag.set = [&setting, parse](const std::string& text, const Source& source) {
    setting = {parse(source.name, text), source.origin, source.name};
  };
  return showing(setting, std::move(flag));
}

// The names of an enumeration's values, in the order in which messages list them.
template <typename T>
using Names = std::vector<std::pair<std::string, T>>;

template <typename T>
Flag choice(Setting<T>& setting, const std::type_identity_t<Names<T>>& names, Flag flag) {
  for (const auto& [name, value] : names) flag.choices.push_back(name);
  flag.set = [&setting, names, choices = flag.choices](const std::string& text, const Source& source) {
    for (const auto& [name, value] : names)
      if (name == text) return void(setting = {value, source.origin, source.name});
    throw bad_value(source.name, text, listed(choices));
  };
  flag.show = [&setting, names] {
    for (const auto& [name, value] : names)
      if (value == setting.value) return name;
    return std::string();
  };
  flag.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return flag;
}

// Adds to a list: the flag may be given several times, each time with one item.
template <typename T, typename Parse>
Flag item(Setting<std::vector<T>>& setting, Parse parse, Flag flag) {
  flag.repeats = true;
  flag.set = [&setting, parse](const std::string& text, const Source& source) {
    setting.value.push_back(parse(source.name, text));
    setting.origin = source.origin;
    setting.source = source.name;
  };
  return showing(setting, std::move(flag));
}

Flag on_or_off(Setting<bool>& setting, Flag flag);

// Takes only its `choices`, all of which mean "without `feature`"; "more than one node is" needs no more words.
Flag only(const std::string& feature, Flag flag);

// Refused with the reason.
Flag refused(const std::string& why, Flag flag);

// Has no effect here: adds "--flag has no effect: why" to `notes`, but for its `choices`, which are harmless.
Flag noted(std::vector<std::string>& notes, const std::string& why, Flag flag);

// Answered instead of a launch, in command_line.cpp.
Flag question(Flag flag);

// All of them under this heading of --help.
std::vector<Flag> in_section(const char* section, std::vector<Flag> flags);

// Flags of another launcher: --help only lists their names, the man page explains them.
std::vector<Flag> accepted_from(const char* launcher, std::vector<Flag> flags);

std::string as_text(const std::string& source, const std::string& text);

}  // namespace fleetrun::launch

#include "launch/cli/flags/flag_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

bool is_a_choice(const Flag& flag, const std::string& text) {
  return std::find(flag.choices.begin(), flag.choices.end(), text) != flag.choices.end();
}

}  // namespace

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

Flag on_or_off(Setting<bool>& setting, Flag flag) {
  flag = value(setting, parse_switch, std::move(flag));
  flag.show = [&setting] { return setting.value ? "true" : ""; };
  return flag;
}

Flag only(const std::string& feature, Flag flag) {
  flag.set = [feature, known = flag](const std::string& text, const Source& source) {
    if (!is_a_choice(known, text))
      throw Error(ErrorKind::usage,
                  fmt::format("{} is \"{}\": {} not supported by this build", source.name, text, feature));
  };
  return flag;
}

Flag refused(const std::string& why, Flag flag) {
  flag.set = [why](const std::string&, const Source& source) {
    throw Error(ErrorKind::usage, fmt::format("{}: {}", source.name, why));
  };
  return flag;
}

Flag noted(std::vector<std::string>& notes, const std::string& why, Flag flag) {
  flag.help = "No effect: " + why;
  flag.set = [&notes, why, known = flag](const std::string& text, const Source& source) {
    if (!is_a_choice(known, text)) notes.push_back(fmt::format("{} has no effect: {}", source.name, why));
  };
  return flag;
}

Flag question(Flag flag) {
  flag.set = [](const std::string&, const Source&) {};
  return flag;
}

std::vector<Flag> in_section(const char* section, std::vector<Flag> flags) {
  for (Flag& flag : flags) flag.section = section;
  return flags;
}

std::vector<Flag> accepted_from(const char* launcher, std::vector<Flag> flags) {
  for (Flag& flag : flags) {
    flag.section = fmt::format("Flags of {}", launcher);
    flag.foreign = true;
  }
  return flags;
}

std::string as_text(const std::string&, const std::string& text) { return text; }

}  // namespace fleetrun::launch

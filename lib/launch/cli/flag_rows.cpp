#include "launch/cli/flag_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::launch {

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    names.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return names;
}

Option on_or_off(const std::string& names, Setting<bool>& setting, std::string help) {
  Option option{.names = split_names(names), .help = std::move(help)};
  option.takes = Option::Takes::nothing;
  option.set = [&setting](const std::string& text, const Source& source) {
    setting = {parse_switch(source.name, text), source.origin, source.name};
  };
  option.show = [&setting] { return setting.value ? "true" : ""; };
  option.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return option;
}

Option only(const std::string& names, std::vector<std::string> allowed, std::string variable,
            const std::string& feature, std::string help) {
  Option option{.names = split_names(names),
                .argument = "VALUE",
                .variable = std::move(variable),
                .help = std::move(help)};
  option.set = [allowed, feature](const std::string& text, const Source& source) {
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
      throw Error(ErrorKind::usage,
                  fmt::format("{} is \"{}\": {} not supported by this build", source.name, text, feature));
  };
  option.choices = std::move(allowed);
  return option;
}

Option refused(const std::string& names, const std::string& why, std::string help) {
  Option option{.names = split_names(names), .argument = "VALUE", .help = std::move(help)};
  option.set = [why](const std::string& text, const Source& source) {
    if (!text.empty()) throw Error(ErrorKind::usage, fmt::format("{}: {}", source.name, why));
  };
  return option;
}

Option noted(const std::string& names, std::string argument, std::vector<std::string>& notes, std::string why,
             const std::vector<std::string>& harmless) {
  Option option{.names = split_names(names), .argument = std::move(argument), .help = "No effect: " + why};
  if (option.argument.empty()) option.takes = Option::Takes::nothing;
  option.set = [&notes, why = std::move(why), harmless](const std::string& text, const Source& source) {
    if (std::find(harmless.begin(), harmless.end(), text) == harmless.end())
      notes.push_back(fmt::format("{} has no effect: {}", source.name, why));
  };
  return option;
}

Option question(const std::string& names, std::string help) {
  Option option{.names = split_names(names), .help = std::move(help)};
  option.takes = Option::Takes::nothing;
  option.set = [](const std::string&, const Source&) {};
  return option;
}

Option completing(Option::Completes what, Option option) {
  option.completes = what;
  return option;
}

Option one_of(std::vector<std::string> choices, Option option) {
  option.choices = std::move(choices);
  return option;
}

Option with_optional_value(Option option) {
  option.takes = Option::Takes::optional_value;
  return option;
}

std::vector<Option> in_section(const char* section, std::vector<Option> options) {
  for (Option& option : options) option.section = section;
  return options;
}

std::vector<Option> accepted_from(const char* launcher, std::vector<Option> options) {
  for (Option& option : options) {
    option.section = fmt::format("Accepted from {}", launcher);
    option.foreign = true;
  }
  return options;
}

std::string as_text(const std::string&, const std::string& text) { return text; }

}  // namespace fleetrun::launch

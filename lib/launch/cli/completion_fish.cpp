#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/cli/completion_shells.h"
#include "launch/cli/shell_words.h"
#include "launch/cli/subcommands.h"

namespace fleetrun::launch {
namespace {

using Takes = Option::Takes;
using Completes = Option::Completes;

std::string fish_value(const Option& option) {
  std::string value;
  if (option.takes == Takes::value) value = option.completes == Completes::nothing ? " -x" : " -r";
  if (option.completes == Completes::files) value += " -F";
  if (option.completes == Completes::folders) value += " -a '(__fish_complete_directories)'";
  if (!option.choices.empty()) value += " -a " + quote_always(joined(option.choices));
  return value;
}

std::string fish_name(const std::string& name) {
  return name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
}

// Names with dashes are offered to those who type them.
std::string fish_flag(const std::string& condition, const Option& option) {
  std::string names, dashed;
  for (const std::string& name : option.names) {
    names += fish_name(name);
    if (with_dashes(name) != name) dashed += fish_name(with_dashes(name));
  }
  const auto line = [&](const std::string& when, const std::string& all) {
    return fmt::format("complete -c fleetrun -n {}{}{} -d {}\n", quote_always(when), all, fish_value(option),
                       quote_always(option.help));
  };
  return line(condition, names) +
         (dashed.empty() ? "" : line(condition + "; and __fleetrun_types_dashes", dashed));
}

std::string fish_subcommand(const Subcommand& one, const std::string& first) {
  const std::string inside = "__fleetrun_runs " + one.name;
  std::string text = fmt::format("complete -c fleetrun -n {} -a {} -d {}\n", quote_always(first), one.name,
                                 quote_always(one.summary));
  for (const Option& option : one.options) text += fish_flag(inside, option);
  if (one.completes != Completes::files)
    text += fmt::format("complete -c fleetrun -n {} -f\n", quote_always(inside));
  if (!one.choices.empty())
    text +=
        fmt::format("complete -c fleetrun -n {} -f -a {}\n",
                    quote_always(inside + "; and __fleetrun_has_no_word"), quote_always(joined(one.choices)));
  return text;
}

std::vector<std::string> names_with_value(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options)
    if (option.takes == Takes::value) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

constexpr const char* kFishHelpers = R"(
function __fleetrun_is_first_word
    test (count (commandline -opc)) -eq 1
end
function __fleetrun_runs
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end
function __fleetrun_has_no_word
    not string match -qv -- '-*' (commandline -opc)[3..-1]
end
function __fleetrun_types_dashes
    string match -qr -- '^--[^=]*-' (commandline -ct) (commandline -opc)[-1]
end
# The name of a flag with underscores, as the table above has it.
function __fleetrun_name
    string replace -ra -- '(?<=[^-])-' _ $argv[1]
end
function __fleetrun_before_program
    set -l words (commandline -opc)
    set -l is_value no
    for word in $words[2..-1]
        if test $is_value = yes
            set is_value no
            continue
        end
        string match -q -- '-*' $word; and test "$word" != --; or return 1
        contains -- (__fleetrun_name $word) $__fleetrun_with_value; and set is_value yes
    end
end
)";

}  // namespace

std::string fish_completion(const std::vector<Option>& table) {
  std::string text = "# Completion of fleetrun for fish, printed by: fleetrun completion fish\n";
  text += "set -g __fleetrun_with_value " + joined(names_with_value(table)) + kFishHelpers;
  for (const Option& option : table)
    if (option.shown()) text += fish_flag("__fleetrun_before_program", option);
  for (const Subcommand& one : subcommands()) text += fish_subcommand(one, "__fleetrun_is_first_word");
  return text;
}

}  // namespace fleetrun::launch

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/cli/completion_shells.h"
#include "launch/cli/shell_words.h"
#include "launch/cli/subcommands.h"

namespace fleetrun::launch {
namespace {

using Takes = Option::Takes;
using Completes = Option::Completes;

// What joins a flag and its value: "=-" only in one word, "=" and "+" in one word or two.
const char* zsh_joint(const std::string& name, const Option& option) {
  if (option.takes == Takes::nothing) return "";
  if (option.takes == Takes::optional_value) return "=-";
  return name.starts_with("--") ? "=" : "+";
}

std::string zsh_value(const Option& option) {
  if (option.takes == Takes::nothing) return "";
  std::string action;
  if (option.completes == Completes::files) action = "_files";
  if (option.completes == Completes::folders) action = "_files -/";
  if (!option.choices.empty()) action = fmt::format("({})", joined(option.choices));
  return fmt::format("{}{}:{}", option.takes == Takes::optional_value ? "::" : ":", option.argument, action);
}

// A specification of zsh's _arguments: '--gpus=[Devices to use]:IDS:'. A hidden one is known and not offered.
std::string zsh_flag(const std::string& name, const Option& option, bool hidden) {
  std::string help;
  for (const char letter : option.help)
    help +=
        letter == '[' || letter == ']' || letter == ':' ? std::string("\\") + letter : std::string(1, letter);
  return quote_always(fmt::format("{}{}{}{}{}{}", hidden ? "!" : "", option.repeats ? "*" : "", name,
                                  zsh_joint(name, option), hidden ? "" : "[" + help + "]",
                                  zsh_value(option)));
}

std::string zsh_flags(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options)
    for (const std::string& name : option.names) {
      if (!option.shown()) continue;
      text += " \\\n    " + zsh_flag(name, option, false);
      if (with_dashes(name) != name) text += " \\\n    " + zsh_flag(with_dashes(name), option, true);
    }
  return text;
}

std::string zsh_words(const Subcommand& one) {
  if (!one.choices.empty()) return quote_always(fmt::format("1:what:({})", joined(one.choices)));
  return one.completes == Completes::files ? quote_always("*:file:_files") : "";
}

}  // namespace

std::string zsh_completion(const std::vector<Option>& table) {
  std::string commands;
  for (const Subcommand& one : subcommands())
    commands += fmt::format("    {}) _arguments -S{} \\\n      {} ;;\n", one.name, zsh_flags(one.options),
                            zsh_words(one));
  return fmt::format(R"(#compdef fleetrun
# Completion of fleetrun for zsh, printed by: fleetrun completion zsh
_fleetrun_program() {{
  local -a subcommands
  ((CURRENT != 2)) || subcommands=('subcommands:subcommand:({})')
  _alternative $subcommands 'files:program:_files' 'commands:program:_command_names -e'
}}

_fleetrun() {{
  local first=$words[2] state line curcontext=$curcontext
  _arguments -C -S -A '-*'{} \
    '1:program:_fleetrun_program' '*::arguments:->rest'
  [[ $state == rest ]] || return 0
  [[ $line[1] == $first ]] || first=''
  case $first in
{}    *) _files ;;
  esac
}}

# The file _fleetrun on $fpath is this function's body when the first Tab loads it; sourced, it is not called.
if [[ $funcstack[1] == _fleetrun ]]; then _fleetrun "$@"; else compdef _fleetrun fleetrun; fi
)",
                     joined(subcommand_names()), zsh_flags(table), commands);
}

}  // namespace fleetrun::launch

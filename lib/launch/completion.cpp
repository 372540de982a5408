#include "launch/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "launch/subcommands.h"

namespace fleetrun::launch {
namespace {

using Takes = Option::Takes;
using Completes = Option::Completes;

// Between single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char letter : text) safe += letter == '\'' ? "'\\''" : std::string(1, letter);
  return "'" + safe + "'";
}

std::vector<std::string> shown_names(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options)
    if (option.shown()) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> subcommand_names() {
  std::vector<std::string> names;
  for (const Subcommand& one : subcommands()) names.push_back(one.name);
  return names;
}

// One line of a case statement of bash: how the value of a flag is completed.
std::string bash_value(const Option& option) {
  if (!option.shown() || option.takes == Takes::nothing) return "";
  std::string how = ":";
  if (option.completes == Completes::files) how = "COMPREPLY=($(compgen -f -- \"$current\"))";
  if (option.completes == Completes::folders) how = "COMPREPLY=($(compgen -d -- \"$current\"))";
  if (!option.choices.empty())
    how = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", fmt::join(option.choices, " "));
  return fmt::format("    {}) {} ;;\n", fmt::join(option.names, "|"), how);
}

std::string bash_subcommand(const Subcommand& one) {
  std::string words = fmt::format("COMPREPLY=($(compgen -f -- \"$current\"))");
  if (!one.choices.empty())
    words = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", fmt::join(one.choices, " "));
  return fmt::format(
      "    {}) if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$current\")); else {}; fi "
      ";;\n",
      one.name, fmt::join(shown_names(one.options), " "), words);
}

std::string bash_completion(const std::vector<Option>& table) {
  std::vector<std::string> with_value;
  for (const Option& option : table)
    if (option.shown() && option.takes == Takes::value)
      with_value.insert(with_value.end(), option.names.begin(), option.names.end());
  std::string values, commands;
  for (const Option& option : table) values += bash_value(option);
  for (const Subcommand& one : subcommands()) {
    commands += bash_subcommand(one);
    for (const Option& option : one.options)
      if (option.takes == Takes::value && values.find("    " + option.name()) == std::string::npos)
        values += bash_value(option);
  }
  return fmt::format(R"(# Completion of fleetrun for bash, printed by: fleetrun completion bash
_fleetrun_value() {{
  case $1 in
{}    *) return 1 ;;
  esac
}}

_fleetrun() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} flag i=1
  [[ $current == = ]] && current=
  COMPREPLY=()
  # The flags in front of the program; bash cuts --flag=value into three words.
  while ((i < COMP_CWORD)); do
    flag=${{COMP_WORDS[i]}}
    [[ $flag == -* && $flag != -- ]] || break
    if [[ ${{COMP_WORDS[i + 1]}} == = ]]; then
      if ((i + 2 >= COMP_CWORD)); then _fleetrun_value "$flag"; return 0; fi
      ((i += 3))
    elif [[ ' {} ' == *" $flag "* ]]; then
      if ((i + 1 == COMP_CWORD)); then _fleetrun_value "$flag"; return 0; fi
      ((i += 2))
    else
      ((i += 1))
    fi
  done
  if ((i < COMP_CWORD)); then
    case ${{COMP_WORDS[i]}} in
{}    *) COMPREPLY=($(compgen -f -- "$current")) ;;
    esac
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W '{}' -- "$current"))
  else
    COMPREPLY=($(compgen -W '{}' -- "$current") $(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _fleetrun fleetrun
)",
                     values, fmt::join(with_value, " "), commands, fmt::join(shown_names(table), " "),
                     fmt::join(subcommand_names(), " "));
}

// A specification of zsh's _arguments: '--gpus=[Devices to use]:IDS:'.
std::string zsh_flag(const std::string& name, const Option& option) {
  std::string help;
  for (const char letter : option.help)
    help +=
        letter == '[' || letter == ']' || letter == ':' ? std::string("\\") + letter : std::string(1, letter);
  const std::string repeated = option.repeats ? "*" : "";
  if (option.takes == Takes::nothing) return quoted(fmt::format("{}{}[{}]", repeated, name, help));
  std::string action;
  if (option.completes == Completes::files) action = "_files";
  if (option.completes == Completes::folders) action = "_files -/";
  if (!option.choices.empty()) action = fmt::format("({})", fmt::join(option.choices, " "));
  const bool optional = option.takes == Takes::optional_value;
  const char* const joint = optional ? "=-" : name.starts_with("--") ? "=" : "+";  // -r3 or -r 3
  return quoted(fmt::format("{}{}{}[{}]:{}{}:{}", repeated, name, joint, help, optional ? ":" : "",
                            option.argument, action));
}

std::string zsh_flags(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options)
    for (const std::string& name : option.names)
      if (option.shown()) text += " \\\n    " + zsh_flag(name, option);
  return text;
}

std::string zsh_completion(const std::vector<Option>& table) {
  std::string commands;
  for (const Subcommand& one : subcommands()) {
    const std::string words =
        one.choices.empty() ? "*:file:_files" : fmt::format("1:what:({})", fmt::join(one.choices, " "));
    commands += fmt::format("    {}) _arguments{} \\\n      {} ;;\n", one.name, zsh_flags(one.options),
                            quoted(words));
  }
  return fmt::format(R"(#compdef fleetrun
# Completion of fleetrun for zsh, printed by: fleetrun completion zsh
_fleetrun_program() {{
  _alternative 'subcommands:subcommand:({})' 'files:program:_files' 'commands:program:_command_names -e'
}}

_fleetrun() {{
  local state line curcontext=$curcontext
  _arguments -C -S{} \
    '1:program:_fleetrun_program' '*::arguments:->rest'
  [[ $state == rest ]] || return 0
  case $line[1] in
{}    *) _files ;;
  esac
}}
compdef _fleetrun fleetrun
)",
                     fmt::join(subcommand_names(), " "), zsh_flags(table), commands);
}

std::string fish_flag(const std::string& condition, const Option& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  std::string value;
  if (option.takes == Takes::value) value = option.completes == Completes::nothing ? " -x" : " -r";
  if (option.completes == Completes::files) value += " -F";
  if (option.completes == Completes::folders) value += " -a '(__fish_complete_directories)'";
  if (!option.choices.empty())
    value += fmt::format(" -a {}", quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  return fmt::format("complete -c fleetrun -n {}{}{} -d {}\n", quoted(condition), names, value,
                     quoted(option.help));
}

std::string fish_completion(const std::vector<Option>& table) {
  const std::string before = "__fleetrun_before_program";
  std::string text = R"(# Completion of fleetrun for fish, printed by: fleetrun completion fish
function __fleetrun_before_program
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; or return 1
    end
end
)";
  for (const Option& option : table)
    if (option.shown()) text += fish_flag(before, option);
  for (const Subcommand& one : subcommands()) {
    const std::string inside = "__fish_seen_subcommand_from " + one.name;
    text += fmt::format("complete -c fleetrun -n {} -a {} -d {}\n", quoted(before), one.name,
                        quoted(one.summary));
    for (const Option& option : one.options) text += fish_flag(inside, option);
    if (!one.choices.empty())
      text += fmt::format("complete -c fleetrun -n {} -f -a {}\n", quoted(inside),
                          quoted(fmt::format("{}", fmt::join(one.choices, " "))));
  }
  return text;
}

}  // namespace

std::string completion(const std::string& shell, const std::vector<Option>& table) {
  if (shell == "bash") return bash_completion(table);
  if (shell == "zsh") return zsh_completion(table);
  if (shell == "fish") return fish_completion(table);
  throw Error(ErrorKind::usage, fmt::format("the shell is \"{}\", must be bash, zsh or fish", shell));
}

}  // namespace fleetrun::launch

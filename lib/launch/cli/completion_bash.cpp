#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/cli/completion_shells.h"
#include "launch/cli/subcommands.h"

namespace fleetrun::launch {
namespace {

using Takes = Option::Takes;
using Completes = Option::Completes;

// What stands in $value for a flag: what completes its value.
std::string kind_of_value(const Option& option) {
  if (!option.choices.empty()) return "words " + joined(option.choices);
  if (option.completes == Completes::files) return "files";
  return option.completes == Completes::folders ? "folders" : "nothing";
}

// One line of a case statement over COMMAND:FLAG.
std::string bash_values(const std::string& command, const std::vector<Option>& options) {
  std::string lines;
  for (const Option& option : options) {
    if (!option.shown() || option.takes == Takes::nothing) continue;
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back(command + ":" + name);
    const char* optional = option.takes == Takes::optional_value ? " optional=yes" : "";
    lines += fmt::format("    {}) value='{}'{} ;;\n", fmt::join(names, "|"), kind_of_value(option), optional);
  }
  return lines;
}

std::string bash_flags(const std::string& command, const std::vector<Option>& options) {
  return fmt::format("    '{}') _fleetrun_flags {} ;;\n", command, joined(shown_names(options)));
}

std::string bash_word(const Subcommand& one) {
  if (!one.choices.empty())
    return fmt::format("    {}) ((count > 0)) || _fleetrun_offer words {} ;;\n", one.name,
                       joined(one.choices));
  return one.completes == Completes::files ? fmt::format("    {}) _fleetrun_offer files ;;\n", one.name) : "";
}

constexpr const char* kBashHelpers =
    R"(# What begins with $current, of a KIND: files, folders, nothing, or words with the words behind it.
_fleetrun_offer() {
  local kind=$1 word plain found=()
  shift
  plain=${current#[\"\']} plain=${plain//\\/}
  case $kind in
    files) mapfile -t found < <(compgen -f -- "$plain") ;;
    folders) mapfile -t found < <(compgen -d -- "$plain") ;;
    commands) mapfile -t found < <(compgen -c -- "$plain") ;;
    words) for word in "$@"; do [[ $word != "$current"* ]] || found+=("$word"); done ;;
  esac
  ((${#found[@]} == 0)) || COMPREPLY+=("${found[@]/#/$prefix}")
}

# Flags in the way they are typed: with underscores, or with dashes for them.
_fleetrun_flags() {
  local flag dashed
  for flag in "$@"; do
    dashed=${flag#--} dashed=--${dashed//_/-}
    if [[ $flag == "$current"* ]]; then
      COMPREPLY+=("$flag")
    elif [[ $flag == --* && $dashed == "$current"* ]]; then
      COMPREPLY+=("$dashed")
    fi
  done
}

# In $name a flag with underscores.
_fleetrun_name() {
  name=$1
  [[ $name != --?* ]] || { name=${name#--} name=--${name//-/_}; }
}
)";

// Bash cuts words at = and : by itself, unless COMP_WORDBREAKS says otherwise.
constexpr const char* kBashWalk = R"(_fleetrun() {
  local current=${COMP_WORDS[COMP_CWORD]} command='' prefix='' name value optional i=1 count=0
  COMPREPLY=()
  [[ $current != [=:] ]] || current=''
  if ((COMP_CWORD > 1)) && _fleetrun_is_command "${COMP_WORDS[1]}"; then command=${COMP_WORDS[1]} i=2; fi
  while ((i < COMP_CWORD)); do
    _fleetrun_name "${COMP_WORDS[i]}"
    [[ $name != -- ]] || break
    if [[ $name == -* ]]; then
      _fleetrun_value "$command" "$name"
      if [[ ${COMP_WORDS[i + 1]} == = ]]; then
        if ((i + 2 >= COMP_CWORD)); then _fleetrun_offer $value; return 0; fi
        ((i += 3))
      elif [[ $value && ! $optional ]]; then
        if ((i + 1 == COMP_CWORD)); then _fleetrun_offer $value; return 0; fi
        ((i += 2))
      else
        ((i += 1))
      fi
    else
      [[ $command ]] || break
      ((i += 1, count += 1))
    fi
    while [[ ${COMP_WORDS[i]} == [=:] ]] && ((i < COMP_CWORD)); do ((i += 2)); done
  done
  if [[ ! $command ]] && ((i < COMP_CWORD)); then
    if [[ ${COMP_WORDS[i]} == -- ]] && ((i + 1 == COMP_CWORD)) && [[ $current ]]; then _fleetrun_offer commands; fi
    _fleetrun_offer files
  elif [[ $current == --*=* ]]; then
    prefix=${current%%=*}=
    _fleetrun_name "${current%%=*}"
    _fleetrun_value "$command" "$name"
    current=${current#*=}
    _fleetrun_offer $value
  elif [[ $current == -* ]]; then
    _fleetrun_flags_of "$command"
  elif [[ $command ]]; then
    _fleetrun_word
  else
    ((i > 1)) || _fleetrun_offer words $_fleetrun_commands
    _fleetrun_offer files
  fi
}
complete -o filenames -F _fleetrun fleetrun
)";

}  // namespace

std::string bash_completion(const std::vector<Option>& table) {
  std::string values = bash_values("", table), flags = bash_flags("", table), words;
  for (const Subcommand& one : subcommands()) {
    values += bash_values(one.name, one.options);
    flags += bash_flags(one.name, one.options);
    words += bash_word(one);
  }
  return fmt::format(R"(# Completion of fleetrun for bash, printed by: fleetrun completion bash
_fleetrun_commands='{}'

_fleetrun_is_command() {{
  [[ " $_fleetrun_commands " == *" $1 "* ]]
}}

# How the value of a flag is completed, in $value; '' when it takes none. $optional: only behind an equals sign.
_fleetrun_value() {{
  value='' optional=''
  case $1:$2 in
{}  esac
}}

_fleetrun_flags_of() {{
  case $1 in
{}  esac
}}

# A word of a subcommand that is no flag.
_fleetrun_word() {{
  case $command in
{}  esac
}}

{}
{})",
                     joined(subcommand_names()), values, flags, words, kBashHelpers, kBashWalk);
}

}  // namespace fleetrun::launch

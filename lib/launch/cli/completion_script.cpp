// What a shell runs at a press of Tab. Each script passes the words to `fleetrun completion --offers`.
#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/cli/completion.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kBash = R"(# Completion of fleetrun for bash, printed by: fleetrun completion bash
_fleetrun() {
  local typed=${COMP_WORDS[COMP_CWORD]} fleetrun=${COMP_WORDS[0]} also='' done='' word plain found=()
  case $fleetrun in '~/'* | '$HOME/'*) fleetrun=$HOME/${fleetrun#*/} ;; esac
  type -P -- "$fleetrun" >/dev/null || fleetrun=fleetrun
  COMPREPLY=()
  {
    IFS= read -r also || also=files  # no fleetrun answers
    IFS= read -r done
    while IFS=$'\t' read -r word _; do COMPREPLY+=("$word"); done
  } < <("$fleetrun" completion --offers -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ $done && $typed == "$done"* ]]; then
    typed=${typed#"$done"}
  elif [[ $done ]]; then  # COMP_WORDBREAKS cut the word at "=", and bash wants what follows
    COMPREPLY=("${COMPREPLY[@]#"$done"}") done=''
  fi
  [[ $typed != [=:] ]] || typed=''
  plain=${typed#[\"\']} plain=${plain//\\/}
  case $also in
    files) mapfile -t found < <(compgen -f -- "$plain") ;;
    folders) mapfile -t found < <(compgen -d -- "$plain") ;;
    programs) mapfile -t found < <(compgen -f -c -- "$plain") ;;
  esac
  ((${#found[@]} == 0)) || COMPREPLY+=("${found[@]/#/$done}")
}
complete -o filenames -F _fleetrun fleetrun
)";

constexpr const char* kZsh = R"(#compdef fleetrun
# Completion of fleetrun for zsh, printed by: fleetrun completion zsh
_fleetrun() {
  local -a lines offers valued
  lines=("${(@f)$("${(Q)words[1]}" completion --offers -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  offers=("${(@)${(@)${(@)lines[3,-1]#$lines[2]}//:/\\:}/$'\t'/:}")
  valued=("${(@M)offers:#*$'\t='}")
  valued=("${(@)valued%$'\t='}") offers=("${(@)offers:#*$'\t='}")
  [[ -z $lines[2] ]] || compset -P '*='
  local found=1
  ((${#offers} == 0)) || { _describe fleetrun offers && found=0 }
  ((${#valued} == 0)) || { _describe fleetrun valued -S = -q && found=0 }
  case $lines[1] in
    files) _files && found=0 ;;
    folders) _files -/ && found=0 ;;
    programs) _alternative 'files:program:_files' 'commands:program:_command_names -e' && found=0 ;;
  esac
  return found
}

# The file _fleetrun on $fpath is this function's body when the first Tab loads it; sourced, it is not called.
if [[ $funcstack[1] == _fleetrun ]]; then _fleetrun "$@"; else compdef _fleetrun fleetrun; fi
)";

constexpr const char* kFish = R"(# Completion of fleetrun for fish, printed by: fleetrun completion fish
function __fleetrun_offers
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l lines ($words[1] completion --offers -- $words[2..-1] "$typed" 2>/dev/null)
    set -l value (string sub -s (math 1 + (string length -- "$lines[2]")) -- "$typed")
    # First, since fish shows the meaning of a word that is a file, too, only if it comes first.
    test (count $lines) -lt 3; or string replace -r '\t=$' '' -- $lines[3..-1]
    switch $lines[1]
        case files programs
            printf '%s\n' "$lines[2]"(__fish_complete_path "$value")
        case folders
            printf '%s\n' "$lines[2]"(__fish_complete_directories "$value")
    end
    test $lines[1] = programs; and __fish_complete_command
end
complete -c fleetrun -f -a '(__fleetrun_offers)'
)";

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  throw Error(ErrorKind::usage, fmt::format("the shell is \"{}\", must be bash, zsh or fish", shell));
}

}  // namespace fleetrun::launch

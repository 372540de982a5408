// A script that starts one command on several hosts by ssh.
#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/render/batch_text.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kSshFile = R"sh(#!/bin/bash
<<header>>
# shellcheck disable=SC2016  # what is in single quotes is not for this shell

set -u

hosts=(
<<hosts>>
)
fleetrun=<<fleetrun>>
<<arguments>>
folder=<<folder>>
# Each host writes its own logs.
logs=<<log_dir>>

# Runs on each host: starts fleetrun, and sends it each signal whose name is a line of standard input. When standard input ends, the
# connection is gone, and <<when_gone>>. If fleetrun ends with 255, a folder with the name of the mark says so.
on_host='
mark=${TMPDIR:-/tmp}/$1
cd "$2" || exit 66
shift 2
exec 3<&0
"$@" </dev/null 3<&- &
run=$!
(
  while read -r signal; do kill -s "$signal" "$run"; done
  kill -s <<end_signal>> "$run"
) <&3 3<&- 2>/dev/null &
reader=$!
exec 3<&-
wait "$run"
code=$?
kill "$reader" 2>/dev/null
[ "$code" != 255 ] || mkdir "$mark"
exit "$code"
'

# One line for a shell, which reads the same words from it.
quoted() {
  local word
  for word; do printf "'%s' " "${word//\'/\'\\\'\'}"; done
}

pipes=$(mktemp -d) || exit 73
mark=fleetrun.${pipes##*/}
trap 'rm -rf "$pipes"' EXIT
mkfifo "$pipes/ended" || exit 73
exec {ended}<>"$pipes/ended"
inputs=()
for rank in "${!hosts[@]}"; do
  command=$(quoted sh -c "$on_host" sh "$mark" "$folder" "$fleetrun" <<node_flags>> "${arguments[@]}")
  mkfifo "$pipes/$rank" || exit 73
  (
    # The signals of a terminal reach every process. They must not end the connection.
    trap '' INT QUIT HUP TERM USR1 USR2
    for input in ${inputs[@]+"${inputs[@]}"}; do exec {input}>&-; done
    ssh -o BatchMode=yes -o ServerAliveInterval=10 "${hosts[rank]}" "$command" <"$pipes/$rank"
    printf '%s %s\n' "$rank" "$?" >&"$ended"
  ) &
  exec {input}>"$pipes/$rank"
  inputs+=("$input")
done

<<pass_on>>

# ssh ends with 255 if it cannot reach the host, and the run may end with 255, too. The hosts of a run end with the same code.
run_ended=0
ended_itself() {
  ssh -o BatchMode=yes -o ConnectTimeout=10 "${hosts[$1]}" "rmdir \"\${TMPDIR:-/tmp}/$mark\"" </dev/null && run_ended=1
  [ "$run_ended" = 1 ]
}

# Stops the run when ssh cannot reach <<lost>>.
codes=()
<<no_code>>
lost=0
stopped=0
while [ "${#codes[@]}" -lt "${#hosts[@]}" ]; do
  if read -r -t 5 rank code <&"$ended"; then
    codes[rank]=$code
<<note_code>>
    if [ "$code" != 255 ] || ended_itself "$rank"; then continue; fi
    echo "ssh to ${hosts[rank]} ended with code 255" >&3
    lost=$((lost + 1))
    [ "$lost" = <<too_many>> ] || continue
    echo "stopping the run" >&3
    stopped=1
    for input in "${inputs[@]}"; do printf 'TERM\n' >&"$input"; done
  elif [ -z "$(jobs -rp)" ]; then
    break # something killed the processes that wait for ssh
  fi
done 3>&2 2>/dev/null

# A run that ended because ssh could not reach hosts may be tried again.
[ "$stopped" = 0 ] || exit 75
<<end>>
)sh";

constexpr std::string_view kPassOn = R"sh(# fleetrun on the first host passes signals on to all hosts.
trap '' PIPE
for signal in INT TERM HUP QUIT USR1 USR2; do
  # shellcheck disable=SC2064  # the name of this signal
  trap "printf '%s\n' $signal >&${inputs[0]}" "$signal"
done
)sh";

constexpr std::string_view kPassOnIfElastic =
    R"sh(# The run may go on without the first host, so each host gets the signals that end a run.
trap '' PIPE
pass_on() {
  local input
  for input in "${@:2}"; do printf '%s\n' "$1" >&"$input"; done 2>/dev/null
}
for signal in INT TERM HUP; do
  # shellcheck disable=SC2064  # the name of this signal
  trap "pass_on $signal ${inputs[*]}" "$signal"
done
# The others reach the run by the first host that is still there.
pass_on_once() {
  local input
  for input in "${inputs[@]}"; do printf '%s\n' "$1" >&"$input" && return; done 2>/dev/null
}
for signal in QUIT USR1 USR2; do
  # shellcheck disable=SC2064
  trap "pass_on_once $signal" "$signal"
done
)sh";

constexpr std::string_view kEnd = R"(# All hosts end with the same exit code.
exit "${codes[0]:-255}"
)";

constexpr std::string_view kEndIfElastic =
    R"(# The hosts that are left end with the same exit code, after those that were lost.
exit "$last"
)";

constexpr std::string_view kHowToRun =
    "Start it:   bash {0}.ssh.sh\n"
    "Ctrl-C and signals reach the run. The exit code is that of fleetrun on {1}.\n"
    "ssh must reach every host without a password, and all hosts need the same key (docs/many-hosts.md).";

std::string host_words(const BatchRun& run) {
  std::string lines;
  for (const std::string& host : run.hosts) lines += "  " + quote_word(host) + "\n";
  return lines;
}

std::string folder_of_script(const BatchRun& run) {
  if (!run.own.folder.empty()) return quote_word(run.own.folder);
  return "$PWD";
}

}  // namespace

std::string write_ssh(const BatchRun& run) {
  return fill(
      kSshFile,
      {{"header",
        file_header(run, fmt::format("Script that starts a run on {} by ssh.", plural(run.nodes, "host")),
                    fmt::format(kHowToRun, run.name,
                                run.least_nodes ? "the hosts that are left at its end" : "the first host"))},
       {"hosts", host_words(run)},
       {"fleetrun", program_name(run)},
       {"arguments", arguments_array(run)},
       {"folder", folder_of_script(run)},
       {"log_dir", quote_word(run.log_dir)},
       {"node_flags",
        run.nodes == 1 ? R"(--log_dir="$logs")" : R"(--node_rank="$rank" --log_dir="$logs/node-$rank")"},
       {"when_gone", run.least_nodes ? "SIGKILL ends this node. The other nodes may go on without it"
                                     : "SIGTERM ends the run"},
       {"end_signal", run.least_nodes ? "KILL" : "TERM"},
       {"pass_on", std::string(run.least_nodes ? kPassOnIfElastic : kPassOn)},
       {"lost", run.least_nodes ? "so many hosts that too few are left" : "a host"},
       {"too_many", std::to_string(run.nodes - run.least_nodes.value_or(run.nodes) + 1)},
       {"no_code", run.least_nodes ? "last=255\n" : ""},
       {"note_code", run.least_nodes ? "    [ \"$code\" = 255 ] || last=$code\n" : ""},
       {"end", std::string(run.least_nodes ? kEndIfElastic : kEnd)}});
}

}  // namespace fleetrun::launch

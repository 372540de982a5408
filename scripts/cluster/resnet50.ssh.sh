#!/bin/bash
# Script that starts a run on 4 hosts by ssh.
# Made by: fleetrun render ssh --folder=/srv/training -- --ips=node1,node2,node3,node4 --job_id=resnet50 --nproc_per_node=8 --grace=60 --timeout=86400 configs/resnet/train_fleet_static.json checkpoint.dir=checkpoints
#
# Start it:   bash resnet50.ssh.sh
# Ctrl-C and signals reach the run. The exit code is that of fleetrun on the first host.
# ssh must reach every host without a password, and all hosts need the same key (docs/many-hosts.md).
# shellcheck disable=SC2016  # what is in single quotes is not for this shell

set -u

hosts=(
  node1
  node2
  node3
  node4
)
fleetrun=fleetrun
arguments=(
  --nproc_per_node=8
  --job_id=resnet50
  '--ips=node1,node2,node3,node4'
  --grace=60
  --timeout=86400
  configs/resnet/train_fleet_static.json
  checkpoint.dir=checkpoints
)
folder=/srv/training
# Each host writes its own logs.
logs=log

# Runs on each host: starts fleetrun, and sends it each signal whose name is a line of standard input. When standard input ends, the
# connection is gone, and SIGTERM ends the run. If fleetrun ends with 255, a folder with the name of the mark says so.
on_host='
mark=${TMPDIR:-/tmp}/$1
cd "$2" || exit 66
shift 2
exec 3<&0
"$@" </dev/null 3<&- &
run=$!
(
  while read -r signal; do kill -s "$signal" "$run"; done
  kill -s TERM "$run"
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
  command=$(quoted sh -c "$on_host" sh "$mark" "$folder" "$fleetrun" --node_rank="$rank" --log_dir="$logs/node-$rank" "${arguments[@]}")
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

# fleetrun on the first host passes signals on to all hosts.
trap '' PIPE
for signal in INT TERM HUP QUIT USR1 USR2; do
  # shellcheck disable=SC2064  # the name of this signal
  trap "printf '%s\n' $signal >&${inputs[0]}" "$signal"
done

# ssh ends with 255 if it cannot reach the host, and the run may end with 255, too. The hosts of a run end with the same code.
run_ended=0
ended_itself() {
  ssh -o BatchMode=yes -o ConnectTimeout=10 "${hosts[$1]}" "rmdir \"\${TMPDIR:-/tmp}/$mark\"" </dev/null && run_ended=1
  [ "$run_ended" = 1 ]
}

# Stops the run when ssh cannot reach a host.
codes=()
lost=0
stopped=0
while [ "${#codes[@]}" -lt "${#hosts[@]}" ]; do
  if read -r -t 5 rank code <&"$ended"; then
    codes[rank]=$code
    if [ "$code" != 255 ] || ended_itself "$rank"; then continue; fi
    echo "ssh to ${hosts[rank]} ended with code 255" >&3
    lost=$((lost + 1))
    [ "$lost" = 1 ] || continue
    echo "stopping the run" >&3
    stopped=1
    for input in "${inputs[@]}"; do printf 'TERM\n' >&"$input"; done
  elif [ -z "$(jobs -rp)" ]; then
    break # something killed the processes that wait for ssh
  fi
done 3>&2 2>/dev/null

# A run that ended because ssh could not reach hosts may be tried again.
[ "$stopped" = 0 ] || exit 75
# All hosts end with the same exit code.
exit "${codes[0]:-255}"

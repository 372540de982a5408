#!/bin/bash
# usage: with_gpus.sh COUNT COMMAND...
# Runs COMMAND where /dev has the files of so many GPUs, in a mount namespace of its own. Needs root.
set -eu
if [[ "$1" != inside ]]; then exec unshare -m "$0" inside "$@"; fi
count=$2
shift 2
devices=$(mktemp -d)
mount -t tmpfs fleetrun-test "$devices"
for name in null zero full random urandom tty ptmx; do
  touch "$devices/$name"
  mount --bind "/dev/$name" "$devices/$name"
done
for name in shm pts; do
  mkdir "$devices/$name"
  mount --rbind "/dev/$name" "$devices/$name"
done
for name in fd stdin stdout stderr; do ln -s "$(readlink "/dev/$name")" "$devices/$name"; done
for ((gpu = 0; gpu < count; ++gpu)); do touch "$devices/nvidia$gpu"; done
mount --move "$devices" /dev
rmdir "$devices"
exec "$@"

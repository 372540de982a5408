#!/usr/bin/env bash
# Runs a test on the first GPU, or is skipped (77) and says so. usage: on_gpu.sh TEST [ARGUMENT...]
set -euo pipefail
if [[ ! -e /dev/nvidia0 ]]; then
  echo "left out: no GPU here (/dev/nvidia0 does not exist)"
  exit 77
fi
FLEETRUN_TEST_DEVICE=cuda:0 exec "$@"

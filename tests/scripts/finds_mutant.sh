#!/usr/bin/env bash
# finds_mutant.sh TEST CASES MUTANT: the cases, which pass with the plug-in (on_host_device_*, on_host_ranks_*), fail with the mutant, because
# they see wrong numbers or because CUDA on the host refuses what the mutant does.
set -euo pipefail
test=$1 cases=$2 mutant=$3

if words=$(FLEETRUN_TEST_PLUGIN=$mutant FLEETRUN_NVJPEG=$mutant FLEETRUN_ON_HOST_MEBIBYTES=2048 "$test" "--test-case=$cases" 2>&1); then
  echo "not found: $mutant"
  exit 1
fi
if ! grep -q -e 'ERROR: CHECK' -e 'ERROR: REQUIRE' -e 'CUDA on the host:' <<<"$words"; then
  printf 'fails for another reason:\n%s\n' "$words"
  exit 1
fi
grep -m 1 -e 'ERROR: CHECK' -e 'ERROR: REQUIRE' -e 'CUDA on the host:' <<<"$words"

#!/usr/bin/env bash
# finds_mutant.sh TEST CASES PLUGIN MUTANT: the cases pass with the plug-in, and fail with the mutant, because they see wrong numbers or
# because CUDA on the host refuses what the mutant does.
set -euo pipefail
test=$1 cases=$2 plugin=$3 mutant=$4

FLEETRUN_TEST_PLUGIN=$plugin "$test" "--test-case=$cases" >/dev/null || { echo "fails without the mutant: $cases"; exit 1; }
if words=$(FLEETRUN_TEST_PLUGIN=$mutant "$test" "--test-case=$cases" 2>&1); then
  echo "not found: $mutant"
  exit 1
fi
if ! grep -q -e 'ERROR: CHECK' -e 'ERROR: REQUIRE' -e 'CUDA on the host:' <<<"$words"; then
  printf 'fails for another reason:\n%s\n' "$words"
  exit 1
fi
grep -m 1 -e 'ERROR: CHECK' -e 'ERROR: REQUIRE' -e 'CUDA on the host:' <<<"$words"

#!/usr/bin/env bash
# Runs terminal_test.py with a Python that has pexpect and pyte; else it is skipped (77) and says why.
# usage: terminal_test.sh FOLDER_OF_FLEETRUN
set -euo pipefail
for python in python3 /usr/bin/python3; do
  "$python" -c 'import pexpect, pyte' 2>/dev/null || continue
  exec "$python" -B "$(dirname "${BASH_SOURCE[0]}")/terminal_test.py" "$1"
done
echo "left out: no Python here has pexpect and pyte; scripts/setup --test installs them"
exit 77

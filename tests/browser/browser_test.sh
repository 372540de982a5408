#!/usr/bin/env bash
# Runs browser_test.py where there is a Chromium; else it is skipped (77) and says why.
# usage: browser_test.sh FOLDER_OF_FLEETRUN
set -euo pipefail
command -v chromium >/dev/null || { echo "left out: chromium is not installed; scripts/setup --peers installs it"; exit 77; }
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/browser_test.py" "$1"

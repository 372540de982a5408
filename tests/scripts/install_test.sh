#!/usr/bin/env bash
# An installed tree runs wherever it is moved to. usage: install_test.sh CMAKE BUILD_DIR
set -euo pipefail
cmake=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_test: $1" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" || fail "$(cat "$work/install.log")"
mkdir "$work/else where"
mv "$work/first" "$work/else where/fleetrun"
prefix="$work/else where/fleetrun"

version=$(env -C / "$prefix/bin/fleetrun" --version) || fail "fleetrun --version ended with $?"
[[ $version == *[0-9].[0-9]* ]] || fail "fleetrun --version says \"$version\""

worker=$(find "$prefix" -name fleetrun-worker -type f)
[[ -x $worker ]] || fail "no fleetrun-worker below the prefix"
for program in "$prefix/bin/fleetrun" "$worker"; do
  libraries=$(ldd "$program")
  ! grep -F "not found" <<<"$libraries" || fail "$program lacks a library"
  ! grep -F "$build" <<<"$libraries" || fail "$program still uses the build folder"
  ! grep -E "libcud|libcublas|libnccl|libnvidia" <<<"$libraries" || fail "$program is linked with a CUDA library"
done

mkdir "$work/job"
cat >"$work/job/job.json" <<'END'
{
  "model": {"name": "mlp", "hidden": [8]},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 4, 4], "classes": 2}, "batch_size": 16},
  "train": {"epochs": 1, "threads": 1}
}
END
status=0
(cd "$work/job" && timeout 60 "$prefix/bin/fleetrun" --nproc_per_node=1 --device=cpu job.json) \
  >"$work/run.log" 2>&1 || status=$?
((status == 0)) || {
  cat "$work/run.log" "$work/job/log/workerlog.0" >&2 || true
  fail "a job with the installed program ended with $status"
}
[[ -s $work/job/log/report.json && -s $work/job/log/train.json ]] || fail "the job left no report in $work/job/log"

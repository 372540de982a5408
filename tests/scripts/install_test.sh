#!/usr/bin/env bash
# What scripts/quickstart builds is enough for `cmake --install`, and the installed tree runs wherever it is moved to.
# usage: install_test.sh CMAKE NINJA BUILD_DIR SOURCE_DIR
set -euo pipefail
cmake=$1
ninja=$2
build=$3
source=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_test: $1" >&2
  exit 1
}

# A copy of the build folder as the quick start leaves it: its install scripts, and of files only what its targets make.
grep -q -- '--target installable$' "$source/scripts/quickstart" || fail "scripts/quickstart does not build installable"
(cd "$build" && find . -name cmake_install.cmake) >"$work/scripts"
(cd "$build" && "$ninja" -t graph installable | sed -n 's/.*\[label="\([^"]*\)"\]$/\1/p' | grep -vE '\.(o|a)$|^(/|\.\.)') >"$work/made"
mkdir "$work/build"
while read -r file; do
  [[ ! -f $build/$file ]] || (cd "$build" && cp --parents "$file" "$work/build")
done < <(cat "$work/scripts" "$work/made")
# The programs carry run paths of the real build folder, which the scripts have to find there.
while read -r file; do
  sed -i "/OLD_RPATH/!s|$build/|$work/build/|g" "$work/build/$file"
done <"$work/scripts"

"$cmake" --install "$work/build" --prefix "$work/first" >"$work/install.log" 2>&1 || fail "$(cat "$work/install.log")"
if grep -q fleetrun_cuda "$work/build/lib/cuda/plugin/cmake_install.cmake" 2>/dev/null; then
  grep -q "Without the CUDA plug-in" "$work/install.log" || fail "nothing says that the plug-in is not installed"
fi
mkdir "$work/else where"
mv "$work/first" "$work/else where/fleetrun"
prefix="$work/else where/fleetrun"
rm -r "$work/build"

version=$(env -C / "$prefix/bin/fleetrun" --version) || fail "fleetrun --version ended with $?"
[[ $version == *[0-9].[0-9]* ]] || fail "fleetrun --version says \"$version\""

worker=$prefix/libexec/fleetrun/fleetrun-worker
[[ -x $worker ]] || fail "no libexec/fleetrun/fleetrun-worker below the prefix"
for program in "$prefix/bin/fleetrun" "$worker"; do
  libraries=$(ldd "$program")
  ! grep -F "not found" <<<"$libraries" || fail "$program lacks a library"
  ! grep -F "$build" <<<"$libraries" || fail "$program still uses the build folder"
  ! grep -E "libcud|libcublas|libnccl|libnvidia" <<<"$libraries" || fail "$program is linked with a CUDA library"
done
outside=$(find "$prefix" -name '*.so*' -not -path '*/fleetrun/libfleetrun_*')
[[ -z $outside ]] || fail "libraries outside of our own folder: $outside"
for file in share/man/man1/fleetrun.1 share/bash-completion/completions/fleetrun share/doc/fleetrun/README.md \
  share/doc/fleetrun/docs/strategies.md; do
  [[ -s $prefix/$file ]] || fail "no $file below the prefix"
done

status=0
timeout 100 "$prefix/bin/fleetrun" --nproc_per_node=2 --device=cpu --log_dir="$work/log" \
  "$prefix/share/doc/fleetrun/examples/quickstart.json" train.epochs=1 output.dir="$work/output" >"$work/run.log" 2>&1 ||
  status=$?
((status == 0)) || {
  cat "$work/run.log" "$work/log/workerlog.0" >&2 || true
  fail "the quick start's job with the installed program ended with $status"
}
[[ -s $work/log/report.json && -s $work/log/train.json ]] || fail "the job left no report in $work/log"
[[ -s $work/output/model.safetensors ]] || fail "the job left no weights in $work/output"

#!/usr/bin/env bash
# scripts/gpu_check with stand-ins for its programs and for the GPU. usage: gpu_check_test.sh SOURCE_DIR
# shellcheck disable=SC2016  # what is between single quotes is for the stand-ins to expand
set -uo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
check() { # NAME CONDITION...
  local name=$1
  shift
  if "$@"; then echo "ok: $name"; else echo "FAILED: $name"; bad=$((bad + 1)); fi
}
program() { # FILE BODY
  mkdir -p "$(dirname "$1")"
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1"
  chmod +x "$1"
}

build=$work/build
for name in fleetrun-worker device_test ranks_test plugin_test step_probe; do
  program "$build/bin/$name" "echo \"$name on \${FLEETRUN_TEST_DEVICE:-cpu} as \${FLEETRUN_LAYOUT:-nchw}\""
done
program "$build/bin/step_speed" "echo \"batch \$2: 123.4 images/s\""
program "$build/bin/fleetrun" 'for i in $(seq 20); do echo "[Epoch 0, batch $i] loss: 1.50000, acc1: 0.1, acc5: 0.5"; done
echo $$ >>"$WORKERS"; case "$*" in *long.json*) sleep 0.5 ;; esac'
mkdir -p "$build/lib"
cp "$(command -v bash)" "$build/lib/libfleetrun_cuda.so" # for ldd
tools=$work/tools
export WORKERS=$work/workers
# 1000 of 10000 MiB are used, and 4600 more while a worker lives.
program "$tools/nvidia-smi" 'case "$*" in
  -L) echo "GPU 0: Stand-in" ;;
  *query-gpu=name\ *) echo "NVIDIA H200" ;;
  *memory.used*) used=1000; for pid in $(cat "$WORKERS" 2>/dev/null); do kill -0 "$pid" 2>/dev/null && used=5600; done; echo $used ;;
  *memory.total*) echo 10000 ;;
  *) echo "Stand-in, 1.0" ;;
esac'
program "$tools/python3" 'echo "python3: $*" | head -n 1
case $* in
  *torch_step_gpu*eager*) echo "PyTorch: batch 1: 99.5 images/s, 1.000 ms per step" ;;
  *torch_step_gpu*) echo "PyTorch: batch 1: 101.5 images/s, 1.000 ms per step" ;;
esac'
export PATH=$tools:$PATH

"$source/scripts/gpu_check" "$build" "$work/result.md" >"$work/out.txt" 2>&1
status=$?
check "everything passes" test "$status" = 0
check "the sum is said" grep -q '^[0-9]* passed, 0 failed, [0-9]* skipped; written: ' "$work/out.txt"
for line in 'device_test on cuda:0 as nhwc' 'ranks_test on cuda:0 as nchw' 'batch 128: 123.4 images/s' \
  'wanted 0.5 of 9000 MiB; taken at most: 4600 MiB' '20 1.50000 1.50000 0' 'resnet50 --device cuda:0' \
  'skipped: this machine has 1' 'FLEETRUN_TF32=1 FLEETRUN_STEP_OPS=0 BUILD/bin/step_speed WORK/resnet50.json 64 50' \
  'FLEETRUN_TF32=0 FLEETRUN_STEP_OPS=1 BUILD/bin/step_speed WORK/resnet50.json 256 50' 'amp_configs.dtype=fp16`' \
  'torch_step_gpu.py 256 bf16 compiled 50' 'lenet, bf16, 20 steps' '| bf16 | 256 | 123.4 | 101.5 | compiled | 1.216 | 3.0 |' \
  'bench/gpu_model H200 speeds WORK/speed.txt' 'skipped: FLEETRUN_PHOTOS names no list of image files' \
  'FLEETRUN_NCCL_REGISTER=1'; do
  check "the result has: $line" grep -qF -- "$line" "$work/result.md"
done

touch "$work/photos.txt"
FLEETRUN_PHOTOS=$work/photos.txt "$source/scripts/gpu_check" --only images "$build" "$work/images.md" >"$work/out.txt" 2>&1
check "photographs are decoded in both ways" test "$(grep -c 'data.use_dali=\(true\|false\).*ended with 0' "$work/images.md")" = 4

program "$build/bin/ranks_test" 'echo "rank 1 differs"; exit 1'
"$source/scripts/gpu_check" "$build" "$work/failed.md" >"$work/out.txt" 2>&1
check "a step that fails fails the check" test $? = 1
check "and its output is kept" grep -q 'rank 1 differs' "$work/failed.md"
check "and it is counted, once for each layout, and with registered gradients" grep -q ' 3 failed' "$work/out.txt"

export RESULT=$work/early.md
program "$build/bin/ranks_test" 'cp "$RESULT" "$RESULT.seen"'
"$source/scripts/gpu_check" --only tests "$build" "$RESULT" >"$work/out.txt" 2>&1
check "results are written as they come" grep -q 'device_test on cuda:0' "$RESULT.seen"

program "$tools/python3" 'exit 1'
"$source/scripts/gpu_check" "$build" "$work/without.md" >"$work/out.txt" 2>&1
check "without PyTorch its steps are skipped" grep -q 'skipped: python3 has no torch and torchvision with CUDA' "$work/without.md"

"$source/scripts/gpu_check" --dry_run "$build" "$work/dry.md" >"$work/out.txt" 2>&1
check "a dry run ends well" test $? = 0
check "and says what would be run" grep -q 'FLEETRUN_LAYOUT=nhwc BUILD/bin/ranks_test' "$work/out.txt"
check "and writes nothing" test ! -e "$work/dry.md"

"$source/scripts/gpu_check" --only memory,ranks "$build" "$work/part.md" >"$work/out.txt" 2>&1
check "parts run alone" test "$(grep -c '^== ' "$work/out.txt")" = 3
check "and only they are written" test "$(grep -c '^## ' "$work/part.md")" = 3
"$source/scripts/gpu_check" --dry_run --quick --only speed "$build" >"$work/out.txt" 2>&1
check "quick: two batches" test \
  "$(sed -n 's/^.*step_speed [^ ]* \([0-9]*\) 20 .*$/\1/p' "$work/out.txt" | sort -un | tr '\n' ' ')" = "32 256 "
check "quick: PyTorch compiles for narrow types only" test "$(grep -c 'torch_step_gpu.*compiled 20' "$work/out.txt")" = 4
"$source/scripts/gpu_check" --only speeds "$build" >"$work/out.txt" 2>&1
check "a section that does not exist is an error" test $? = 2
check "with its name" grep -q 'unknown section speeds' "$work/out.txt"

touch "$build/lib/libfake_nvml.so" # of the tests
"$source/scripts/gpu_check" --pack "$work/packed" "$build" >"$work/out.txt" 2>&1
check "packing ends well" test $? = 0
check "and says how much it is" grep -q ' MiB compressed; there, run ' "$work/out.txt"
check "and leaves out the libraries of tests" test ! -e "$work/packed/lib/libfake_nvml.so"
rm "$build"/bin/* "$build"/lib/*
program "$work/packed/programs/ranks_test" 'ls "$FLEETRUN_TEST_SOURCE/tests/runtime/ops/vectors/fc.safetensors"'
program "$work/packed/programs/device_test" 'echo "libraries: $LD_LIBRARY_PATH"'
"$work/packed/scripts/gpu_check" "$work/packed" >"$work/out.txt" 2>&1
check "what was packed works by itself" test $? = 0
check "with its libraries" grep -q "^libraries: $work/packed/lib" "$work/packed/docs/gpu-results.md"
check "and its model" test -x "$work/packed/bench/gpu_model"
check "and has its vectors and its result" grep -q '^/.*/packed/tests/runtime/ops/vectors/fc.safetensors$' \
  "$work/packed/docs/gpu-results.md"

program "$tools/nvidia-smi" 'exit 9'
"$work/packed/scripts/gpu_check" "$work/packed" "$work/none.md" >"$work/out.txt" 2>&1
check "without a GPU it is skipped" test $? = 77
check "and nothing is written" test ! -e "$work/none.md"
rm "$work/packed/bin/step_speed"
"$work/packed/scripts/gpu_check" "$work/packed" >"$work/out.txt" 2>&1
check "a program that is missing is named" test $? = 66
check "by its name" grep -q 'has no bin/step_speed' "$work/out.txt"
((bad == 0))

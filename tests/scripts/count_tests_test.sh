#!/usr/bin/env bash
# scripts/count_tests.awk on the log of a real ctest run. usage: count_tests_test.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >CTestTestfile.cmake <<'END'
add_test(cases sh -c "echo '[doctest] test cases:  7 |  7 passed | 0 failed | 0 skipped'")
add_test(bad_cases sh -c "echo '[doctest] test cases: 12 | 10 passed | 2 failed | 0 skipped'; exit 1")
add_test(left_out_cases sh -c "echo 'a_test.cpp(3): MESSAGE: left out: needs root'; echo '[doctest] test cases:  2 |  2 passed | 0 failed | 0 skipped'")
add_test(skipped sh -c "echo 'left out: no GPU here'; exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(leak_after_cases sh -c "echo '[doctest] test cases:  3 |  3 passed | 0 failed | 0 skipped'; exit 1")
add_test(script true)
add_test(bad_script false)
add_test(crash sh -c "kill -SEGV $$")
add_test(slow sleep 30)
set_tests_properties(slow PROPERTIES TIMEOUT 1)
END
ctest --output-on-failure -j 4 >/dev/null || true

# 7 + 10 + 2 + skipped + 3 + script; 2 + leak + bad_script + crash + slow; left_out_cases, skipped
counted=$(awk -f "$source_dir/scripts/count_tests.awk" Testing/Temporary/LastTest.log)
[[ $counted == "24 6 2" ]] || {
  echo "count_tests_test: counted \"$counted\", wanted \"24 6 2\"" >&2
  cat Testing/Temporary/LastTest.log >&2
  exit 1
}

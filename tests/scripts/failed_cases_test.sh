#!/usr/bin/env bash
# scripts/failed_cases.awk on the log of a real ctest run. usage: failed_cases_test.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >doctest.txt <<'END'
[doctest] doctest version is "2.4.9"
===============================================================================
/src/b_test.cpp:7:
TEST CASE:  a case that only says something

/src/b_test.cpp:8: MESSAGE: left out: needs root

===============================================================================
/src/a_test.cpp:3:
TEST CASE:  one and one are three

/src/a_test.cpp:4: ERROR: CHECK( 1 + 1 == 3 ) is NOT correct!
  values: CHECK( 2 == 3 )

===============================================================================
[doctest] test cases: 2 | 1 passed | 1 failed | 0 skipped
END
cat >asan.txt <<'END'
[doctest] test cases: 3 | 3 passed | 0 failed | 0 skipped
==17==ERROR: LeakSanitizer: detected memory leaks
SUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).
END
cat >CTestTestfile.cmake <<END
add_test(good echo "not shown")
add_test(cases sh -c "cat $work/doctest.txt; exit 1")
add_test(leak sh -c "cat $work/asan.txt; exit 1")
add_test(script sh -c "echo the last words; exit 1")
END
ctest --output-on-failure >/dev/null || true

awk -f "$source_dir/scripts/failed_cases.awk" Testing/Temporary/LastTest.log >shown
diff -u - shown <<'END' || { cat Testing/Temporary/LastTest.log >&2; exit 1; }
cases:
  TEST CASE:  one and one are three
  /src/a_test.cpp:4: ERROR: CHECK( 1 + 1 == 3 ) is NOT correct!
    values: CHECK( 2 == 3 )
leak:
  ==17==ERROR: LeakSanitizer: detected memory leaks
  SUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).
script:
  the last words
END

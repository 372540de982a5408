# Counts test cases in a LastTest.log of ctest: "PASSED FAILED LEFT_OUT".
# A test with a doctest summary counts each of its cases, any other counts one. A test that ended badly has at least
# one failure, whatever its summary says (a sanitizer speaks after it) or when it never came to write one.
# LEFT_OUT are the cases, parts of cases and scripts that said "left out: " and what this machine lacks (LEAVE_OUT in
# tests/support/leave_out.h). They count as passed, too.
/^[0-9]+\/[0-9]+ Test: / { cases_passed = 0; cases_failed = 0; summary = 0 }

/^\[doctest\] test cases:/ {
  summary = 1
  for (i = 2; i <= NF; i++) {
    if ($i == "passed") cases_passed += $(i - 1)
    if ($i == "failed") cases_failed += $(i - 1)
  }
}

/^([^ ]+: MESSAGE: )?left out: / { left_out++ }

/^Test (Passed|Failed)\.$/ || /^Test Skipped\.$/ {
  if ($2 == "Passed." && !summary) cases_passed = 1
  if ($2 == "Failed." && cases_failed == 0) cases_failed = 1
  passed += cases_passed
  failed += cases_failed
}

END { print passed + 0, failed + 0, left_out + 0 }

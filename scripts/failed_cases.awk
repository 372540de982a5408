# What failed in a LastTest.log of ctest, for the end of a long output: of each test the failed cases with doctest's lines about
# them and what a sanitizer says, or else its last 10 lines. At most 12 lines a case and 60 a test, because the log has the rest.
function remember(line) {
  if (lines < 60) kept[++lines] = line
}

function end_block() {
  if (failed_here)
    for (i = 1; i <= blocks; i++) remember(block[i])
  blocks = failed_here = 0
}

/^[0-9]+\/[0-9]+ Test: / {
  name = $3
  blocks = lines = last = failed_here = 0
}

/^=+$/ { end_block(); in_case = 0 }
/^TEST CASE:/ { in_case = 1 }
in_case && NF && (blocks < 12 || / ERROR: /) { block[++blocks] = $0 }
in_case && / (FATAL )?ERROR: / { failed_here = 1 }
!in_case && /^(==[0-9]+==)?(ERROR|WARNING): [A-Za-z]+Sanitizer|^SUMMARY: |: runtime error: / { remember($0) }
/^<end of output>/ { inside = 0 }
inside && NF && !/^\[doctest\]|^-+$/ { tail[last++ % 10] = $0 }
/^Output:$/ { inside = 1 }

/^Test Failed\.$/ {
  end_block()
  print name ":"
  if (lines == 0)
    for (i = (last > 10 ? last - 10 : 0); i < last; i++) print "  " tail[i % 10]
  for (i = 1; i <= lines; i++) print "  " kept[i]
}

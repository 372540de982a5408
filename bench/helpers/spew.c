/* Writes lines of 100 bytes, as a worker that logs much: 64 KiB at a time. usage: spew BYTES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  static char buffer[65536];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  char line[101];
  memset(line, 'x', 99);
  line[99] = '\n';
  for (long long left = atoll(argv[1]); left >= 100; left -= 100)
    if (fwrite(line, 1, 100, stdout) != 100) return 1;
  return fflush(stdout) == 0 ? 0 : 1;
}

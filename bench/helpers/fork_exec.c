/* The floor of a launcher: starts N copies of a program, waits for all. usage: fork_exec N PROGRAM [ARGUMENTS] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  for (int i = atoi(argv[1]); i > 0; --i)
    if (fork() == 0) {
      execv(argv[2], argv + 2);
      perror(argv[2]);
      _exit(127);
    }
  int status = 0, worst = 0;
  while (wait(&status) > 0)
    if (status != 0) worst = 1;
  return worst;
}

/* A worker that writes its pid into FOLDER/RANK.pid and waits for a signal. usage: sleeper FOLDER */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const char *rank = getenv("RANK");
  if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK");
  char name[4096], unfinished[4096 + 4];
  snprintf(name, sizeof name, "%s/%s.pid", argv[1], rank == NULL ? "0" : rank);
  snprintf(unfinished, sizeof unfinished, "%s.new", name);
  FILE *file = fopen(unfinished, "w");
  if (file == NULL) return 1;
  fprintf(file, "%d\n", (int)getpid());
  if (fclose(file) != 0 || rename(unfinished, name) != 0) return 1;
  for (;;) pause();
}

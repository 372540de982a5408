// Shells among the processes of a rank: they go on with their next command when a program has ended. Facts from /proc; false where /proc
// does not show the process.
#pragma once
#include <sys/types.h>

#include <vector>

namespace fleetrun::launch {

bool is_shell(pid_t pid);  // sh, bash and the like, also one that runs a script
bool is_compressor(
    pid_t pid);  // gzip and the like, which handle SIGTERM only to remove a file that is not complete
bool is_interactive_shell(pid_t pid);  // such as that of `bash -ic`, which ignores SIGTERM from its start

// The children in the foreground of a shell, which runs no trap before they have ended. Those in the background ignore SIGINT and SIGQUIT if the
// shell has no job control (POSIX.1-2017, Shell and Utilities, 2.11). None if the process is no shell.
std::vector<pid_t> foreground_of(pid_t shell);

// Whether `reader` reads what the process prints, through a pipe, as the shell of $(program) does.
bool reads_output_of(pid_t reader, pid_t pid);

}  // namespace fleetrun::launch

// A worker for tests of the launcher: does what its arguments say, one after the other.
//
//   exit N             ends with code N                   print TEXT         one line to stdout
//   signal N           sends itself signal N              env                prints its environment
//   sleep SECONDS      waits                              args               prints the arguments that follow
//   ignore-term        from now on                        descriptors        prints the open ones above 2
//   only RANK          the rest is for that rank only     signals            prints what it ignores or blocks
//   child              starts one that sleeps in its group
//   daemon FILE        starts one in a session of its own that ignores TERM and HUP, and writes its pid
//   pid FILE           writes its own pid                 ready FILE         makes the file
//   flood BYTES        writes lines of 100 bytes          on-term N          ends with code N at SIGTERM
//   on-usr1 TEXT       writes it at SIGUSR1               spin               computes for ever
//   spawn-for-ever     a child each millisecond           bomb               children that do the same
//   use-memory BYTES   takes and touches them             close              its standard descriptors
//   leave-group        goes into its parent's             fill-shared-memory  more than there is room for
//   await FILE         waits until somebody makes it
//   lines COUNT        10,000 lines of 100 bytes a second
//   dies-first RANK    that rank ends with 77, another one sees it dead and ends with 5
//   outlive FILE       waits until the process whose pid is in the file is dead
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

int code_at_term = 0;  // of the handlers, which can be given nothing else
const char* text_at_usr1 = "";
volatile long spins = 0;

std::string with_rank(std::string name) {
  const char* rank = std::getenv("PADDLE_TRAINER_ID");
  const auto place = name.find("%r");
  if (place != std::string::npos) name.replace(place, 2, rank == nullptr ? "none" : rank);
  return name;
}

// Under another name first: who sees the file sees the number in it.
void write_pid(const std::string& name, pid_t pid) {
  const std::string file = with_rank(name);
  std::ofstream(file + ".new") << pid << std::endl;
  std::rename((file + ".new").c_str(), file.c_str());
}

void wait_for_ever() {
  while (true) ::pause();
}

void start_child() {
  if (::fork() == 0) wait_for_ever();
}

void start_daemon(const std::string& pid_file) {
  if (::fork() != 0) return;
  ::setsid();
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  if (::fork() != 0) ::_exit(0);
  write_pid(pid_file, ::getpid());
  wait_for_ever();
}

void print_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > 2 && fd != ::dirfd(folder)) std::printf("descriptor %d\n", fd);
  }
  ::closedir(folder);
}

void print_signals() {
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int number = 1; number < SIGRTMIN; ++number) {
    struct sigaction action = {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      std::printf("ignored %d\n", number);
    if (::sigismember(&blocked, number) == 1) std::printf("blocked %d\n", number);
  }
}

// Sanitizers catch some signals: not here.
void die_of(int number) {
  ::signal(number, SIG_DFL);
  ::kill(::getpid(), number);
}

void flood(long bytes) {
  const std::string line(99, 'x');
  for (long written = 0; written < bytes; written += 100) std::puts(line.c_str());
}

// Lines of 100 bytes, a hundred in each 10 ms, and each at once.
void write_lines(long lines) {
  const std::string line = std::string(99, 'x') + "\n";
  auto next = std::chrono::steady_clock::now();
  for (long written = 0; written < lines; ++written) {
    if (written % 100 == 0) std::this_thread::sleep_until(next += std::chrono::milliseconds(10));
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) return;
  }
}

// More than /dev/shm has room for.
void fill_shared_memory() {
  const int file = ::shm_open("/fleetrun-test", O_RDWR | O_CREAT, 0600);
  ::shm_unlink("/fleetrun-test");  // as PyTorch does
  constexpr std::size_t kBytes = 64 * 1024 * 1024;
  if (file < 0 || ::ftruncate(file, kBytes) != 0) return;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) std::memset(memory, 1, kBytes);
}

// Children that ignore SIGTERM, some in sessions of their own, one each millisecond for ever.
void spawn_for_ever() {
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGCHLD, SIG_IGN);
  for (int i = 0;; ++i) {
    if (::fork() == 0) {
      if (i % 2 == 1) ::setsid();
      wait_for_ever();
    }
    ::usleep(1000);  // the promised rate of one child per millisecond
  }
}

// Every process starts another one as fast as it can; the surroundings have to set a limit.
void bomb() {
  ::signal(SIGTERM, SIG_IGN);
  while (true)
    if (::fork() < 0) ::usleep(1000);  // polls until the limit allows another process
}

void use_memory(long bytes) {
  char* memory = static_cast<char*>(std::malloc(static_cast<std::size_t>(bytes)));
  for (long i = 0; i < bytes; i += 4096) memory[i] = 1;
  std::printf("used %p\n", static_cast<void*>(memory));
}

void spin() {
  while (true) spins = spins + 1;
}

// Polls: inotify would have to watch a folder that may not exist yet.
void await_file(const std::string& name) {
  while (::access(name.c_str(), F_OK) != 0) ::usleep(1000);
}

bool is_dead(const std::string& pid) {
  std::string text;
  std::getline(std::ifstream("/proc/" + pid + "/stat"), text);
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos || text[name_end + 2] == 'Z';
}

// Polls: before Linux 5.3 there is no event for the end of a process that is not a child.
void outlive(const std::string& file) {
  std::string pid;
  await_file(file);
  std::ifstream(file) >> pid;
  while (!is_dead(pid)) ::usleep(10);
}

// Ends the program in the two ranks. There is no sleep between the two deaths: nothing but their order tells them apart.
void die_in_order(const std::string& first) {
  const std::string rank = with_rank("%r"), second = first == "0" ? "1" : "0", file = "dies-first.pid";
  if (rank == first) {
    write_pid(file, ::getpid());
    ::_exit(77);
  }
  if (rank != second) return;
  outlive(file);
  ::_exit(5);
}

void close_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) ::close(fd);
}

// Out of the process group that the launcher made, into the launcher's own.
void leave_group() { ::setpgid(0, ::getpgid(::getppid())); }

void run(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& what = words[i];
    const auto next = [&] { return words.at(++i); };
    std::fflush(stdout);
    if (what == "exit") std::exit(std::atoi(next().c_str()));
    if (what == "signal") die_of(std::atoi(next().c_str()));
    if (what == "sleep") ::usleep(static_cast<useconds_t>(std::atof(next().c_str()) * 1e6));
    if (what == "await") await_file(next());
    if (what == "print") std::puts(next().c_str());
    if (what == "ignore-term") ::signal(SIGTERM, SIG_IGN);
    if (what == "only" && next() != with_rank("%r")) return;
    if (what == "child") start_child();
    if (what == "daemon") start_daemon(next());
    if (what == "pid" || what == "ready") write_pid(next(), ::getpid());
    if (what == "descriptors") print_descriptors();
    if (what == "signals") print_signals();
    if (what == "dies-first") die_in_order(next());
    if (what == "outlive") outlive(next());
    if (what == "lines") write_lines(std::atol(next().c_str()));
    if (what == "fill-shared-memory") {
      ::signal(SIGBUS, SIG_DFL);  // which sanitizers catch
      fill_shared_memory();
    }
    if (what == "flood") flood(std::atol(next().c_str()));
    if (what == "on-term") {
      code_at_term = std::atoi(next().c_str());
      ::signal(SIGTERM, [](int) { ::_exit(code_at_term); });
    }
    if (what == "on-usr1") {
      text_at_usr1 = words.at(++i).c_str();
      ::signal(SIGUSR1, [](int) {
        [[maybe_unused]] const ssize_t written = ::write(1, text_at_usr1, std::strlen(text_at_usr1));
      });
    }
    if (what == "spawn-for-ever") spawn_for_ever();
    if (what == "bomb") bomb();
    if (what == "use-memory") use_memory(std::atol(next().c_str()));
    if (what == "spin") spin();
    if (what == "close") close_standard_descriptors();
    if (what == "leave-group") leave_group();
    if (what == "env")
      for (char** line = ::environ; *line != nullptr; ++line) std::puts(*line);
    if (what == "args")
      while (++i < words.size()) std::puts(words[i].c_str());
  }
}

}  // namespace

// The leak check of the address sanitizer stops all threads at the exit. It spins for ever if a SIGCONT comes then, as
// after Ctrl-Z. This program is not what the tests examine.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the sanitizer's
extern "C" int __lsan_is_turned_off() { return 1; }

int main(int argc, char** argv) { run({argv + 1, argv + argc}); }

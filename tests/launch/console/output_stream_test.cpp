#include "launch/console/output_stream.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>

#include <doctest/doctest.h>

#include "base/system/pipe.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::output_stream_test {
namespace {

// While it lives, no file of this process gets longer.
class ShortFiles {
 public:
  explicit ShortFiles(rlim_t bytes) : previous_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &usual_);
    const rlimit shorter = {bytes, usual_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &shorter);
  }
  ~ShortFiles() {
    ::setrlimit(RLIMIT_FSIZE, &usual_);
    std::signal(SIGXFSZ, previous_);
  }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;

 private:
  rlimit usual_{};
  void (*previous_)(int);
};

TEST_CASE("a pipe whose reader has gone tells before anything is written") {
  Pipe pipe = make_pipe();
  EventLoop loop;
  const OutputStream out(loop, pipe.write_end.get());
  CHECK_FALSE(out.has_lost_reader());
  pipe.read_end.reset();
  CHECK(out.has_lost_reader());
}

TEST_CASE("a file that takes nothing for a while goes on with a line that says how much it lacks") {
  const TemporaryFolder folder;
  const UniqueFd file(::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EventLoop loop;
  OutputStream out(loop, file.get());
  {
    const ShortFiles limit(10);
    out.write("before\n");
    out.write("half of this\n");
    out.write("nothing of this\n");
    CHECK(out.problem() == EFBIG);
    CHECK(out.idle());
  }
  out.write("after\n");
  out.write("the end\n");
  CHECK(
      folder.read("out") ==
      "before\nhal\n[fleetrun could not write 26 bytes of its output here: File too large (errno 27)]\nafter\nthe end\n");
}

}  // namespace
}  // namespace fleetrun::launch::output_stream_test

#include "base/system/steady_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <ostream>

#include <doctest/doctest.h>

#include "base/system/unique_fd.h"
#include "support/longest_file.h"
#include "support/temporary_folder.h"

namespace fleetrun::steady_output_test {
namespace {

TEST_CASE(
    "a stream that a full disk has silenced goes on when there is room again, and says what is missing") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const UniqueFd output(::fcntl(log.get(), F_DUPFD_CLOEXEC, 3)),
      full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  SteadyOutput buffer(output.get());
  std::ostream out(&buffer);
  out << "step 1" << std::endl;
  ::dup3(full.get(), output.get(), O_CLOEXEC);
  out << "step 2" << std::endl;
  out << "step 3" << std::endl;
  CHECK(out.good());
  CHECK(folder.read("log") == "step 1\n");
  ::dup3(log.get(), output.get(), O_CLOEXEC);
  out << "step 4" << std::endl;
  CHECK(
      folder.read("log") ==
      "step 1\n\n[14 bytes of this output could not be written here: No space left on device (errno 28)]\nstep 4\n");
}

TEST_CASE("hunt 145: what a full disk did not take of two streams is kept, in the order of writing") {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  SteadyOutput first(full.get()), second(full.get());
  const auto lost = std::make_unique<LostText>();
  first.keep_lost_in(*lost);
  second.keep_lost_in(*lost);
  std::ostream out(&first), errors(&second);
  out << "step 1" << std::endl;
  errors << "rank 0: error: no room" << std::endl;
  out << "step 2" << std::endl;
  CHECK(lost->read() == "step 1\nrank 0: error: no room\nstep 2\n");
}

TEST_CASE("lost text is forgotten when the stream has said that it is missing") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)),
      full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const UniqueFd output(::fcntl(full.get(), F_DUPFD_CLOEXEC, 3));
  SteadyOutput buffer(output.get());
  const auto lost = std::make_unique<LostText>();
  buffer.keep_lost_in(*lost);
  std::ostream out(&buffer);
  out << "step 1" << std::endl;
  CHECK(lost->read() == "step 1\n");
  ::dup3(log.get(), output.get(), O_CLOEXEC);
  out << "step 2" << std::endl;
  CHECK(lost->read().empty());
}

// As on a disk that has room for a few bytes only.
TEST_CASE("of a line that was written in part, the whole line is kept") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SteadyOutput buffer(log.get());
  const auto lost = std::make_unique<LostText>();
  buffer.keep_lost_in(*lost);
  std::ostream out(&buffer);
  const LongestFile limit(10);
  out << "step 1\nstep 2\n" << std::flush;
  CHECK(folder.read("log") == "step 1\nste");
  CHECK(lost->read() == "step 2\n");
}

TEST_CASE("text without an end of line is written when the stream is flushed") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SteadyOutput buffer(log.get());
  std::ostream out(&buffer);
  out << "a" << 'b' << std::flush;
  CHECK(folder.read("log") == "ab");
}

}  // namespace
}  // namespace fleetrun::steady_output_test

#include "base/run/progress_page.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::progress_page_test {
namespace {

TEST_CASE("suspicion: a worker cannot cut its page short, which would end the launcher by SIGBUS") {
  const UniqueFd fd = make_progress_fd();
  const ProgressPagePtr page = map_new_progress_page(fd.get());
  CHECK(::ftruncate(fd.get(), 0) != 0);
  CHECK(errno == EPERM);
  CHECK(::ftruncate(fd.get(), 1 << 30) != 0);
  page->step = 7;
  CHECK(map_inherited_progress_page(fd.get())->step == 7);
}

TEST_CASE("low: a limit of file sizes that leaves no room for a page is named, with its size") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small = {.rlim_cur = 200 * 1024, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    make_progress_fd();
  } catch (const Error& error) {
    message = error.message();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(message.find(" bytes, the limit of file sizes is 204800") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::progress_page_test

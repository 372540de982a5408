#include "base/error/library_error.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace fleetrun::library_error_test {
namespace {

TEST_CASE(
    "a thread that cannot start and memory that runs out are the fault of the system, not of fleetrun") {
  const std::system_error thread(std::make_error_code(std::errc::resource_unavailable_try_again));
  CHECK(error_of_library(thread).exit_code() == 71);
  CHECK(error_of_library(thread).message().starts_with("starting a thread: "));
  CHECK(error_of_library(std::bad_alloc()).exit_code() == 71);
}

TEST_CASE("any other exception of a library is a bug") {
  const Error error = error_of_library(std::out_of_range("no such index"));
  CHECK(error.exit_code() == 70);
  CHECK(error.message() == "internal error: no such index");
}

}  // namespace
}  // namespace fleetrun::library_error_test

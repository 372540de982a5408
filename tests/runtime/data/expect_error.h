// Checks what an Error says and the exit code that it leads to.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "base/error/error.h"

namespace fleetrun {

// The Error that `work` throws; a failed check and an empty Error when it throws none.
template <typename Work>
Error error_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    return error;
  }
  FAIL_CHECK("nothing was thrown");
  return Error(ErrorKind::internal, "");
}

template <typename Work>
void check_error(ErrorKind kind, const std::string& words, Work&& work) {
  const Error error = error_of(std::forward<Work>(work));
  CHECK(error.kind() == kind);
  CHECK_MESSAGE(error.message().find(words) != std::string::npos, "found: ", error.message(),
                "\nwanted: ", words);
}

}  // namespace fleetrun

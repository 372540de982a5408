// Why a run may not begin in a folder for logs.
#pragma once
#include <string>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/logs/log_folder.h"

namespace fleetrun::launch {

inline std::string why_not(const std::string& path, const LogPlan& plan = {}) {
  try {
    const LogFolder logs(path, plan);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 73);
    CHECK(error.hint().find("--log_dir") != std::string::npos);
    return error.message();
  }
  return "";
}

}  // namespace fleetrun::launch

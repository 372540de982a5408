// PADDLE_BACKUP_ENV_PATH: a file with the whole environment of a worker. PaddlePaddle reads a variable there if the
// environment lacks it. The file has no values that look like secrets.
#pragma once
#include <string>

#include "base/system/environment.h"
#include "launch/logs/log_folder.h"

namespace fleetrun::launch {

// The environment as a JSON object. It shows "***" in place of secrets: values of variables such as API_TOKEN, and
// passwords in addresses.
std::string backup_environment(const Environment& worker);

// Writes that to the log folder, under the file name in the worker's PADDLE_BACKUP_ENV_PATH, readable only by our user.
// Does nothing without that variable. Throws Error(create|io).
void write_backup_environment(const Environment& worker, const LogFolder& logs);

}  // namespace fleetrun::launch

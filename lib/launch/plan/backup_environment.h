// PADDLE_BACKUP_ENV_PATH: a file with the whole environment of a worker, where PaddlePaddle looks for variables that
// it does not find. What looks like a secret is not in it.
#pragma once
#include <string>

#include "base/system/environment.h"
#include "launch/logs/log_folder.h"

namespace fleetrun::launch {

// The environment as a JSON object, with "***" for the values of variables that are named as secrets are, and for
// passwords in addresses.
std::string backup_environment(const Environment& worker);

// Writes it to the folder under the name that PADDLE_BACKUP_ENV_PATH of the worker ends with, readable by our user only;
// nothing without that variable. Throws Error(create|io).
void write_backup_environment(const Environment& worker, const LogFolder& logs);

}  // namespace fleetrun::launch

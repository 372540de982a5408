// Where the paths of a job lead: relative ones start at the job file's folder, and what is written stays
// inside.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "job/keys/key.h"
#include "job/read/draft.h"

namespace fleetrun::job {

// Makes every path of the spec absolute. output.dir must lie in the folder of the job file (on the command
// line any path will do), checkpoint.dir in output.dir; what does not is a problem.
void resolve_paths(const Key& keys, Draft& draft);

// How the path leaves the folder, by its own words or through a symbolic link; nothing when it stays inside.
// Looks at the links that exist now.
std::optional<std::string> find_escape(const std::filesystem::path& path,
                                       const std::filesystem::path& folder);

}  // namespace fleetrun::job

#include "job/read/job_paths.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/system/file.h"

namespace fleetrun::job {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& folder) {
  const fs::path from_folder = path.lexically_relative(folder);
  return !from_folder.empty() && *from_folder.begin() != "..";
}

// The first part of the path that is a link to something that is not there.
std::optional<fs::path> find_dangling_link(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is not a link that we could follow
  fs::path walked;
  for (const fs::path& part : path) {
    walked /= part;
    if (fs::is_symlink(fs::symlink_status(walked, ignored)) && !fs::exists(walked, ignored)) return walked;
  }
  return std::nullopt;
}

fs::path absolute_from(const fs::path& folder, const std::string& path) {
  fs::path absolute = (folder / path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();  // "output/" is "output"
}

void make_absolute(const Key& object, const std::string& path, const fs::path& folder, Draft& draft) {
  for (const Key& key : object.members) {
    const std::string below = child_path(path, key.name);
    if (key.present && !key.present(draft.spec)) continue;
    make_absolute(key, below, folder, draft);
    if (key.kind != ValueKind::path || below == "checkpoint.dir") continue;
    const std::string value = key.show(draft.spec).text;
    if (!value.empty()) key.store(draft.spec, JsonValue(absolute_from(folder, value).string()));
  }
}

}  // namespace

std::optional<std::string> find_escape(const fs::path& path, const fs::path& folder) {
  if (!is_inside(path, folder)) return fmt::format("wanted a path inside {}", folder.string());
  if (const auto link = find_dangling_link(path))
    return fmt::format("wanted no symbolic link that leads nowhere, as {} does", link->string());
  std::error_code problem;
  const fs::path real_folder = fs::weakly_canonical(folder, problem);
  const fs::path real_path = problem ? fs::path() : fs::weakly_canonical(path, problem);
  if (problem) return fmt::format("wanted a path that can be followed: {}", problem.message());
  if (is_inside(real_path, real_folder)) return std::nullopt;
  return fmt::format("wanted a path inside {}; a symbolic link leads to {}", folder.string(),
                     real_path.string());
}

void resolve_paths(const Key& keys, Draft& draft) {
  const fs::path folder = absolute_from(current_folder(), fs::path(draft.file).parent_path().string());
  const std::string written_output = draft.spec.output.dir;
  make_absolute(keys, "", folder, draft);
  if (!draft.on_command_line("output.dir"))
    if (const auto escape = find_escape(draft.spec.output.dir, folder))
      draft.report("output.dir",
                   fmt::format("{}, {}; output.dir=PATH on the command line may name any folder",
                               json_quoted(written_output), *escape));
  std::string& resume = draft.spec.checkpoint.resume;
  if (resume.empty())
    draft.report("checkpoint.resume", R"("", wanted auto, never or the path of a checkpoint)");
  if (resume != "auto" && resume != "never") resume = absolute_from(folder, resume).string();
  auto& checkpoints = draft.spec.checkpoint.dir;
  if (!checkpoints) return;
  const std::string written_checkpoints = *checkpoints;
  checkpoints = absolute_from(draft.spec.output.dir, written_checkpoints).string();
  if (const auto escape = find_escape(*checkpoints, draft.spec.output.dir))
    draft.report("checkpoint.dir", fmt::format("{}, {}", json_quoted(written_checkpoints), *escape));
}

}  // namespace fleetrun::job

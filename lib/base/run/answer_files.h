// The files in the log folder in which rank 0 of `fleetrun tune` or `fleetrun eval` hands its answer to the launcher. Each begins with a
// mark, by which fleetrun knows that it wrote the file.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun {

struct AnswerFile {
  std::string_view name, mark;

  std::string path_in(const std::string& folder) const;
};

inline constexpr AnswerFile kTuneAnswer = {"tune.json", "{\"written_by\": \"fleetrun tune\""};
inline constexpr AnswerFile kEvalAnswer = {"eval.json", "{\n  \"written_by\": \"fleetrun eval\""};
inline constexpr AnswerFile kEvalTables = {"eval.txt", "written by fleetrun eval\n"};

// Throws Error(create) when something that fleetrun did not write has the name.
void require_own_answer(const AnswerFile& file, const std::string& folder);

// `content` begins with the mark. Throws Error(create|io).
void write_answer(const AnswerFile& file, const std::string& folder, std::string_view content);

}  // namespace fleetrun

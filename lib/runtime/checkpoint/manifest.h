// The file of a checkpoint that says what the checkpoint is and how its other files must look.
//
//   {"checkpoint": {"version": 1, "steps": 391, ..., "files": {"model.safetensors": {"bytes": 8, "xxh3_128": "0f.."}}},
//    "xxh3_128": "..."}     of the text of "checkpoint", written on one line
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "job/spec/model_path.h"
#include "runtime/checkpoint/training_state.h"

namespace fleetrun::runtime {

using job::kManifestName;

struct FileFacts {
  std::int64_t bytes = 0;
  std::string checksum;

  bool operator==(const FileFacts&) const = default;
};

struct Manifest {
  TrainingState state;
  std::map<std::string, FileFacts> files;  // by name
};

FileFacts facts_of(std::string_view content);  // XXH3, 128 bits, as 32 hexadecimal digits

std::string format_manifest(const Manifest& manifest);

// Throws Error that names `path`: data when the manifest is broken or changed, protocol when a newer fleetrun wrote it.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace fleetrun::runtime

// What libfleetrun_prototxt.so and its callers know of each other: one exported C function. The library reads and writes the protobuf text of
// Fleet's DistributedStrategy. It alone links libprotobuf, and load_prototxt.h loads it when a strategy file is used.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_reader.h"

namespace fleetrun::job {

// Goes up with every change to this file and to JsonValue.
constexpr int kPrototxtAbi = 1;

// PaddlePaddle's two schemas of a strategy. `any`: all fields of the file are in both.
enum class PaddleVersion { any, paddle_2, paddle_3 };

// What a strategy file sets, in the words of the file.
struct StrategyDocument {
  PaddleVersion version = PaddleVersion::any;
  // The fields that are set, by their names in the schema, in the order of the file. An enum is a text. The position is that of the
  // field's name.
  JsonValue root = JsonValue::object();
  std::vector<std::string> at_default;  // paths of fields with the value that the schema gives them anyway
  std::vector<JsonProblem> problems;    // by position; if there is one, the rest may be incomplete
};

// A strategy as protobuf text.
struct StrategyText {
  std::string text;
  std::vector<JsonProblem>
      problems;  // fields that are not in the text, with the positions that they had in the tree
};

struct PrototxtPlugin {
  int abi = kPrototxtAbi;  // first: read before anything else is believed
  // Neither throws for any content.
  StrategyDocument (*read)(std::string_view text) = nullptr;
  // For a version other than `any`. Of the messages `in_full`, as "build_strategy", also the fields that `root` lacks are written, with the
  // defaults of the schema.
  StrategyText (*write)(const JsonValue& root, PaddleVersion version,
                        const std::vector<std::string>& in_full) = nullptr;
};

constexpr const char* kPrototxtEntry = "fleetrun_prototxt";
using PrototxtEntry = const PrototxtPlugin* (*)();  // extern "C"

}  // namespace fleetrun::job

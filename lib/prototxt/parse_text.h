// Protobuf text to a message of one schema.
#pragma once
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prototxt/places.h"
#include "prototxt/schema.h"

namespace fleetrun::prototxt {

struct TextFault {
  std::size_t offset = 0;
  std::string message;  // what was found, what was wanted
};

struct UnknownField {
  std::size_t offset = 0;  // of its name
  std::string type;        // the message that does not have it: "paddle.fleet.AMPConfig"
  std::string name;
};

struct ParsedText {
  std::unique_ptr<pb::Message> message;
  pb::TextFormat::ParseInfoTree places;
  std::vector<UnknownField> unknown;  // left out of the message
  std::optional<TextFault> fault;     // the parser went no further
};

// The text must be UTF-8.
void parse_text(std::string_view text, const Places& places, const Schema& schema, ParsedText& parsed);

}  // namespace fleetrun::prototxt

// The keys of a job file for programs and for people: a JSON Schema (draft 7) for editors, a table in
// Markdown.
#pragma once
#include <string>

#include "base/json/json_value.h"

namespace fleetrun::job {

// Accepts what parse_job accepts, as far as one file can tell; keys of later builds are refused by name.
JsonValue job_schema();

// A line for each key: name, type, default, meaning.
std::string job_key_table();

}  // namespace fleetrun::job

// The fields of a strategy file and the keys below `strategy`: which field becomes which key, and back. Most have the same names.
#pragma once
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "job/keys/key.h"
#include "job/strategy_files/prototxt_plugin.h"

namespace fleetrun::job {

// What a job makes of a field.
enum class FieldUse {
  key,         // sets a key of the job
  overridden,  // the job sets that key itself
  at_default,  // the value is the one that holds anyway, and there is no key, or the key has no effect
  turned_off,  // a switch without a key, for which the job says false
  no_effect,   // no key sets it, and PaddlePaddle does not use the field in collective training, either
  unsupported  // this build does not have what the field asks for
};

struct StrategyField {
  std::string path;  // "amp_configs.init_loss_scaling"
  JsonValue value;   // as in the file
  TextPosition position;
  FieldUse use = FieldUse::unsupported;
  std::string key;    // below strategy
  JsonValue setting;  // of that key
  std::string why;    // there is no effect
};

// Every field that is set. `keys` are those of a job; `written` is what the job says under `strategy`, null if it says nothing.
std::vector<StrategyField> map_fields(const StrategyDocument& document, const Key& keys,
                                      const JsonValue* written);

// What the fields with the use `key` say, as under `strategy` in a job file.
JsonValue settings_of(const std::vector<StrategyField>& fields);

// The field of that version for a key below strategy, and the value of it.
struct FieldOfKey {
  std::string path;
  JsonValue value;
};
FieldOfKey field_of_key(const std::string& key, const JsonValue& value, PaddleVersion version);

}  // namespace fleetrun::job

// Which ops compute in a narrow type: PaddlePaddle's lists (python/paddle/fluid/contrib/mixed_precision/fp16_lists.py), as
// strategy.amp_configs changes them.
#pragma once
#include <map>
#include <string>

#include "job/spec/job_spec.h"
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

enum class AmpColor {
  white,  // narrow
  gray,   // narrow when what it reads is, f32 when one of what it reads was made by a black op
  black,  // f32
};

class AmpLists {
 public:
  // Throws Error(config) that names the key, for an op that is on both custom lists, that nobody knows, or that is to be
  // narrow and has no narrow kernels.
  explicit AmpLists(const job::AmpSpec& amp);

  AmpColor color_of(const OpView& op) const;

 private:
  std::map<std::string, AmpColor, std::less<>> colors_;  // by name; what is not there is black
};

}  // namespace fleetrun::runtime

// Contradictions between dgc and other keys.
#pragma once
#include "job/read/draft.h"

namespace fleetrun::job {

void check_dgc(Draft& draft);

}  // namespace fleetrun::job

// What libjpeg does with its blocks, for the decoders that cannot make a picture smaller by themselves.
#pragma once
#include "runtime/data/decode/image.h"

namespace fleetrun::runtime {

// Makes a whole picture smaller: each pixel is the mean of a square of `side` x `side` pixels, and of what there is of a square at the right
// and the lower edge.
void average_blocks(int side, Image& image);

}  // namespace fleetrun::runtime

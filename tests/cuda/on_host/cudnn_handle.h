// cuDNN's handle on the host.
#pragma once
#include <cudnn.h>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

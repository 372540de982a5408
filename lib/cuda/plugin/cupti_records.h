// The records of CUPTI that we read, as the toolkit declares them that fleetrun is built with. Their beginnings, which we read, are the same in
// all versions of a major version. Without CUPTI's headers this file declares nothing, and fleetrun is built without kernels in traces.
#pragma once
#if __has_include(<cupti_activity.h>)
#include <cupti_activity.h>
#include <cupti_version.h>
#define FLEETRUN_HAS_CUPTI 1

namespace fleetrun::cuda {

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel8;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using FillRecord = CUpti_ActivityMemset4;

}  // namespace fleetrun::cuda
#endif

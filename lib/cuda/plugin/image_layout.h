// The layouts of this plug-in: plain, and for images [N, C, H, W] and weights of convolutions [O, I, H, W] also channels
// last, as cuDNN's NHWC. PluginOptions::channels_last lets convolutions ask for it; it flows on from there.
#pragma once
#include <string_view>

#include "cuda/logic/channels_last.h"
#include "runtime/kernels/device.h"

namespace fleetrun::cuda {

bool is_channels_last(const runtime::Layout& layout);
// Of a value of another type that lies as this one.
runtime::Layout layout_in(const runtime::Value& value, DType dtype);
Pixels pixels_of(const runtime::Shape& shape);  // of four sizes

Channels channels_of(const runtime::Value& image);

// For KernelDef::choose_layouts. Images and weights as the job says, the rest plain.
runtime::LayoutChoice as_the_job_says(const runtime::LayoutQuery& query, runtime::Device& device);
// The same for the images that an op makes; what it reads is plain.
runtime::LayoutChoice outputs_as_the_job_says(const runtime::LayoutQuery& query, runtime::Device& device);

// Images as the input `leader` lies, the rest plain.
runtime::LayoutChoice images_like(const runtime::LayoutQuery& query, std::string_view leader);
runtime::LayoutChoice images_like_x(const runtime::LayoutQuery& query, runtime::Device& device);

// All values of one shape as the first input lies that is not plain.
runtime::LayoutChoice like_one_that_is_not_plain(const runtime::LayoutQuery& query, runtime::Device& device);

}  // namespace fleetrun::cuda

// Decides in which layout every value lies, by asking the device's kernels in program order. A layout
// flows from op to op; an explicit `reorder` op stands where two neighbours disagree, and only there.
// It comes after what the op is to come after that it is for.
//
//   conv2d -> y1 (nChw16c)          conv2d -> y1 (nChw16c)
//   relu y1 -> y2             =>    relu y1 -> y2 (nChw16c)
//   fc x=y2                         reorder x=y2 -> y=y2.plain (plain);  fc x=y2.plain
//
// A parameter lies as its first reader wants it; its gradient and its states lie like the parameter. When that reader is
// a cast, the cast lies as its own first reader wants it, in front of which it is made, and the parameter lies like the
// cast; so does a gradient of the cast's type.
#pragma once
#include <map>
#include <string>

#include "runtime/graph/program.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

using ParameterLayouts = std::map<std::string, Layout>;  // by name

// `given`: layouts decided by an earlier program that shares parameters with this one.
// Throws Error(internal) "op X has no CPU kernel in this build" for an op without a kernel.
void propagate_layouts(Program& program, const OpTable& ops, Device& device, const ParameterLayouts& given);

ParameterLayouts parameter_layouts(const Program& program);

// Those, and the layouts of gradients and cast parameters: what the same training program for another batch must share, because
// the ranks sum it.
ParameterLayouts summed_layouts(const Program& program);

}  // namespace fleetrun::runtime

// What a plug-in for a device (libfleetrun_cuda.so) and the worker know of each other: one exported C function.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

// Goes up with every change to what a plug-in sees of us: Device, Streams, Kernel, Communicator, this file.
constexpr int kPluginAbi = 15;

// What a job says about the device.
struct PluginOptions {
  int index = 0;                      // of the device, among those that the process sees
  double memory_fraction = 0;         // of the device's free memory to take at the start; 0: as it is needed
  bool exhaustive_search = true;      // time the convolution algorithms of each problem
  bool deterministic = true;          // only algorithms that give the same bits every time
  std::size_t workspace_limit = 0;    // bytes that one convolution may ask for besides its values
  bool persistent_batch_norm = true;  // cuDNN's mode for spatial statistics
  bool wait_for_collectives =
      true;                    // a collective returns when it is done, not when it is given to its stream
  bool tf32 = false;           // matrix units may round inputs of convolutions and fc to 10 bits
  bool channels_last = false;  // images lie as [N, H, W, C] between convolutions
  bool record_steps = true;  // a step is given to the device as one recording (a CUDA graph), where it can be
  bool register_buffers = false;   // gradients lie in memory from which a communicator sends without a copy
  std::string why_not_registered;  // if that is wanted and cannot be: a line for the log; else ""
  std::string image_library;       // the file of the library that decodes images; "": that of the system
  std::string activity_library;    // the same of the one that sees kernels
};

struct Plugin {
  int abi = kPluginAbi;                // first: read before anything else is believed
  KernelTable (*kernels)() = nullptr;  // those of its devices, known without one
  // Its memory, streams and communicators come with it. Throws Error(config) when there is no such device.
  std::unique_ptr<Device> (*make_device)(const PluginOptions&) = nullptr;
};

constexpr const char* kPluginEntry = "fleetrun_plugin";
using PluginEntry = const Plugin* (*)();  // extern "C"

}  // namespace fleetrun::runtime

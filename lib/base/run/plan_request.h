// What the user asks of `fleetrun plan`. The launcher writes it as one word of the worker's command line, and the worker
// reads it back.
#pragma once
#include <cstdint>
#include <string>

namespace fleetrun {

// The defaults are those of a host with V100 GPUs (32 GB, NVLink) and a network of 100 Gbit/s, at what programs reach of them.
struct PlanRequest {
  int hosts = 1;
  int gpus = 8;                // ranks of a host
  double memory_bytes = 32e9;  // of a rank
  double tflops = 10;          // 10^12 multiplications and additions per second, of a rank
  double memory_gb_s = 700;    // 10^9 bytes per second, between a rank and its memory
  double link_gb_s = 100;      // ... between two ranks of a host
  double network_gb_s = 10;    // ... between two hosts
  double latency_us = 20;      // of one message
  double step_ms = 0;  // measured computation of a step on one rank; 0: predicted from tflops and memory_gb_s

  bool operator==(const PlanRequest&) const = default;
};

// "hosts=4,gpus=8,memory=32000000000,..."
std::string write_plan_request(const PlanRequest& request);

// Throws Error(usage) for any other text, and for numbers that cannot be.
PlanRequest parse_plan_request(const std::string& text);

}  // namespace fleetrun

// The lines that people and their scripts follow in log/workerlog.N. They have acc5 where there are more than five classes.
#pragma once
#include <string>

#include "runtime/observe/score.h"

namespace fleetrun::runtime {

// "[Epoch 0, batch 5] loss: 4.62498, acc1: 0.03125, acc5: 0.06250"
std::string epoch_line(int epoch, int batch, const Score& score);

// "worker_index: 1, step12 cost = 2.302585, speed: 512.000000": speed in images/s of this rank.
std::string worker_line(int rank, long step, double cost, double speed);

// "[Epoch 0, test] loss: 1.20000, acc1: 0.61000, acc5: 0.95000"
std::string test_line(int epoch, const Score& score);

}  // namespace fleetrun::runtime

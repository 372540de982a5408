// Open MPI's all-reduce of f32 sums in place:  mpirun -np RANKS mpi_all_reduce BYTES ROUNDS
// Prints "MEDIAN P90 MIN" in microseconds, as rank 0 saw them.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> data(std::strtoull(argv[1], nullptr, 10) / sizeof(float));
  const int rounds = std::atoi(argv[2]);
  std::vector<double> times;
  for (int round = -20; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    if (round >= 0) times.push_back((MPI_Wtime() - start) * 1e6);
  }
  std::sort(times.begin(), times.end());
  if (rank == 0)
    std::printf("%.3f %.3f %.3f\n", times[times.size() / 2], times[times.size() * 9 / 10], times[0]);
  MPI_Finalize();
}

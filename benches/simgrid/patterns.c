/* The patterns of benches/patterns/main.rs, for the simulator SMPI of SimGrid.
 *
 *   patterns WINDOW ANSWER CASE...
 *
 * prints one line for each case, the case and its seconds. A put is a send here whose receive was posted before all began: then SMPI takes no
 * time for the receiver, and its network moves the bytes at once. A rank has at most WINDOW sends in flight, as it has puts there. A put is
 * complete when the answer is back. Sends have no answers, so each rank waits ANSWER seconds more at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* From the agreement on a time to that time, in seconds. */
#define AHEAD 10e-3

static int rank, ranks, window;
static char *source, *target;

static void wait_until(double time)
{
  double left = time - MPI_Wtime();
  if (left > 0) {
    struct timespec span = {(time_t)left, (long)((left - (time_t)left) * 1e9 + 0.5)};
    nanosleep(&span, NULL);
  }
}

/* MPI_Waitall of SMPI looks at all requests again whenever one is done. */
static void wait_for(MPI_Request *requests, int count)
{
  for (int i = 0; i < count; i++)
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}

/* Sends a block to the ranks at distances first to last, in this order; returns what the slowest rank took. */
static double exchange(int first, int last, int bytes, double answer)
{
  int count = last - first + 1;
  MPI_Request *receives = malloc(count * sizeof *receives);
  MPI_Request *sends = malloc(window * sizeof *sends);
  for (int i = 0; i < count; i++) {
    int distance = (first + i) % ranks;
    MPI_Irecv(target, bytes, MPI_BYTE, (rank + ranks - distance) % ranks, distance, MPI_COMM_WORLD, &receives[i]);
  }
  double now = MPI_Wtime(), begin, took, slowest;
  MPI_Allreduce(&now, &begin, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  begin += AHEAD;
  wait_until(begin);
  for (int i = 0; i < count; i++) {
    int distance = (first + i) % ranks, slot = i;
    if (i >= window)
      MPI_Waitany(window, sends, &slot, MPI_STATUS_IGNORE);
    MPI_Isend(source, bytes, MPI_BYTE, (rank + distance) % ranks, distance, MPI_COMM_WORLD, &sends[slot]);
  }
  wait_for(sends, count < window ? count : window);
  wait_until(MPI_Wtime() + answer);
  took = MPI_Wtime() - begin;
  wait_for(receives, count);
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  free(receives);
  free(sends);
  return slowest;
}

int main(int argc, char **argv)
{
  enum { LARGEST = 1 << 20 };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  window = atoi(argv[1]);
  double answer = atof(argv[2]);
  /* Memory of all ranks together, which SMPI does not copy. */
  source = SMPI_SHARED_MALLOC(LARGEST);
  target = SMPI_SHARED_MALLOC(LARGEST);
  for (int i = 3; i < argc; i++) {
    int distance, bytes;
    double took;
    if (sscanf(argv[i], "shift:%d:%d", &distance, &bytes) == 2)
      took = exchange(distance, distance, bytes, answer);
    else if (sscanf(argv[i], "all_to_all:%d", &bytes) == 1)
      took = exchange(1, ranks - 1, bytes, answer);
    else
      return fprintf(stderr, "%s is no case\n", argv[i]), 2;
    if (rank == 0)
      printf("%s %.9f\n", argv[i], took);
  }
  SMPI_SHARED_FREE(source);
  SMPI_SHARED_FREE(target);
  MPI_Finalize();
  return 0;
}

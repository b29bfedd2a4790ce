/* mpirun -n 4 start: MPI begun and ended at the level of threads that a program with a progress thread
 * asks for. What a job of ours takes longer under the same mpirun is ours.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Finalize();
    return 0;
}

/* Filling the ghost cells, one layer deep, of arrays whose ends meet. */
#include "ga.h"
#include <stdio.h>
#include <stdlib.h>

static int extent[3], axes;

static double value(const int *at)
{
    double v = 0;
    for (int d = 0; d < axes; d++) v = v * extent[d] + (at[d] + extent[d]) % extent[d];
    return v;
}

static void update(void *context)
{
    GA_Update_ghosts(*(int *)context);
}

/* Every cell of this rank's block from `margin` layers outside it inwards: written, or compared. */
static void visit(int handle, int margin, int write)
{
    int low[3], high[3], block[3], leading[3], at[3], wrong = 0;
    double *cells;
    NGA_Distribution(handle, bench_rank, low, high);
    NGA_Access_ghosts(handle, block, &cells, leading);
    long count = 1;
    for (int d = 0; d < axes; d++) count *= high[d] - low[d] + 1 + 2 * margin;
    for (long c = 0; c < count && !wrong; c++) {
        long rest = c, offset = 0;
        for (int d = axes - 1; d >= 0; d--) {
            int width = high[d] - low[d] + 1 + 2 * margin;
            at[d] = low[d] - margin + (int)(rest % width);
            rest /= width;
        }
        for (int d = 0; d < axes; d++) offset = (d ? offset * leading[d - 1] : 0) + at[d] - low[d] + 1;
        if (write) cells[offset] = value(at);
        else if ((wrong = cells[offset] != value(at))) bench_failed("update_ghosts", cells[offset], value(at));
    }
    NGA_Release_update(handle, low, high);
    GA_Sync();
}

static void ghost_row(int n, int dimensions, const char *shape)
{
    char name[] = "ghosts";
    int width[3] = { 1, 1, 1 };
    axes = dimensions;
    for (int d = 0; d < axes; d++) extent[d] = n;
    int handle = NGA_Create_ghosts(C_DBL, axes, extent, width, name, NULL);
    if (!handle) GA_Error("cannot create an array with ghost cells", axes);
    GA_Zero(handle);
    visit(handle, 0, 1);
    row("update_ghosts", shape, "us", measure_together(update, &handle), 1);
    visit(handle, 1, 0);
    GA_Destroy(handle);
}

void ghost_rows(void)
{
    ghost_row(64, 2, "64x64");
    ghost_row(160, 3, "160x160x160");
}

/* Elements, patches, lists of elements and a counter in the other rank's block. */
#include "ga.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int array, low[2], high[2], leading[1];
    double *local;
    subscripts_t seed;
} patch_t;

/* One spares the library a scaled copy of the buffer: its best case. */
static double factor = 1.0;

/* Wait for what is under way, and keep the next operations under watch too. */
static void fence(void *context)
{
    (void)context;
    GA_Fence();
    GA_Init_fence();
}

static void put_random(void *context)
{
    patch_t *p = context;
    subscripts_t at = p->seed;
    size_t i, j;
    for (int k = 0; k < SUBSCRIPTS; k++) {
        next_subscript(&at, &i, &j);
        int element[2] = { p->low[0] + (int)i, p->low[1] + (int)j };
        NGA_Put(p->array, element, element, p->local, p->leading);
    }
}

static void get_random(void *context)
{
    patch_t *p = context;
    subscripts_t at = p->seed;
    size_t i, j;
    for (int k = 0; k < SUBSCRIPTS; k++) {
        next_subscript(&at, &i, &j);
        int element[2] = { p->low[0] + (int)i, p->low[1] + (int)j };
        NGA_Get(p->array, element, element, p->local, p->leading);
    }
}

void element_rows(void)
{
    for (size_t b = 0; b < COUNT(BLOCKS); b++) {
        int rows = 1 << BLOCKS[b].row_bits, columns = 1 << BLOCKS[b].column_bits;
        int extent[2] = { 2 * rows, columns }, block[2] = { rows, columns };
        patch_t p = { .array = array(C_DBL, 2, extent, block), .leading = { 1 }, .local = pages(4096),
                      .seed = { 1, BLOCKS[b].row_bits, BLOCKS[b].column_bits } };
        GA_Zero(p.array);
        NGA_Distribution(p.array, OTHER, p.low, p.high);
        ALONE({
            GA_Init_fence();
            row("put_small", BLOCKS[b].name, "ns", measure_alone(put_random, fence, &p), SUBSCRIPTS);
            GA_Fence();
            row("get_small", BLOCKS[b].name, "ns", measure_alone(get_random, NULL, &p), SUBSCRIPTS);
        });
        free(p.local);
        GA_Destroy(p.array);
    }
}

static void put(void *context)
{
    patch_t *p = context;
    NGA_Put(p->array, p->low, p->high, p->local, p->leading);
}

static void get(void *context)
{
    patch_t *p = context;
    NGA_Get(p->array, p->low, p->high, p->local, p->leading);
}

static void accumulate(void *context)
{
    patch_t *p = context;
    NGA_Acc(p->array, p->low, p->high, p->local, p->leading, &factor);
}

static void check_round_trip(patch_t *p, int count)
{
    for (int k = 0; k < count; k++) p->local[k] = k + 1;
    put(p);
    fence(NULL);
    for (int k = 0; k < count; k++) p->local[k] = 0;
    get(p);
    for (int k = 0; k < count; k++)
        if (p->local[k] != k + 1) {
            bench_failed("put and get", p->local[k], k + 1);
            break;
        }
}

static void patch_rows(patch_t *p, const char *suffix, const char *shape, size_t bytes)
{
    static const struct { const char *name; bench_op op, finish; } OPS[] = {
        { "put", put, fence }, { "get", get, NULL }, { "accumulate", accumulate, fence },
    };
    check_round_trip(p, (int)(bytes / 8));
    for (size_t o = 0; o < COUNT(OPS); o++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", OPS[o].name, suffix);
        row(name, shape, "GB/s", measure_alone(OPS[o].op, OPS[o].finish, p), (double)bytes);
    }
}

void contiguous_rows(void)
{
    int half = (int)(64 * MIB / 8), extent[1] = { 2 * half }, block[1] = { half };
    patch_t p = { .array = array(C_DBL, 1, extent, block), .leading = { half }, .local = pages(64 * MIB) };
    GA_Zero(p.array);
    NGA_Distribution(p.array, OTHER, p.low, p.high);
    ALONE({
        GA_Init_fence();
        for (size_t k = 0; k < COUNT(CONTIGUOUS); k++) {
            p.high[0] = p.low[0] + (int)(CONTIGUOUS[k] / 8) - 1;
            patch_rows(&p, "", size_name(CONTIGUOUS[k]), CONTIGUOUS[k]);
        }
        GA_Fence();
    });
    free(p.local);
    GA_Destroy(p.array);
}

/* The second quarter of each row. */
void strided_rows(void)
{
    double *local = pages(16 * MIB);
    for (size_t c = 0; c < COUNT(CHUNKS); c++) {
        int chunk = (int)(CHUNKS[c] / 8), rows = (int)(16 * MIB / CHUNKS[c]);
        int extent[2] = { 2 * rows, 4 * chunk }, block[2] = { rows, 4 * chunk };
        patch_t p = { .array = array(C_DBL, 2, extent, block), .leading = { chunk }, .local = local };
        GA_Zero(p.array);
        NGA_Distribution(p.array, OTHER, p.low, p.high);
        p.low[1] = chunk;
        p.high[1] = 2 * chunk - 1;
        ALONE({
            GA_Init_fence();
            for (size_t s = 0; s < COUNT(STRIDED); s++) {
                char shape[64];
                snprintf(shape, sizeof shape, "%s/%zuB", size_name(STRIDED[s]), CHUNKS[c]);
                p.high[0] = p.low[0] + (int)(STRIDED[s] / CHUNKS[c]) - 1;
                patch_rows(&p, "_strided", shape, STRIDED[s]);
            }
            GA_Fence();
        });
        GA_Destroy(p.array);
    }
    free(local);
}

static void put_in_flight(void *context)
{
    patch_t *p = context;
    ga_nbhdl_t handle[IN_FLIGHT];
    for (int k = 0; k < IN_FLIGHT; k++) {
        int element = p->low[0] + k;
        NGA_NbPut(p->array, &element, &element, p->local + k, p->leading, &handle[k]);
    }
    for (int k = 0; k < IN_FLIGHT; k++) NGA_NbWait(&handle[k]);
}

void in_flight_rows(void)
{
    int extent[1] = { 2 * 8192 }, block[1] = { 8192 };
    patch_t p = { .array = array(C_DBL, 1, extent, block), .leading = { 1 }, .local = pages(4096) };
    GA_Zero(p.array);
    NGA_Distribution(p.array, OTHER, p.low, p.high);
    ALONE({
        GA_Init_fence();
        row("put_nb", "64x8B", "M/s", measure_alone(put_in_flight, fence, &p), IN_FLIGHT);
        GA_Fence();
    });
    free(p.local);
    GA_Destroy(p.array);
}

typedef struct {
    int array, **at;
    double *values;
} list_t;

static void scatter(void *context)
{
    list_t *l = context;
    NGA_Scatter(l->array, l->values, l->at, LISTED);
}

static void gather(void *context)
{
    list_t *l = context;
    NGA_Gather(l->array, l->values, l->at, LISTED);
}

static void scatter_accumulate(void *context)
{
    list_t *l = context;
    NGA_Scatter_acc(l->array, l->values, l->at, LISTED, &factor);
}

void random_rows(void)
{
    int extent[2] = { ORDER, ORDER };
    int *subscripts = pages(2 * LISTED * sizeof(int));
    list_t l = { array(C_DBL, 2, extent, NULL), pages(LISTED * sizeof(int *)), pages(LISTED * 8) };
    GA_Zero(l.array);
    for (int k = 0; k < 2 * LISTED; k++) subscripts[k] = (int)(random64() % ORDER);
    for (int k = 0; k < LISTED; k++) l.at[k] = subscripts + 2 * k;
    ALONE({
        row("scatter", "1e5", "M/s", measure_alone(scatter, NULL, &l), LISTED);
        row("gather", "1e5", "M/s", measure_alone(gather, NULL, &l), LISTED);
        row("scatter_accumulate", "1e5", "M/s", measure_alone(scatter_accumulate, NULL, &l), LISTED);
    });
    free(subscripts);
    free(l.at);
    free(l.values);
    GA_Destroy(l.array);
}

static long increments;

static void increment(void *context)
{
    int element = 1;            /* lives on rank 1 */
    NGA_Read_inc(*(int *)context, &element, 1);
    increments++;
}

void counter_rows(void)
{
    int extent[1] = { 2 }, block[1] = { 1 }, handle = array(C_LONG, 1, extent, block);
    char plus[] = "+";
    GA_Zero(handle);
    ALONE({ row("read_inc", "one rank", "ns", measure_alone(increment, NULL, &handle), 1); });
    stat_t s = measure_together(increment, &handle);
    row("read_inc", "two ranks", "ns", s, 1);
    long total = increments, value;
    GA_Lgop(&total, 1, plus);
    ALONE({
        int element = 1, leading = 1;
        NGA_Get(handle, &element, &element, &value, &leading);
        if (value != total) bench_failed("counter", (double)value, (double)total);
    });
    GA_Destroy(handle);
}

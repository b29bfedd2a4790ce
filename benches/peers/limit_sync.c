/* A shared counter, a message of two lines, the flag barrier of two processes, a sleeping barrier of eight, and the
 * birth and death of two processes.
 */
#define _GNU_SOURCE
#include "limit.h"
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 8

static void increment(void *context)
{
    atomic_fetch_add((_Atomic long *)context, 1);
}

void counter_rows(void)
{
    void *counter = OTHERS;
    ALONE({ row("read_inc", "one rank", "ns", measure_alone(increment, NULL, counter), 1); });
    stat_t s = measure_together(increment, counter);
    row("read_inc", "two ranks", "ns", s, 1);
}

/* One way: 100 bytes and a flag go there, are copied, and others come back. Half of the time counts. */
typedef struct {
    _Alignas(128) _Atomic unsigned flag;
    char data[100];
} letter_t;

typedef struct {
    letter_t *letters;      /* to rank 0, to rank 1 */
    unsigned count;
    char local[100];
} mail_t;

static void send_letter(mail_t *m, size_t bytes)
{
    letter_t *l = &m->letters[1 - bench_rank];
    memcpy(l->data, m->local, bytes);
    atomic_store_explicit(&l->flag, m->count, memory_order_release);
}

static void receive_letter(mail_t *m, size_t bytes)
{
    letter_t *l = &m->letters[bench_rank];
    while (atomic_load_explicit(&l->flag, memory_order_acquire) != m->count)
        ;
    memcpy(m->local, l->data, bytes);
    COMPILER_BARRIER();
}

static void letter(void *context)
{
    mail_t *m = context;
    m->count++;
    if (bench_rank == 1) receive_letter(m, sizeof m->local);
    send_letter(m, sizeof m->local);
    if (bench_rank == 0) receive_letter(m, sizeof m->local);
}

/* There and back: a question of two lines, and an answer of one. */
static void call(void *context)
{
    mail_t *m = context;
    m->count++;
    if (bench_rank == 1) receive_letter(m, ASKED);
    send_letter(m, bench_rank == 0 ? ASKED : ANSWERED);
    if (bench_rank == 0) receive_letter(m, ANSWERED);
}

static stat_t measure_letters(bench_op op)
{
    mail_t m = { .letters = (letter_t *)halves };
    meet();
    atomic_store(&m.letters[bench_rank].flag, 0);
    meet();
    return measure_together(op, &m);
}

void message_rows(void)
{
    row("message", "100B", "ns", measure_letters(letter), 2);
}

void active_rows(void)
{
    row("call", "64B", "ns", measure_letters(call), 1);
}

static void barrier(void *context)
{
    (void)context;
    meet();
}

void sync_rows(void)
{
    stat_t s = measure_together(barrier, NULL);
    row("sync", "2 ranks", "us", s, 1);
}

/* More processes than cores: a counter, a few yields, then sleep until the last one wakes all. */
typedef struct {
    _Alignas(128) _Atomic int arrived;
    _Alignas(128) _Atomic int phase;
} crowd_t;

static void crowd_barrier(crowd_t *c)
{
    int phase = atomic_load(&c->phase);
    if (atomic_fetch_add(&c->arrived, 1) == MANY - 1) {
        atomic_store(&c->arrived, 0);
        atomic_store(&c->phase, phase + 1);
        syscall(SYS_futex, &c->phase, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (int k = 0; k < 4 && atomic_load(&c->phase) == phase; k++) sched_yield();
    while (atomic_load(&c->phase) == phase) syscall(SYS_futex, &c->phase, FUTEX_WAIT, phase, NULL, NULL, 0);
}

void sync8_rows(void)
{
    enum { ROUNDS = 500, TRIALS = 11 };
    ALONE({
        crowd_t *crowd = shared(sizeof *crowd);
        pid_t child[MANY];
        double seconds[TRIALS];
        for (int p = 1; p < MANY; p++)
            if ((child[p] = fork_bound()) == 0) {
                for (int k = 0; k < TRIALS * ROUNDS; k++) crowd_barrier(crowd);
                _exit(0);
            }
        for (int t = 0; t < TRIALS; t++) {
            double start = now();
            for (int k = 0; k < ROUNDS; k++) crowd_barrier(crowd);
            seconds[t] = (now() - start) / ROUNDS;
        }
        for (int p = 1; p < MANY; p++) waitpid(child[p], NULL, 0);
        row("sync", "8 ranks", "us", summary(seconds, TRIALS), 1);
        munmap(crowd, sizeof *crowd);
    });
}

static void two_processes(void *context)
{
    (void)context;
    pid_t a = fork_bound();
    if (a == 0) _exit(0);
    pid_t b = fork_bound();
    if (b == 0) _exit(0);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
}

void job_rows(void)
{
    ALONE({ row("job", "2 ranks", "ms", measure_alone(two_processes, NULL, NULL), 1); });
}

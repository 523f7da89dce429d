/*
 * Runs a target without libFuzzer.
 *
 *   replay FOLDER           over the files of a corpus, and over large inputs grown from them
 *   replay --full FOLDER    the same with inputs as large as the product accepts
 *   replay --limit FOLDER   prints how large that is; for libFuzzer
 *
 * The name of the folder is that of the target. A corpus without files fails, so that it cannot get
 * lost. A target whose work grows faster than its input fails, too: an input of GROWTH times the
 * size may take SUPERLINEAR times as long. Both times are of one process, so a slow machine changes
 * nothing. The margin is three times what linear work takes; quadratic work takes nearly three
 * times the margin.
 */
#include <dirent.h>
#include <time.h>

#include "base/alloc.h"
#include "tests/fuzz/grow.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/target.h"

#define REPLAY_BYTES_MAX ((size_t)128 * 1024) /* a large input without --full: tests run often */
#define GROWTH 8u
#define SUPERLINEAR 24u
#define SHORTEST MSECONDS(1) /* less than that counts as so much: noise */
#define ATTEMPTS 5u          /* of which the best counts: other processes disturb */
#define SEEDS_MAX 8u         /* of a corpus that are grown, evenly chosen */
#define TOTAL_BYTES_MAX                                                                            \
    ((size_t)64 * 1024 * 1024) /* of all large inputs; of more, some are left out, evenly */

struct replay {
    const struct fuzz_limit *limit;
    size_t large; /* bytes */
    struct arena memory;
    struct seed {
        struct str name; /* of its file */
        struct str text;
    } * seeds;
    uint32_t seed_n;
    uint32_t seed_cap;
    uint32_t growths; /* so far */
    uint32_t step;    /* of so many growths one is run */
    uint32_t inputs;
    uint32_t failures;
};

/* CPU time that the target takes. */
static usec_t run_one(struct str input)
{
    struct timespec from;
    struct timespec to;
    /* Exactly as large as the input: a read past its end is the sanitizer's to find. */
    uint8_t *data = alloc_bytes(input.n > 0 ? input.n : 1);
    if (input.n > 0) {
        memcpy(data, input.p, input.n);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from); /* it exists */
    (void)LLVMFuzzerTestOneInput(data, input.n);          /* always 0 */
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    alloc_free(data);
    return SECONDS(to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1000;
}

static struct str read_seed(const char *path, struct arena *out)
{
    FILE *file = fopen(path, "rb");
    ASSERT(file != NULL);
    (void)fseek(file, 0, SEEK_END);
    long size = ftell(file);
    ASSERT(size >= 0);
    rewind(file);
    char *data = arena_alloc(out, (size_t)size + 1);
    size_t n = fread(data, 1, (size_t)size, file);
    ASSERT(n == (size_t)size);
    (void)fclose(file);
    return (struct str){ .p = data, .n = n };
}

static void read_corpus(struct replay *r, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            struct str path = arena_printf(&r->memory, "%s/%s", folder, entries[i]->d_name);
            ARENA_GROW(&r->memory, r->seeds, r->seed_n, r->seed_cap);
            r->seeds[r->seed_n++] =
                (struct seed){ .name = str_sub(path, path.n - strlen(entries[i]->d_name), SIZE_MAX),
                               .text = read_seed(path.p, &r->memory) };
        }
        alloc_free(entries[i]);
    }
    alloc_free(entries);
}

/* `seed` is that from which it was made, or empty. */
static void run_growth(struct replay *r, const struct growth *g, struct str seed)
{
    CLEANUP(buf_done)
    struct buf small = { 0 };
    CLEANUP(buf_done)
    struct buf large = { 0 };
    if (r->growths++ % r->step != 0) {
        return;
    }
    grow_write(g, r->large / GROWTH, &small);
    grow_write(g, r->large, &large);
    if (large.n < small.n * (GROWTH - 1)) {
        return; /* the unit is too long to be repeated */
    }
    usec_t small_us = INT64_MAX;
    usec_t large_us = INT64_MAX;
    bool linear = false;
    for (uint32_t attempt = 0; attempt < ATTEMPTS && !linear; attempt++) {
        small_us = MIN(small_us, run_one(buf_str(&small)));
        large_us = MIN(large_us, run_one(buf_str(&large)));
        linear = r->limit->any_time || large_us <= SUPERLINEAR * MAX(small_us, SHORTEST);
    }
    r->inputs += 2;
    if (!linear) {
        r->failures++;
        (void)fprintf(stderr,
                      STR_FMT ": %s" STR_FMT
                              ": %zu bytes take %lld us, %zu bytes %lld us: more than "
                              "%u times as long\n",
                      STR_ARG(r->limit->target), g->name, STR_ARG(seed), small.n,
                      (long long)small_us, large.n, (long long)large_us, SUPERLINEAR);
    }
}

static void run_large(struct replay *r)
{
    uint32_t chosen = MIN(r->seed_n, SEEDS_MAX);
    size_t total = (grow_patterns_n + (size_t)chosen * GROW_SEEDED) * r->large;
    r->step = (uint32_t)((total + TOTAL_BYTES_MAX - 1) / TOTAL_BYTES_MAX);
    for (size_t i = 0; i < grow_patterns_n; i++) {
        run_growth(r, &grow_patterns[i], STR_NONE);
    }
    for (uint32_t i = 0; i < chosen; i++) {
        const struct seed *seed = &r->seeds[(size_t)i * r->seed_n / chosen];
        struct growth seeded[GROW_SEEDED];
        if (seed->text.n == 0) {
            continue;
        }
        grow_seeded(seed->text, &r->memory, seeded);
        for (size_t j = 0; j < GROW_SEEDED; j++) {
            run_growth(r, &seeded[j], seed->name);
        }
    }
}

int main(int argc, char **argv)
{
    struct replay r = { 0 };
    bool full = argc == 3 && str_eq(str_from(argv[1]), STR("--full"));
    bool limit = argc == 3 && str_eq(str_from(argv[1]), STR("--limit"));
    if (argc != 2 && !full && !limit) {
        (void)fprintf(stderr, "usage: %s [--full|--limit] FOLDER\n", argv[0]);
        return 2;
    }
    struct str folder = str_from(argv[argc - 1]);
    struct str target = str_sub(folder, str_rfind_char(folder, '/') + 1, SIZE_MAX);
    r.limit = fuzz_limit_find(target);
    if (r.limit == NULL) {
        (void)fprintf(stderr, STR_FMT ": not in tests/fuzz/limits.c\n", STR_ARG(target));
        return 1;
    }
    if (limit) {
        (void)printf("%zu\n", r.limit->bytes);
        return 0;
    }
    r.large = full ? r.limit->bytes : MIN(r.limit->bytes, REPLAY_BYTES_MAX);
    read_corpus(&r, folder.p);
    for (uint32_t i = 0; i < r.seed_n; i++) {
        (void)run_one(r.seeds[i].text);
    }
    r.inputs = r.seed_n;
    run_large(&r);
    if (r.seed_n == 0) {
        (void)fprintf(stderr, STR_FMT ": no files\n", STR_ARG(folder));
    }
    (void)printf("%u inputs\n", r.inputs);
    arena_done(&r.memory);
    return r.seed_n == 0 || r.failures > 0 ? 1 : 0;
}

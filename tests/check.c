#include "tests/check.h"

#include "base/arena.h"

#define TESTS_MAX 256

static struct CMUnitTest tests[TESTS_MAX];
static size_t tests_n;
static struct arena data_arena;
static uint64_t property_seed;
static const char *property_name;
static int64_t case_n = -1;

void check_register(const char *name, void (*run)(void **state))
{
    ASSERT(tests_n < TESTS_MAX);
    tests[tests_n++] = (struct CMUnitTest){ .name = name, .test_func = run };
}

void check_fail(const char *file, int line, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (property_name != NULL) {
        print_error("%s fails with seed %llu\n", property_name, (unsigned long long)property_seed);
    }
    if (case_n >= 0) {
        print_error("case %lld\n", (long long)case_n);
    }
    print_error("%s\n", text);
    _fail(file, line);
    abort();
}

void check_case(int64_t n)
{
    case_n = n;
}

void check_eq(int64_t a, int64_t b, const char *what, const char *file, int line)
{
    if (a != b) {
        check_fail(file, line, "%s is %lld, want %lld", what, (long long)a, (long long)b);
    }
}

void check_str(struct str a, struct str b, const char *what, const char *file, int line)
{
    if (!str_eq(a, b)) {
        check_fail(file, line, "%s is\n  '" STR_FMT "', want\n  '" STR_FMT "'", what, STR_ARG(a),
                   STR_ARG(b));
    }
}

/* CHECK_SEED=N in the environment runs that one seed. */
void check_property(void (*body)(struct rng *rng), const char *name)
{
    const char *only = getenv("CHECK_SEED");
    uint64_t first = 0;
    uint64_t count = PROPERTY_SEEDS;
    if (only != NULL && str_to_u64(str_from(only), &first)) {
        count = 1;
    }
    property_name = name;
    case_n = -1;
    for (uint64_t i = 0; i < count; i++) {
        struct rng rng;
        property_seed = first + i;
        rng_init(&rng, property_seed);
        body(&rng);
    }
    property_name = NULL;
}

struct str check_data(const char *name)
{
    const char *root = getenv("CHECK_DATA");
    struct str path = arena_printf(&data_arena, "%s/%s", root != NULL ? root : "tests/data", name);
    FILE *file = fopen(path.p, "rb");
    if (file == NULL) {
        check_fail(__FILE__, __LINE__, "cannot open %s", path.p);
    }
    (void)fseek(file, 0, SEEK_END);
    long size = ftell(file);
    ASSERT(size >= 0);
    rewind(file);
    char *text = arena_alloc(&data_arena, (size_t)size + 1);
    size_t n = fread(text, 1, (size_t)size, file);
    (void)fclose(file);
    return (struct str){ .p = text, .n = n };
}

int main(void)
{
    int failed = _cmocka_run_group_tests("tests", tests, tests_n, NULL, NULL);
    arena_done(&data_arena);
    return failed;
}

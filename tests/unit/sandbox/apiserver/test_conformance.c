#include "tests/check.h"
#include "tests/lib/replay.h"

#include <dirent.h>

#include "base/arena.h"
#include "format/json.h"

#define CASES_MAX 400u

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* The recordings, sorted by name. */
static uint32_t list_cases(struct arena *a, struct str names[CASES_MAX])
{
    const char *root = getenv("CHECK_DATA");
    struct str path = arena_printf(a, "%s/apiserver", root != NULL ? root : "tests/data");
    DIR *dir = opendir(path.p);
    CHECK(dir != NULL);
    uint32_t n = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct str name;
        if (str_cut_suffix(str_from(entry->d_name), STR(".json"), &name) &&
            !str_eq(name, STR("prelude"))) {
            CHECK(n < CASES_MAX);
            names[n++] = arena_str(a, name);
        }
    }
    (void)closedir(dir);
    qsort(names, n, sizeof(names[0]), by_name);
    return n;
}

/* Every recorded answer, but for the few that the list of exceptions names with a reason; and those
 * must still differ, or they do not belong there. */
TEST(conformance_answers_as_recorded)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str names[CASES_MAX];
    uint32_t n = list_cases(&a, names);
    CHECK(n > 100);
    const struct jval *exceptions;
    struct err err = { 0 };
    CHECK_EQ(json_parse(check_data("apiserver-exceptions.json"), 0, &a, &exceptions, &err), 0);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < n; i++) {
        CLEANUP(buf_done)
        struct buf out = { 0 };
        struct str file = arena_printf(&a, "apiserver/" STR_FMT ".json", STR_ARG(names[i]));
        replay_run(names[i], check_data("apiserver/prelude.json"), check_data(file.p), &out);
        bool excepted = jval_get(exceptions, names[i]) != NULL;
        if ((out.n > 0) != excepted) {
            failed++;
            (void)fprintf(stderr, "# " STR_FMT "%s\n" STR_FMT, STR_ARG(names[i]),
                          excepted ? " passes although it is excepted" : "",
                          STR_ARG(buf_str(&out)));
        }
    }
    CHECK_EQ(failed, 0);
}

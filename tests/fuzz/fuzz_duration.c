/* What is printed is read back as the same number. */
#include "base/duration.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    struct err err = { 0 };
    char out[DURATION_TEXT_MAX];
    int64_t ns;
    if (duration_parse(text, &ns, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    int64_t again;
    int r = duration_parse(duration_print(ns, out), &again, &err);
    ASSERT(r == 0 && again == ns);
}

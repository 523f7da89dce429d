/* What is printed is read back as the same instant; the stricter form is part of the laxer one. */
#include "base/timestamp.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    struct err err = { 0 };
    struct timestamp s;
    struct timestamp again;
    char out[TIMESTAMP_TEXT_MAX];
    struct str printed;
    int lax = timestamp_parse(text, &s, &err);
    int strict = timestamp_parse_micro(text, &again, &err);
    ASSERT(strict < 0 || lax == 0);
    if (lax < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    ASSERT(s.nsec >= 0 && s.nsec < 1000000000);
    if (timestamp_print(s, out, &printed, &err) == 0) {
        int r = timestamp_parse(printed, &again, &err);
        ASSERT(r == 0 && again.sec == s.sec && again.nsec == s.nsec && again.offset == s.offset);
    }
    int r = timestamp_parse_micro(timestamp_print_micro(timestamp_to_usec(s), out), &again, &err);
    ASSERT(r == 0 || s.sec < -62167219200 || s.sec >= 253402300800); /* five digits of a year */
}

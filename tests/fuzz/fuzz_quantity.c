/* What is printed is the same amount; adding and taking away leads back. */
#include "format/quantity.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    struct err err = { 0 };
    struct quantity q;
    if (quantity_parse(text, &q, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    CLEANUP(buf_done)
    struct buf printed = { 0 };
    quantity_print(&q, &printed);
    struct quantity again;
    int r = quantity_parse(buf_str(&printed), &again, &err);
    ASSERT(r == -ERR_LIMIT || (r == 0 && quantity_cmp(&q, &again) == 0));
    int64_t value;
    int64_t milli;
    if (quantity_value(&q, &value) && quantity_milli(&q, &milli)) {
        ASSERT((value > 0) - (value < 0) == quantity_sign(&q));
        ASSERT(value - milli / 1000 <= 1 && milli / 1000 - value <= 1);
    }
    struct quantity sum = q;
    if (quantity_add(&sum, &q, &err) == 0 && quantity_sub(&sum, &q, &err) == 0) {
        ASSERT(quantity_cmp(&sum, &q) == 0);
    }
}

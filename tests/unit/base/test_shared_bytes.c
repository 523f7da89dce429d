#include "base/shared_bytes.h"

#include "tests/check.h"

TEST(shared_bytes_takes_a_buffer_over)
{
    struct buf b = { 0 };
    buf_add(&b, STR("a document"));
    struct shared_bytes *s = shared_bytes_take(&b);
    CHECK_STR(s->bytes, "a document");
    CHECK(b.p == NULL && b.n == 0 && b.cap == 0);
    struct shared_bytes *other = shared_bytes_ref(s);
    CHECK(other == s);
    shared_bytes_unref(s);
    CHECK_STR(other->bytes, "a document"); /* the sanitizer knows if it is gone */
    shared_bytes_unref(other);
}

TEST(shared_bytes_copies_and_may_be_empty)
{
    char text[] = "text";
    CLEANUP(shared_bytes_unrefp)
    struct shared_bytes *s = shared_bytes_copy(str_from(text));
    text[0] = 'T';
    CHECK_STR(s->bytes, "text");
    struct buf none = { 0 };
    struct shared_bytes *empty = shared_bytes_take(&none);
    CHECK_EQ(empty->bytes.n, 0);
    shared_bytes_unref(empty);
    empty = shared_bytes_copy(STR_NONE);
    CHECK_EQ(empty->bytes.n, 0);
    shared_bytes_unref(empty);
    shared_bytes_unref(NULL);
}

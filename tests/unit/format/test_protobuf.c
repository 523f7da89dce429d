#include "format/protobuf.h"

#include "tests/check.h"

#define BYTES(literal) ((struct str){ .p = (literal), .n = sizeof(literal) - 1 })

TEST(protobuf_reads_each_wire_type)
{
    struct str rest = BYTES("\x08\x96\x01\x12\x02hi\x19\x01\x00\x00\x00\x00\x00\x00\x80"
                            "\x25\x02\x00\x00\x00\x28\x00");
    struct protobuf_field field;
    struct err err = { 0 };
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.number, 1);
    CHECK_EQ(field.value, 150);
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.number, 2);
    CHECK_STR(field.bytes, "hi");
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.wire, PROTOBUF_FIXED64);
    CHECK(field.value == 0x8000000000000001u);
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.wire, PROTOBUF_FIXED32);
    CHECK_EQ(field.value, 2);
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.value, 0);
    CHECK_EQ(protobuf_next(&rest, &field, &err), 0);
}

TEST(protobuf_reads_the_largest_number)
{
    struct str rest = BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x");
    uint64_t value;
    struct err err = { 0 };
    CHECK_EQ(protobuf_varint(&rest, &value, &err), 0);
    CHECK(value == UINT64_MAX);
    CHECK_STR(rest, "x");
}

TEST(protobuf_passes_over_groups)
{
    /* 1: {2: 5, 3: {}, 4: "a"}, then 5: 1 */
    struct str rest = BYTES("\x0b\x10\x05\x1b\x1c\x22\x01"
                            "a\x0c\x28\x01");
    struct protobuf_field field;
    struct err err = { 0 };
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.wire, PROTOBUF_GROUP);
    CHECK_EQ(protobuf_next(&rest, &field, &err), 1);
    CHECK_EQ(field.number, 5);
    CHECK_EQ(protobuf_next(&rest, &field, &err), 0);
}

TEST(protobuf_refuses_what_is_no_message)
{
    static const struct {
        struct str bytes;
        const char *message;
    } cases[] = {
        { STR_INIT("\x0a"), "unexpected EOF" },
        { STR_INIT("\x0a\x02"
                   "a"),
          "unexpected EOF" },
        { STR_INIT("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "unexpected EOF" },
        { STR_INIT("\x09\x01"), "unexpected EOF" },
        { STR_INIT("\x0d\x01"), "unexpected EOF" },
        { STR_INIT("\x0b\x10\x01"), "unexpected EOF" },
        { STR_INIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "proto: integer overflow" },
        { STR_INIT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80"), "proto: integer overflow" },
        { STR_INIT("\x02\x01"), "proto: illegal tag 0 (wire type 2)" },
        { STR_INIT("\x80\x80\x80\x80\x10\x01"), "proto: illegal tag 536870912 (wire type 0)" },
        { STR_INIT("\x0c"), "proto: illegal wireType 4" },
        { STR_INIT("\x0e\x01"), "proto: illegal wireType 6" },
        { STR_INIT("\x0f\x01"), "proto: illegal wireType 7" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct str rest = cases[i].bytes;
        struct protobuf_field field = { .number = 77 };
        struct err err = { 0 };
        CHECK_EQ(protobuf_next(&rest, &field, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
        CHECK_EQ(field.number, 77);
    }
    check_case(-1);
}

#include "format/protobuf.h"

#define NUMBER_MAX ((1u << 29) - 1)
#define WIRE_GROUP_END 4u

static int protobuf_cut_short(struct err *err)
{
    return err_set(err, ERR_INVALID, "unexpected EOF");
}

int protobuf_varint(struct str *rest, uint64_t *ret, struct err *err)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 10; i++) {
        if (i >= rest->n) {
            return protobuf_cut_short(err);
        }
        uint8_t byte = (uint8_t)rest->p[i];
        if (i == 9 && byte > 1) {
            break; /* more than 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = str_sub(*rest, i + 1, rest->n - i - 1);
            *ret = value;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "proto: integer overflow");
}

static int protobuf_take(struct str *rest, uint64_t n, struct str *ret, struct err *err)
{
    if (n > rest->n) {
        return protobuf_cut_short(err);
    }
    *ret = str_sub(*rest, 0, (size_t)n);
    *rest = str_sub(*rest, (size_t)n, rest->n - (size_t)n);
    return 0;
}

static int protobuf_fixed(struct str *rest, size_t n, uint64_t *ret, struct err *err)
{
    struct str bytes;
    int r = protobuf_take(rest, n, &bytes, err);
    if (r < 0) {
        return r;
    }
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        *ret |= (uint64_t)(uint8_t)bytes.p[i] << (8 * i);
    }
    return 0;
}

static int protobuf_tag(struct str *rest, uint32_t *ret_number, uint32_t *ret_wire, struct err *err)
{
    uint64_t tag;
    int r = protobuf_varint(rest, &tag, err);
    if (r < 0) {
        return r;
    }
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX) {
        return err_set(err, ERR_INVALID, "proto: illegal tag %llu (wire type %u)",
                       (unsigned long long)(tag >> 3), (unsigned)(tag & 7));
    }
    *ret_number = (uint32_t)(tag >> 3);
    *ret_wire = (uint32_t)(tag & 7);
    return 0;
}

static int protobuf_value(struct str *rest, struct protobuf_field *field, struct err *err)
{
    switch (field->wire) {
    case PROTOBUF_VARINT:
        return protobuf_varint(rest, &field->value, err);
    case PROTOBUF_FIXED64:
        return protobuf_fixed(rest, 8, &field->value, err);
    case PROTOBUF_FIXED32:
        return protobuf_fixed(rest, 4, &field->value, err);
    case PROTOBUF_BYTES: {
        uint64_t n;
        int r = protobuf_varint(rest, &n, err);
        return r < 0 ? r : protobuf_take(rest, n, &field->bytes, err);
    }
    case PROTOBUF_GROUP:
        return 0;
    }
    return err_set(err, ERR_INVALID, "proto: illegal wireType %u", (unsigned)field->wire);
}

/* Everything up to the end of a group that has just begun, groups in it included. */
static int protobuf_skip_group(struct str *rest, struct err *err)
{
    uint32_t depth = 1;
    while (depth > 0) {
        struct protobuf_field inner = { 0 };
        uint32_t wire = 0;
        int r = protobuf_tag(rest, &inner.number, &wire, err);
        if (r < 0) {
            return r;
        }
        if (wire == WIRE_GROUP_END) {
            depth--;
            continue;
        }
        inner.wire = (enum protobuf_wire)wire;
        depth += inner.wire == PROTOBUF_GROUP;
        r = protobuf_value(rest, &inner, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int protobuf_next(struct str *rest, struct protobuf_field *ret, struct err *err)
{
    if (rest->n == 0) {
        return 0;
    }
    struct protobuf_field field = { 0 };
    uint32_t wire = 0;
    int r = protobuf_tag(rest, &field.number, &wire, err);
    if (r < 0) {
        return r;
    }
    field.wire = (enum protobuf_wire)wire;
    r = protobuf_value(rest, &field, err);
    if (r == 0 && field.wire == PROTOBUF_GROUP) {
        r = protobuf_skip_group(rest, err);
    }
    if (r < 0) {
        return r;
    }
    *ret = field;
    return 1;
}

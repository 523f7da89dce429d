#include "base/percent.h"
#include "base/hex.h"

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static void percent_add(struct buf *out, char c)
{
    unsigned char byte = (unsigned char)c;
    buf_add_char(out, '%');
    hex_add(out, &byte, 1, /* upper= */ true);
}

void percent_add_segment(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (is_unreserved(text.p[i]) || text.p[i] == ':') {
            buf_add_char(out, text.p[i]);
        } else {
            percent_add(out, text.p[i]);
        }
    }
}

void percent_add_form(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (is_unreserved(text.p[i]) || text.p[i] == ' ') {
            buf_add_char(out, text.p[i] == ' ' ? '+' : text.p[i]);
        } else {
            percent_add(out, text.p[i]);
        }
    }
}

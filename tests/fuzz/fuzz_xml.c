/* What is read of any document can be written, and is read again as it was. */
#include "format/xml.h"
#include "tests/fuzz/target.h"

static void print(struct buf *out, const struct xml_node *node)
{
    buf_add(out, STR("<"));
    buf_add(out, node->name);
    for (const struct xml_attribute *a = node->attributes; a != NULL; a = a->next) {
        if (a->namespace.n == 0) {
            buf_printf(out, " " STR_FMT "=\"", STR_ARG(a->name));
            xml_add_text(out, a->value);
            buf_add(out, STR("\""));
        }
    }
    buf_add(out, STR(">"));
    xml_add_text(out, node->text);
    for (const struct xml_node *child = node->first; child != NULL; child = child->next) {
        print(out, child);
    }
    buf_printf(out, "</" STR_FMT ">", STR_ARG(node->name));
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf first = { .max = 8 * XML_BYTES_MAX };
    CLEANUP(buf_done)
    struct buf second = { .max = 8 * XML_BYTES_MAX };
    const struct xml_node *root = NULL;
    struct err err = { 0 };
    if (xml_parse(text, &a, &root, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        ASSERT(root == NULL);
        return;
    }
    print(&first, root);
    ASSERT(!first.full);
    if (first.n > XML_BYTES_MAX) {
        return;
    }
    int r = xml_parse(buf_str(&first), &a, &root, &err);
    ASSERT(r == 0);
    print(&second, root);
    ASSERT(str_eq(buf_str(&first), buf_str(&second)));
}

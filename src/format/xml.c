#include "format/xml.h"

#include "base/utf8.h"

#include <expat.h>

#define XML_INSTANCE STR("http://www.w3.org/2001/XMLSchema-instance")
#define XML_PIECE_MAX ((size_t)64 * 1024) /* bytes that the parser is given at a time */
/* Between a namespace and a name; expat refuses namespaces that have it. */
#define XML_SEPARATOR '\n'

/* A document being read. */
struct xml_reading {
    struct arena *out;
    struct err *err;
    XML_Parser parser;
    struct xml_open {
        struct xml_node *node;
        struct xml_node *last; /* child */
    } open[XML_DEPTH_MAX];
    uint32_t depth;
    uint32_t node_n;
    struct buf text; /* since the newest tag */
    const struct xml_node *root;
    bool failed;
};

static void xml_fail(struct xml_reading *r, enum err_code code, const char *what)
{
    if (!r->failed) {
        unsigned long line = XML_GetCurrentLineNumber(r->parser);
        r->failed = true;
        (void)err_set(r->err, code, "XML, line %lu: %s", line, what);
        r->err->pos.line = (uint32_t)line;
        (void)XML_StopParser(r->parser, XML_FALSE); /* it may have stopped by itself */
    }
}

/* "namespace\nname", or a name alone. */
static void xml_split_name(struct xml_reading *r, const char *full, struct str *ret_namespace,
                           struct str *ret_name)
{
    struct str text = str_from(full);
    size_t at = str_find_char(text, XML_SEPARATOR);
    *ret_namespace = STR("");
    *ret_name = arena_str(r->out, text);
    if (at != SIZE_MAX) {
        *ret_namespace = arena_str(r->out, str_sub(text, 0, at));
        *ret_name = arena_str(r->out, str_sub(text, at + 1, text.n - at - 1));
    }
}

/* Names and values in turn, and NULL behind the last. */
static uint32_t xml_count_attributes(const char **pairs)
{
    uint32_t n = 0;
    while (pairs[2 * (size_t)n] != NULL) {
        n++;
    }
    return n;
}

static const struct xml_attribute *xml_copy_attributes(struct xml_reading *r, uint32_t n,
                                                       const char **pairs)
{
    const struct xml_attribute *first = NULL;
    for (uint32_t i = n; i > 0; i--) {
        struct xml_attribute *a = ARENA_NEW(r->out, struct xml_attribute);
        const char **one = pairs + 2 * (size_t)(i - 1);
        xml_split_name(r, one[0], &a->namespace, &a->name);
        a->value = arena_str(r->out, str_from(one[1]));
        a->next = first;
        first = a;
    }
    return first;
}

static void xml_on_start(void *ctx, const char *name, const char **attributes)
{
    struct xml_reading *r = ctx;
    if (r->failed) {
        return;
    }
    uint32_t attribute_n = xml_count_attributes(attributes);
    if (r->depth == XML_DEPTH_MAX) {
        xml_fail(r, ERR_LIMIT, "elements are nested too deep");
        return;
    }
    if (attribute_n >= XML_NODES_MAX - r->node_n) {
        xml_fail(r, ERR_LIMIT, "there are too many elements and attributes");
        return;
    }
    r->node_n += 1 + attribute_n;
    struct xml_node *node = ARENA_NEW(r->out, struct xml_node);
    xml_split_name(r, name, &node->namespace, &node->name);
    node->attributes = xml_copy_attributes(r, attribute_n, attributes);
    if (r->depth == 0) {
        r->root = node;
    } else {
        struct xml_open *parent = &r->open[r->depth - 1];
        if (parent->last == NULL) {
            parent->node->first = node;
        } else {
            parent->last->next = node;
        }
        parent->last = node;
    }
    r->open[r->depth++] = (struct xml_open){ .node = node };
    buf_reset(&r->text);
}

static void xml_on_end(void *ctx, const char *name UNUSED)
{
    struct xml_reading *r = ctx;
    if (r->failed) {
        return;
    }
    ASSERT(r->depth > 0);
    struct xml_open *open = &r->open[--r->depth];
    if (open->node->first == NULL) {
        open->node->text = arena_str(r->out, buf_str(&r->text));
    }
    buf_reset(&r->text);
}

static void xml_on_text(void *ctx, const char *text, int n)
{
    struct xml_reading *r = ctx;
    if (!r->failed && r->depth > 0 && n > 0) {
        buf_add(&r->text, (struct str){ .p = text, .n = (size_t)n });
    }
}

static void xml_on_document_type(void *ctx, const char *name UNUSED, const char *place UNUSED,
                                 const char *external UNUSED, int internal UNUSED)
{
    xml_fail(ctx, ERR_INVALID, "a document type is not accepted");
}

static void xml_feed(struct xml_reading *r, struct str text)
{
    size_t at = 0;
    bool good = true;
    do {
        size_t n = MIN(text.n - at, XML_PIECE_MAX);
        bool last = at + n == text.n;
        good = XML_Parse(r->parser, text.n > 0 ? text.p + at : "", (int)n, last) == XML_STATUS_OK;
        at += n;
    } while (good && !r->failed && at < text.n);
    if (!good && !r->failed) {
        const char *reason = XML_ErrorString(XML_GetErrorCode(r->parser));
        xml_fail(r, ERR_INVALID, reason != NULL ? reason : "the document is broken");
    }
}

int xml_parse(struct str text, struct arena *out, const struct xml_node **ret, struct err *err)
{
    if (text.n > XML_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "XML: the document has more than %zu bytes", XML_BYTES_MAX);
    }
    struct xml_reading r = { .out = out, .err = err };
    /* What the document says of its encoding is not believed: there is one. */
    r.parser = XML_ParserCreateNS("UTF-8", XML_SEPARATOR);
    if (r.parser == NULL) {
        out_of_memory(text.n);
    }
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, xml_on_start, xml_on_end);
    XML_SetCharacterDataHandler(r.parser, xml_on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, xml_on_document_type);
    xml_feed(&r, text);
    XML_ParserFree(r.parser);
    buf_done(&r.text);
    if (r.failed) {
        return -(int)err->code;
    }
    ASSERT(r.root != NULL);
    *ret = r.root;
    return 0;
}

const struct xml_node *xml_child(const struct xml_node *node, struct str name)
{
    const struct xml_node *child = node == NULL ? NULL : node->first;
    while (child != NULL && !str_eq(child->name, name)) {
        child = child->next;
    }
    return child;
}

struct str xml_child_text(const struct xml_node *node, struct str name)
{
    const struct xml_node *child = xml_child(node, name);
    return child == NULL ? STR_NONE : child->text;
}

static struct str xml_find_attribute(const struct xml_node *node, struct str namespace,
                                     struct str name)
{
    const struct xml_attribute *a = node == NULL ? NULL : node->attributes;
    for (; a != NULL; a = a->next) {
        if (str_eq(a->name, name) && str_eq(a->namespace, namespace)) {
            return a->value;
        }
    }
    return STR_NONE;
}

struct str xml_attribute(const struct xml_node *node, struct str name)
{
    return xml_find_attribute(node, STR(""), name);
}

struct str xml_type(const struct xml_node *node)
{
    struct str type = xml_find_attribute(node, XML_INSTANCE, STR("type"));
    size_t colon = str_rfind_char(type, ':');
    return colon == SIZE_MAX ? type : str_sub(type, colon + 1, type.n);
}

/* https://www.w3.org/TR/xml/#NT-Char */
static bool xml_is_char(uint32_t point)
{
    return point >= 0x20 && point != 0xfffe && point != 0xffff;
}

void xml_add_text(struct buf *out, struct str text)
{
    for (size_t at = 0; at < text.n;) {
        uint32_t point = 0;
        size_t n = utf8_decode(str_sub(text, at, text.n), &point);
        if (point == '&') {
            buf_add(out, STR("&amp;"));
        } else if (point == '<') {
            buf_add(out, STR("&lt;"));
        } else if (point == '>') {
            buf_add(out, STR("&gt;"));
        } else if (point == '"') {
            buf_add(out, STR("&quot;"));
        } else if (n > 0 && (point == '\t' || point == '\n' || point == '\r')) {
            buf_printf(out, "&#%u;", point); /* a reader would make spaces of them in attributes */
        } else if (n > 0 && xml_is_char(point)) {
            buf_add(out, str_sub(text, at, n));
        } else {
            utf8_add(out, 0xfffd);
        }
        at += MAX(n, (size_t)1);
    }
}

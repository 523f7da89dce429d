#include "format/xml.h"

#include "base/utf8.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>

#define XML_INSTANCE STR("http://www.w3.org/2001/XMLSchema-instance")
#define XML_PIECE_MAX ((size_t)64 * 1024) /* bytes that the parser is given at a time */
#define XML_REASON_MAX 120u               /* of the parser's own words */

/* A document being read. */
struct xml_reading {
    struct arena *out;
    struct err *err;
    xmlParserCtxtPtr parser;
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
        int line = xmlSAX2GetLineNumber(r->parser);
        r->failed = true;
        (void)err_set(r->err, code, "XML, line %d: %s", line, what);
        r->err->pos.line = line > 0 ? (uint32_t)line : 0;
    }
    xmlStopParser(r->parser);
}

static struct str xml_copy(struct xml_reading *r, const xmlChar *text)
{
    return text == NULL ? STR("") : arena_str(r->out, str_from((const char *)text));
}

/* While entities are not expanded, libxml2 writes every '&' of a value as a reference. */
static struct str xml_copy_value(struct xml_reading *r, struct str value)
{
    char *p = arena_alloc(r->out, value.n + 1);
    size_t n = 0;
    struct str left;
    while (str_cut(value, STR("&#38;"), &left, &value)) {
        memcpy(p + n, left.p, left.n);
        n += left.n;
        p[n++] = '&';
    }
    if (left.n > 0) {
        memcpy(p + n, left.p, left.n);
    }
    return (struct str){ .p = p, .n = n + left.n };
}

/* libxml2 gives five pointers an attribute: name, prefix, namespace, beginning and end of its
 * value. */
static const struct xml_attribute *xml_copy_attributes(struct xml_reading *r, int n,
                                                       const xmlChar **five)
{
    const struct xml_attribute *first = NULL;
    for (int i = n - 1; i >= 0; i--) {
        struct xml_attribute *a = ARENA_NEW(r->out, struct xml_attribute);
        const xmlChar **one = five + 5 * (size_t)i;
        a->name = xml_copy(r, one[0]);
        a->namespace = xml_copy(r, one[2]);
        a->value = xml_copy_value(
            r, (struct str){ .p = (const char *)one[3], .n = (size_t)(one[4] - one[3]) });
        a->next = first;
        first = a;
    }
    return first;
}

static void xml_on_start(void *ctx, const xmlChar *name, const xmlChar *prefix UNUSED,
                         const xmlChar *uri, int namespace_n UNUSED,
                         const xmlChar **namespaces UNUSED, int attribute_n, int default_n UNUSED,
                         const xmlChar **attributes)
{
    struct xml_reading *r = ctx;
    if (r->failed) {
        return;
    }
    uint32_t more = 1 + (uint32_t)(attribute_n > 0 ? attribute_n : 0);
    if (r->depth == XML_DEPTH_MAX) {
        xml_fail(r, ERR_LIMIT, "elements are nested too deep");
        return;
    }
    if (more > XML_NODES_MAX - r->node_n) {
        xml_fail(r, ERR_LIMIT, "there are too many elements and attributes");
        return;
    }
    r->node_n += more;
    struct xml_node *node = ARENA_NEW(r->out, struct xml_node);
    node->name = xml_copy(r, name);
    node->namespace = xml_copy(r, uri);
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

static void xml_on_end(void *ctx, const xmlChar *name UNUSED, const xmlChar *prefix UNUSED,
                       const xmlChar *uri UNUSED)
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

static void xml_on_text(void *ctx, const xmlChar *text, int n)
{
    struct xml_reading *r = ctx;
    if (!r->failed && r->depth > 0 && n > 0) {
        buf_add(&r->text, (struct str){ .p = (const char *)text, .n = (size_t)n });
    }
}

static void xml_on_document_type(void *ctx, const xmlChar *name UNUSED,
                                 const xmlChar *external UNUSED, const xmlChar *place UNUSED)
{
    xml_fail(ctx, ERR_INVALID, "a document type is not accepted");
}

/* The parser's words without what would break a line. */
static void xml_fail_with_reason(struct xml_reading *r)
{
    const xmlError *last = xmlCtxtGetLastError(r->parser);
    struct str words = str_trim(str_from(last == NULL ? NULL : last->message));
    char text[XML_REASON_MAX + 1];
    size_t n = MIN(words.n, (size_t)XML_REASON_MAX);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)words.p[i];
        text[i] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    text[n] = '\0';
    xml_fail(r, ERR_INVALID, n > 0 ? text : "the document is broken");
}

static void xml_feed(struct xml_reading *r, struct str text)
{
    int code = XML_ERR_OK;
    for (size_t at = 0; at < text.n && code == XML_ERR_OK && !r->failed;) {
        size_t n = MIN(text.n - at, XML_PIECE_MAX);
        code = xmlParseChunk(r->parser, text.p + at, (int)n, /* terminate= */ 0);
        at += n;
    }
    if (code == XML_ERR_OK && !r->failed) {
        code = xmlParseChunk(r->parser, NULL, 0, /* terminate= */ 1);
    }
    if (!r->failed && (code != XML_ERR_OK || r->parser->wellFormed == 0 ||
                       r->parser->nsWellFormed == 0 || r->root == NULL)) {
        xml_fail_with_reason(r);
    }
}

int xml_parse(struct str text, struct arena *out, const struct xml_node **ret, struct err *err)
{
    if (text.n > XML_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "XML: the document has more than %zu bytes", XML_BYTES_MAX);
    }
    struct xml_reading r = { .out = out, .err = err };
    xmlSAXHandler handler = {
        .initialized = XML_SAX2_MAGIC,
        .internalSubset = xml_on_document_type,
        .startElementNs = xml_on_start,
        .endElementNs = xml_on_end,
        .characters = xml_on_text,
        .cdataBlock = xml_on_text,
        .ignorableWhitespace = xml_on_text,
    };
    r.parser = xmlCreatePushParserCtxt(&handler, &r, NULL, 0, NULL);
    if (r.parser == NULL) {
        out_of_memory(text.n);
    }
    /* Without XML_PARSE_HUGE the library's own limits hold as well. */
    (void)xmlCtxtUseOptions(r.parser, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    /* What the document says of its encoding is not believed: other tables are never loaded. */
    (void)xmlSwitchEncoding(r.parser, XML_CHAR_ENCODING_UTF8);
    xml_feed(&r, text);
    if (r.parser->myDoc != NULL) {
        xmlFreeDoc(r.parser->myDoc);
        r.parser->myDoc = NULL;
    }
    xmlFreeParserCtxt(r.parser);
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

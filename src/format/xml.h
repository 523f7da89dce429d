/*
 * xml: reads an XML document of a stranger into a tree, and writes text into one.
 *
 * Made for SOAP: elements, attributes and the text of elements that have no children. Text between
 * the children of an element, comments and processing instructions are passed over. A document type
 * is an error, so there are no entities but the five of XML itself, nothing grows by being read,
 * and nothing else is ever opened. The encoding is UTF-8. Memory is a small multiple of the text.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define XML_DEPTH_MAX 64u        /* answers of web services nest some fifteen deep */
#define XML_NODES_MAX (1u << 20) /* elements and attributes; a page of objects has thousands */
#define XML_BYTES_MAX ((size_t)16 * 1024 * 1024) /* of a document */

struct xml_attribute {
    struct str namespace; /* its URI; empty = none */
    struct str name;      /* without a prefix */
    struct str value;
    const struct xml_attribute *next;
};

struct xml_node {
    struct str namespace; /* its URI; empty = none */
    struct str name;      /* without a prefix */
    struct str text;      /* empty if the element has children */
    const struct xml_attribute *attributes;
    const struct xml_node *first; /* child */
    const struct xml_node *next;  /* sibling */
};

/* Everything lives in `out`; `text` may go. */
NODISCARD
int xml_parse(struct str text, struct arena *out, const struct xml_node **ret, struct err *err);

/* The first child of that name in any namespace; NULL if there is none, or no node. */
const struct xml_node *xml_child(const struct xml_node *node, struct str name);
/* The text of that child, or STR_NONE. */
struct str xml_child_text(const struct xml_node *node, struct str name);
/* The attribute of that name that has no namespace, or STR_NONE. */
struct str xml_attribute(const struct xml_node *node, struct str name);
/* xsi:type without its prefix, or STR_NONE. */
struct str xml_type(const struct xml_node *node);

/* As the content of an element or of an attribute in double quotes. Characters that no XML may
 * contain become U+FFFD. */
void xml_add_text(struct buf *out, struct str text);

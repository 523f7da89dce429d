/*
 * spec_read: what our kinds read alike: label selectors of their specs, their status, and fields
 * with their defaults.
 *
 * A spec_node is a place in an object: its value, and the way to it. What is wrong there is noted
 * with that way ("spec.window.days[0]"), with what was found and with what is wanted; the first
 * note counts, and reading goes on with the default. A field that is absent or null has its
 * default.
 */
#pragma once

#include "base/buf.h"
#include "format/selector.h"

#define SPEC_FOUND_MAX 128u /* bytes of a value that are shown */

/* False if there is none, or if it is wrong: then *ret_problem says why. */
bool spec_read_selector(const struct jval *v, struct arena *out, struct selector *ret,
                        struct str *ret_problem);
/* The object's status as JSON; "{}" if it has none. */
struct str spec_read_status(const struct jval *object, struct arena *out);

/* What the metadata of every kind say. */
struct spec_meta {
    struct str name;
    struct str namespace;
    struct str uid;
    struct str version; /* resourceVersion */
    int64_t generation;
    usec_t created;
    bool deleting;
};
struct spec_meta spec_read_meta(const struct jval *object, struct arena *out);

/* Why an object is not accepted. */
struct spec_problem {
    struct str reason; /* of the condition, "Invalid"; empty: nothing is wrong */
    struct str field;  /* "spec.window.days[0]" */
    struct str found;  /* as JSON, cut; empty: it is not there */
    struct str wanted; /* "one of Mon, Tue, …" */
};

struct spec_reader {
    struct arena *out;
    struct spec_problem problem;
};

struct spec_node {
    struct spec_reader *reader;
    const struct spec_node *parent;
    const char *key; /* NULL: an element of a list */
    uint32_t index;
    const struct jval *value; /* NULL: it is not there */
};

/* A number, or a part of a whole in percent. */
struct spec_share {
    bool given;
    bool percent;
    uint32_t n;
};

struct spec_texts {
    const struct str *items;
    uint32_t n;
};

/* The object's member `key`, which others hang below. */
struct spec_node spec_root(struct spec_reader *reader, const struct jval *object, const char *key);
struct spec_node spec_member(const struct spec_node *parent, const char *key);
struct spec_node spec_element(const struct spec_node *list, const struct jval *v, uint32_t index);
bool spec_has(const struct spec_node *at, const char *key); /* there and not null */

/* Notes a member that is none of `keys`: where the API server has no rules, a name that people
 * bring along from other tools is stored, and a selector that nobody reads means all nodes. */
void spec_only(const struct spec_node *at, const char *const *keys, uint32_t n);
/* Notes that the value at the node is wrong. */
void spec_wrong(const struct spec_node *at, const char *reason, const char *wanted_fmt, ...)
    PRINTF_LIKE(3, 4);
/* "spec.window.days[0]: found \"Mo\", want …" */
struct str spec_problem_text(const struct spec_problem *p, struct arena *out);

/* Copies into the reader's arena. */
struct str spec_text(const struct spec_node *at, const char *key);
bool spec_bool(const struct spec_node *at, const char *key, bool otherwise);
int64_t spec_number(const struct spec_node *at, const char *key, int64_t otherwise, int64_t min,
                    int64_t max);
/* Whole seconds and more: "90s", "1h30m". */
usec_t spec_duration(const struct spec_node *at, const char *key, usec_t otherwise);
usec_t spec_time(const struct spec_node *at, const char *key); /* 0: it is not there */
/* The place in `names`, which has `n`. */
uint32_t spec_enum(const struct spec_node *at, const char *key, const char *const *names,
                   uint32_t n, uint32_t otherwise);
struct spec_share spec_share(const struct spec_node *at, const char *key, uint32_t min);
struct spec_texts spec_texts(const struct spec_node *at, const char *key, uint32_t max);
bool spec_selector(const struct spec_node *at, const char *key, struct selector *ret);
/* The value as compact JSON; empty if it is not there. */
struct str spec_json(const struct spec_node *at, const char *key);

/* Small letters, digits and dashes between them, at most `max`. */
bool spec_is_dns_label(struct str name, size_t max);

/* What a share is of a whole: percentages are rounded up, and never to nothing. */
uint32_t spec_share_of(struct spec_share share, uint32_t whole);

#define SPEC_ENUM(at, key, names, otherwise)                                                       \
    spec_enum((at), (key), (names), ARRAY_LEN(names), (otherwise))
/* `at` is the list's node; `node` the element's, `i` its place. */
#define SPEC_EACH(list, max, node)                                                                 \
    for (struct spec_node node = spec_first((list), (max)); node.value != NULL;                    \
         node = spec_next((list), &node))
/* A list that is none, or is longer than `max`, is wrong and has no elements. */
struct spec_node spec_first(const struct spec_node *list, uint32_t max);
struct spec_node spec_next(const struct spec_node *list, const struct spec_node *element);
uint32_t spec_count(const struct spec_node *list); /* elements; 0 if it is none */

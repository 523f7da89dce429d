/*
 * convert_internal: what the readers of foreign configurations share.
 */
#pragma once

#include "format/yaml.h"
#include "operation/convert.h"

/* A source that is being read. */
struct convert_reader {
    const struct ydoc *doc;
    struct convert *c;
    const struct convert_list *list;
    struct arena *memory;
    struct err *err;
};

/* Reads one object; -ERR_NOTFOUND: it is of no concern. */
typedef int convert_read(const struct ydoc *doc, const struct jval *object,
                         struct convert_list *list, struct arena *memory, struct err *err);

/* Calls `read` for each object of a file. `wanted` says what was looked for if none was found. */
NODISCARD
int convert_each(struct str text, convert_read *read, const char *wanted, struct arena *memory,
                 struct convert_list *list, struct err *err);

/* A new source with an empty NodeMaintenance of `name`, cut to what its labels can hold. */
NODISCARD
int convert_begin(struct convert_list *list, struct arena *memory, struct str kind,
                  const struct ydoc *doc, const struct jval *object, struct convert **ret,
                  struct err *err);

/* An error at a value. */
int convert_wrong(const struct convert_reader *r, const struct jval *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* The last of two notes on the same thing that say the same is left out. */
void convert_note(const struct convert_reader *r, enum convert_weight weight, const struct jval *at,
                  struct str about, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Sets rollout.maxConcurrent, and makes a limit: on nodes without one, one visit goes at a time. To
 * be called when the series is known. */
void convert_set_at_once(const struct convert_reader *r, const struct jval *at, struct str about,
                         int64_t n);
/* Notes that the controller refuses an object with this field as yet. */
void convert_not_yet(const struct convert_reader *r, const struct jval *at, struct str about,
                     const char *field);
/* Reads what was made as the controller would: it never makes what would not be accepted. */
NODISCARD
int convert_finish(const struct convert_reader *r, const struct jval *object);

/* "1h30m", from nanoseconds, rounded up to seconds. */
struct str convert_duration(int64_t ns, struct arena *memory);
/* A text in which "${" stays what it is when drydock expands it. */
struct str convert_literal(struct str text, struct arena *memory);
/* Sets texts of a path below spec. */
void convert_set(const struct convert_reader *r, const char *path, struct tree *value);
void convert_set_text(const struct convert_reader *r, const char *path, struct str value);

/* A LabelSelector of "a=1,b in (x)"; NULL: it is wrong, and `err` says why. */
struct tree *convert_selector(const struct convert_reader *r, const struct jval *at,
                              struct str about, struct str text);
/* One that is an object already, checked. */
struct tree *convert_selector_object(const struct convert_reader *r, const struct jval *at,
                                     struct str about);

/* The window of both tools, which share the code for it. */
struct convert_hours {
    unsigned days; /* 1 << day, Monday is 0 */
    struct str start;
    struct str end;
    struct str zone;
    const struct jval *at; /* where it stands, for messages */
    struct str about;      /* "--start-time" or "spec.window" */
};
/* "mon", "MO", "1"; Sunday is 0. */
NODISCARD
int convert_day(const struct convert_reader *r, const struct jval *at, struct str about,
                struct str text, unsigned *days);
NODISCARD
int convert_window(const struct convert_reader *r, const struct convert_hours *h);

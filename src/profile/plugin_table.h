/*
 * plugin_table: every plugin that a configuration can name, as one table: its keys, what they hold,
 * what they are when nothing is given, and a line of help.
 *
 * The table is used to read configurations and to word the messages, so that they cannot disagree.
 */
#pragma once

#include "calendar/cron.h"
#include "calendar/day.h"
#include "format/ucfg.h"

/* A webhook's secret that begins so is in base64, as Standard Webhooks has it; others are text. */
#define WEBHOOK_SECRET_PREFIX STR("whsec_")

enum plugin_kind { PLUGIN_CHECK, PLUGIN_NOTIFY, PLUGIN_TRIGGER, PLUGIN_KINDS };

enum plugin_type {
    PLUGIN_TEXT,     /* text */
    PLUGIN_TEMPLATE, /* text; one that is no template is a warning */
    PLUGIN_CHOICE,   /* text, one of `choices` */
    PLUGIN_BOOL,     /* truth */
    PLUGIN_INT,      /* number */
    PLUGIN_DURATION, /* number: nanoseconds; a plain number was seconds */
    PLUGIN_SPAN,     /* number: nanoseconds, from text with units only */
    PLUGIN_CLOCK,    /* number: the second of the day */
    PLUGIN_CRON,     /* cron */
    PLUGIN_TEXTS,    /* items */
    PLUGIN_WEEKDAYS, /* number: a bit a day, bit 0 is Sunday */
    PLUGIN_DATES,    /* dates */
};

struct plugin_key {
    const char *name; /* "a.b" is the key b of the mapping a */
    enum plugin_type type;
    bool required;
    const char *unless;  /* not required when this key is given; NULL = always */
    const char *initial; /* the default, as a user would write it; NULL = zero */
    const char *choices; /* PLUGIN_CHOICE: "cordon|drain" */
    const char *help;
};

struct plugin {
    const char *name;
    const struct plugin_key *keys;
    uint32_t key_n;
    const char *help;
    const char *example; /* its `config` */
    /* Its keys are the fields of this Go type: other keys are errors, and so are values of another
     * type, as in the original. `others` are its fields that YAML cannot give, with their types:
     * "numInstances:int|traits:[]string". NULL: it has keys of its own. */
    const char *fields_of;
    const char *others;
    /* Checks: a foreign system answers (facts.h, by instance). It is asked again inside a grant,
     * before the node is touched; facts_asked says when it was. */
    bool asks_outside;
    bool takes_lease; /* checks: a node that passes takes a Lease (stagger_take) for its grant */
};

/* What the keys of a plugin hold, in the order of its table. */
struct plugin_value {
    bool given;
    struct pos pos;
    struct str text;
    bool truth;
    int64_t number;
    struct str *items;
    uint32_t item_n;
    struct day_date *dates; /* item_n of them */
    struct cron *cron;
};

struct plugin_table {
    const struct plugin *items;
    uint32_t n;
};

extern const struct plugin_table plugin_tables[PLUGIN_KINDS];
extern const struct plugin_table plugin_schedules;
/* "check", "notification", "trigger", as messages say it, and "check", "notify", "trigger", as the
 * file does. */
extern const char *const plugin_kind_names[PLUGIN_KINDS];
extern const char *const plugin_kind_keys[PLUGIN_KINDS];

const struct plugin *plugin_find(const struct plugin_table *table, struct str name);

/* Reads the keys out of `config`, which may be NULL; `at` is the place to name when it is. What is
 * wrong is among the problems; the values are good if nothing was added to them. */
struct plugin_value *plugin_read(const struct plugin *p, const struct ucfg *u,
                                 const struct ucfg_value *config, struct pos at,
                                 struct problems *problems);

/* The value of a key that the table has. */
const struct plugin_value *plugin_get(const struct plugin *p, const struct plugin_value *values,
                                      const char *key);

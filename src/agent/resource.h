/*
 * resource: one thing of a machine as it should be (a file, a service, …), and what a type of
 * resources is: a table of fields and the same few functions for each type.
 *
 * A resource that is wrong in itself is kept, with the sentence that says why: it fails, and the
 * others go on. Everything lives in the arena of the document.
 */
#pragma once

#include "agent/field.h"
#include "port/units.h"

#define RESOURCE_NAME_MAX 253u
#define RESOURCES_MAX 10000u /* of one machine */
#define RESOURCE_EDGES_MAX 64u

struct root;
struct resource_call;

/* What a change does to whoever uses the machine; each includes those before it. */
enum disruption {
    DISRUPTION_NONE,
    DISRUPTION_WINDOW, /* in a maintenance window, without a word to the cluster */
    DISRUPTION_VISIT,  /* while the node is out of service */
};

enum on_remove { ON_REMOVE_KEEP, ON_REMOVE_RESTORE, ON_REMOVE_REMOVE };
enum disruptive { DISRUPTIVE_AUTO, DISRUPTIVE_ALWAYS, DISRUPTIVE_NEVER };

struct resource_meta {
    bool noop;
    bool retries_given;
    int64_t retries; /* after the first try; -1 = for ever */
    usec_t backoff;
    enum on_remove on_remove;
    enum disruptive disruptive;
    bool sensitive;
    bool unsafe_path; /* others may write on the way */
};

struct resource {
    struct str name;
    struct str id; /* "file:/etc/motd": two resources of one id would fight */
    const struct resource_type *type;
    struct pos pos;
    struct str json; /* as it was given */
    const struct field_value *values;
    const void *prepared; /* the type's own */
    struct resource_meta meta;
    const struct str *requires_names;
    uint32_t requires_n;
    const struct str *notifies_names;
    uint32_t notifies_n;
    /* Edges that nobody has to write: it comes after whoever provides what it uses. */
    struct str provides; /* "path:/etc/ssh", "user:bob", … ; empty = nothing */
    const struct str *uses;
    uint32_t uses_n;
    struct str problem; /* why it cannot be served; empty = it can */
};

/* What a type adds to a resource whose fields were read. */
struct resource_prepare {
    struct resource *resource;
    struct arena *out;
    struct str *uses;
    uint32_t uses_n;
    uint32_t uses_cap;
};

/* A function that needs a program to be run fills `command` and answers RESOURCE_RUN; it is called
 * again with the result and with `step` one higher. So nothing here waits. */
#define RESOURCE_RUN 1
/* The same for the service manager: `ask` is filled, and `answer` comes back. */
#define RESOURCE_ASK 2

struct original {
    struct str json; /* an object, in words of the type */
    struct str data; /* content of any length; empty = none */
};

/* What tells that something may have happened to a resource. */
enum watch_kind {
    WATCH_NONE,
    WATCH_PATH,     /* a file or folder, and whatever leads to it; links are followed */
    WATCH_LINK,     /* what has this name; where a link leads does not matter */
    WATCH_KERNEL,   /* a parameter below /proc/sys */
    WATCH_MOUNTS,   /* the table of mounts; no path */
    WATCH_SWAPS,    /* likewise of swap */
    WATCH_HOSTNAME, /* the running kernel's */
    WATCH_CLOCK,    /* nothing does: it is looked at again and again */
};

#define WATCH_NEEDS_MAX 4u

/* One line of a type's table: the path is a field's, or always the same. */
struct watch_need {
    enum watch_kind kind;
    const char *field;
    const char *path;
};

typedef void (*watch_add_fn)(void *ctx, enum watch_kind kind, struct str path);

struct resource_type {
    const char *name;
    struct field_table fields;
    const char *identity[2]; /* fields that name the thing; one of the machine has none */
    const char *help;
    const char *example; /* fields beside `name` and `type`, in YAML's flow form without braces */
    /* Is pure: looks at the values together, keeps what it made of them. */
    int (*prepare)(struct resource_prepare *p, struct err *err);
    /* Changes nothing; adds a difference for each property that is not as it should be. */
    int (*check)(struct resource_call *call, struct err *err);
    /* Makes it so, in one call. A second call after a crash at any place has the same end. NULL:
     * check never finds a difference. */
    int (*apply)(struct resource_call *call, struct err *err);
    /* What is there before the first apply; restore puts it back. Without an original it removes
     * what apply made. */
    int (*save)(struct resource_call *call, struct original *ret, struct err *err);
    int (*restore)(struct resource_call *call, const struct original *original, struct err *err);
    /* Somebody that it listens to has changed; NULL = that means nothing to it. */
    int (*refresh)(struct resource_call *call, struct err *err);
    /* What is watched for it; a field that is not given needs nothing. */
    struct watch_need watch[WATCH_NEEDS_MAX];
    /* What the table cannot say; NULL = nothing. */
    void (*watch_more)(const struct resource *r, watch_add_fn add, void *ctx);
};

extern const struct resource_type *const resource_types[]; /* by name; ends with NULL */
const struct resource_type *resource_type_find(struct str name);
extern const struct field_table resource_meta_fields;

struct difference {
    const char *property;
    struct str was;
    struct str want;
};

#define DIFFERENCES_MAX 16u      /* more are counted and not told */
#define DIFFERENCE_TEXT_MAX 128u /* of each side */

struct command_spec {
    const struct str *argv; /* the first is a path */
    uint32_t argv_n;
    const struct str *env; /* "NAME=value"; PATH and LANG are there without */
    uint32_t env_n;
    struct str cwd;   /* "/" when empty */
    struct str input; /* what it reads */
    uint32_t uid;
    uint32_t gid;
    usec_t time_max; /* 0 = COMMAND_TIME */
};
#define COMMAND_TIME MINUTES(5)

struct command_result {
    int exit_code; /* 128 + n when signal n ended it */
    bool timed_out;
    struct str out; /* both outputs as they came, cut where they are long */
};

/* One call of a function of a type. */
struct resource_call {
    const struct resource *resource;
    struct root *root;
    struct arena *tmp; /* until the work on the resource is done */
    void *memory;      /* the function's own, from step to step */
    uint32_t step;
    struct command_spec command;         /* to be filled before RESOURCE_RUN */
    const struct command_result *result; /* of the command of the step before */
    struct unit_request ask;             /* to be filled before RESOURCE_ASK */
    const struct unit_reply *answer;     /* of the step before */
    bool refresh;                        /* check: a refresh will follow */
    bool refreshed;                      /* apply: a refresh is not needed any more */
    enum disruption disruption;          /* check: of what apply would do */
    struct difference differences[DIFFERENCES_MAX];
    uint32_t difference_n;
};

/* The texts are copied as far as people need them; nothing of a sensitive resource is. */
void resource_differs(struct resource_call *call, const char *property, struct str was,
                      struct str want);
/* Calls `add` for all that its type's table asks for. */
void resource_watch(const struct resource *r, watch_add_fn add, void *ctx);
/* It is there and should not be, or the reverse. */
void resource_differs_in_state(struct resource_call *call, bool exists);
/* Of types with a field `state` that has these words. */
bool resource_is_absent(const struct resource *r);
const struct field_value *resource_value(const struct resource *r, const char *name);
/* `save` and `restore` of a type that leaves nothing to undo. */
int resource_save_nothing(struct resource_call *call, struct original *ret, struct err *err);
int resource_restore_nothing(struct resource_call *call, const struct original *original,
                             struct err *err);
/* `r` comes after whoever provides this: "path:/etc"; "below:/etc/apt" is every path in there. */
void resource_uses(struct resource_prepare *p, const char *kind, struct str what);
/* The same, for what another resource uses or provides. */
void resource_uses_all(struct resource_prepare *p, struct str what);
/* The folder of a path, and nothing for one directly below the root. */
void resource_uses_parent(struct resource_prepare *p, struct str path);

struct resource_list {
    struct resource *items;
    uint32_t n;
};

/* Reads the member `resources` of a document. Fails only for what makes the whole meaningless: no
 * list, too many, a name that comes twice. */
NODISCARD
int resource_list_read(const struct ydoc *doc, struct arena *out, struct resource_list *ret,
                       struct err *err);
/* One resource, from the text that `json` of another was. */
NODISCARD
int resource_read_json(struct str json, struct arena *out, struct resource *ret, struct err *err);

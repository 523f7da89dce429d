/*
 * agent_fixture: a machine's file tree in a temporary folder, and the agent on it, on virtual time.
 */
#pragma once

#include "agent/converge.h"
#include "tests/check.h"

struct agent_fixture {
    struct arena memory;
    char path[64]; /* of the root */
    struct root root;
    struct virtual_loop *time;
    struct resource_list resources;
    struct graph graph;
    struct converge converge;
    bool idle;
    struct engine_rules rules;
    /* Before a run: changes a resource that was read, as for a type that only a test has. */
    void (*on_resource)(struct resource *r);
    /* What programs do: a test plays them. NULL: none can be run. */
    void (*on_command)(struct agent_fixture *f, const struct command_spec *command,
                       struct command_result *ret);
    uint32_t command_n; /* how many were run */
    /* What the service manager does: a test plays it. NULL: there is none. */
    void (*on_unit)(struct agent_fixture *f, const struct unit_request *request,
                    struct unit_reply *ret);
    struct loop_timer unit_end;
    void (*unit_on_end)(void *ctx, const struct unit_reply *reply);
    void *unit_ctx;
    struct unit_reply unit_reply;
    const struct agent_play *plays; /* of agent_play; ends with one without words */
    struct str command_input;       /* of the last one */
    struct loop_timer command_end;
    void (*command_on_end)(void *ctx, const struct command_result *result);
    void *command_ctx;
    struct command_result command_result;
};

/* What a program does to the machine: `words` with spaces between is how it is called. */
struct agent_play {
    const char *words;
    struct {
        const char *path;
        const char *content; /* NULL = the file goes */
    } files[3];
    int exit_code;
    const char *out;
};

void agent_fixture_init(struct agent_fixture *f);
void agent_fixture_done(struct agent_fixture *f); /* the folder is removed, too */

/* Files of the machine, by paths as the machine has them. */
void agent_write(struct agent_fixture *f, const char *path, const char *content);
void agent_mkdir(struct agent_fixture *f, const char *path);
struct str agent_read(struct agent_fixture *f, const char *path); /* "(none)" when it is missing */
struct str agent_link(struct agent_fixture *f, const char *path); /* likewise */
uint32_t agent_mode(struct agent_fixture *f, const char *path);   /* 0 when it is missing */
/* The path outside. */
const char *agent_outside(struct agent_fixture *f, const char *path);
/* Every name, mode, link and content below the root, but for the agent's own folder; as one text.
 */
struct str agent_tree(struct agent_fixture *f);

/* For `on_command`: plays `f->plays`, and fails the test for a program that is not among them. */
void agent_play(struct agent_fixture *f, const struct command_spec *command,
                struct command_result *ret);

/* Reads `yaml` and runs until nothing is left to do; the result stays until the next run. Fails the
 * test when the document is refused. */
void agent_run(struct agent_fixture *f, const char *yaml);
/* The same with nothing changed. */
void agent_noop(struct agent_fixture *f, const char *yaml);
/* What is wrong with a document that is refused. */
const char *agent_refused(struct agent_fixture *f, const char *yaml);

const struct vertex *agent_vertex(const struct agent_fixture *f, const char *name);
/* "changed, Ok": what the last run says of a resource. */
struct str agent_said(struct agent_fixture *f, const char *name);

/* Runs `yaml` in a process that is killed before its n-th change of the disk, for every n, each
 * time on a tree that `before` has made, and then once more to the end. `after` judges what the
 * killed process left, and what the second one made of it. */
void agent_kill_everywhere(const char *yaml, void (*before)(struct agent_fixture *f),
                           void (*left)(struct agent_fixture *f),
                           void (*after)(struct agent_fixture *f));

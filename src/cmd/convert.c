/* drydock convert: prints NodeMaintenances from the configuration of other tools. */
#include "cmd/commands.h"
#include "cmd/config_env.h"
#include "host/file.h"
#include "operation/convert.h"

#include <stdio.h>

#define CONVERT_OUTPUT_MAX ((size_t)16 * 1024 * 1024)
#define CONVERT_FILES_MAX 1000u

typedef int convert_file(struct str text, struct arena *memory, struct convert_list *list,
                         struct err *err);

static const struct {
    const char *name;
    convert_file *read;
} sources[] = {
    { "kured", convert_kured },
    { "suc", convert_suc },
};

static convert_file *source_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        if (str_eq(name, str_from(sources[i].name))) {
            return sources[i].read;
        }
    }
    return NULL;
}

static bool zone_is_known(void *ctx UNUSED, struct str name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct str bytes;
    const struct ucfg_env env = config_env_of(&config_env_host);
    return str_eq(name, STR("UTC")) || env.zone(env.ctx, name, &tmp, &bytes, &err) == 0;
}

/* One line on stderr for each note; they are comments of the output, too. */
static void notes_print(struct str path, const struct convert *c)
{
    static const char *const words[] = {
        [CONVERT_LOST] = "not carried over",
        [CONVERT_LOOK] = "to look at",
    };
    for (uint32_t i = 0; i < c->note_n; i++) {
        const struct convert_note *n = &c->notes[i];
        (void)fprintf(stderr, STR_FMT ":%u:%u: %s: " STR_FMT ": " STR_FMT "\n", STR_ARG(path),
                      n->pos.line, n->pos.column, words[n->weight], STR_ARG(n->about),
                      STR_ARG(n->text));
    }
}

static int file_convert(struct str path, convert_file *read, struct arena *memory,
                        struct convert_list *list, struct err *err)
{
    struct str text;
    uint32_t before = list->n;
    int r = file_read(path, CONVERT_BYTES_MAX, memory, &text, err);
    if (r < 0) {
        return r; /* it names the file */
    }
    r = read(text, memory, list, err);
    if (r < 0) {
        return err_wrap(err, STR_FMT ":%u:%u", STR_ARG(path), err->pos.line, err->pos.column);
    }
    for (uint32_t i = before; i < list->n; i++) {
        notes_print(path, &list->items[i]);
    }
    return 0;
}

static int convert_check(const struct command_call *call, struct err *err)
{
    if (call->arg_count > 0 && source_find(call->args[0]) == NULL) {
        return err_set(err, ERR_INVALID, "'" STR_FMT "': want kured or suc, and files behind it",
                       STR_ARG(call->args[0]));
    }
    return 0;
}

static int convert_run(const struct command_call *call)
{
    CLEANUP(buf_done)
    struct buf out = { .max = CONVERT_OUTPUT_MAX };
    struct convert_list list = { .zone_is_known = zone_is_known };
    struct err err = { 0 };
    int r = 0;
    for (uint32_t i = 1; r == 0 && i < call->arg_count; i++) {
        r = file_convert(call->args[i], source_find(call->args[0]), call->memory, &list, &err);
    }
    for (uint32_t i = 0; r == 0 && i < list.n; i++) {
        buf_add(&out, i > 0 ? STR("---\n") : STR_NONE);
        convert_print(&list.items[i], &out);
    }
    if (r == 0 && out.full) {
        r = err_set(&err, ERR_LIMIT, "want less at once: the output has more than %zu bytes",
                    CONVERT_OUTPUT_MAX);
    }
    if (r < 0) {
        return command_fail(call, &err); /* no half of an answer */
    }
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

const struct command command_convert = {
    .name = "convert",
    .args = "kured|suc FILE…",
    .summary = "print NodeMaintenances from kured or system-upgrade-controller",
    .text = "Reads a DaemonSet of kured, or Plans of system-upgrade-controller, and prints a "
            "NodeMaintenance for each. What could not be carried over, and what is to be looked "
            "at, is told on stderr with its place and stands in comments.\n\n"
            "  kubectl get ds -n kube-system kured -o yaml >kured.yaml\n"
            "  drydock convert kured kured.yaml >reboots.yaml\n\n"
            "Nothing is printed if a file cannot be read or understood.",
    .args_min = 2,
    .args_max = CONVERT_FILES_MAX,
    .check = convert_check,
    .run = convert_run,
};

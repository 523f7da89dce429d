#include "sandbox/sim/dialer.h"

#include "base/alloc.h"
#include "format/yaml.h"
#include "sandbox/sim/sim_api.h"

struct sandbox_dialer {
    struct dialer dialer; /* first */
    struct loop *view;    /* borrowed: the client's, as the next */
    struct phonebook *book;
    struct list lines;
    uint32_t open;
};

/* One door that is open. */
struct dialer_line {
    struct list link;
    struct api *api;
    struct phonebook_entry *entry; /* NULL: it leads nowhere */
};

/* ── phonebook ─────────────────────────────────────────────────────────────────────────────── */

void phonebook_init(struct phonebook *b)
{
    *b = (struct phonebook){ 0 };
    list_init(&b->entries);
    faults_init(&b->nowhere, 0);
    b->nowhere.down = true;
}

void phonebook_done(struct phonebook *b)
{
    LIST_EACH (&b->entries, link) {
        if (link == NULL) {
            return; /* zeroed */
        }
        ASSERT(CONTAINER_OF(link, struct phonebook_entry, link)->open == 0);
    }
    faults_done(&b->nowhere);
    arena_done(&b->memory);
}

struct phonebook_entry *phonebook_put(struct phonebook *b, struct str address,
                                      struct apiserver *server, struct faults *faults)
{
    ASSERT(phonebook_find(b, address) == NULL);
    struct phonebook_entry *entry = ARENA_NEW(&b->memory, struct phonebook_entry);
    entry->address = arena_str(&b->memory, address);
    entry->server = server;
    entry->faults = faults;
    list_add(&b->entries, &entry->link);
    return entry;
}

struct phonebook_entry *phonebook_find(const struct phonebook *b, struct str address)
{
    LIST_EACH (&b->entries, link) {
        struct phonebook_entry *entry = CONTAINER_OF(link, struct phonebook_entry, link);
        if (str_eq(entry->address, address)) {
            return entry;
        }
    }
    return NULL;
}

struct str phonebook_kubeconfig(struct str address, struct str token, struct arena *out)
{
    return arena_printf(out,
                        "apiVersion: v1\n"
                        "kind: Config\n"
                        "current-context: admin\n"
                        "contexts:\n"
                        "- name: admin\n"
                        "  context: {cluster: workload, user: admin}\n"
                        "clusters:\n"
                        "- name: workload\n"
                        "  cluster: {server: \"" STR_FMT "\"}\n"
                        "users:\n"
                        "- name: admin\n"
                        "  user: {token: \"" STR_FMT "\"}\n",
                        STR_ARG(address), STR_ARG(token));
}

/* ── dialling ──────────────────────────────────────────────────────────────────────────────── */

static struct sandbox_dialer *dialer_of(struct dialer *d)
{
    return CONTAINER_OF(d, struct sandbox_dialer, dialer);
}

/* Of the first cluster and the first user; those in Secrets have no others. */
static int dialer_read(struct str text, struct arena *tmp, struct str *ret_address,
                       struct str *ret_token, struct err *err)
{
    struct ydoc doc;
    int r = ydoc_parse(text, tmp, &doc, err);
    if (r < 0) {
        return r;
    }
    const struct jval *cluster = jval_first(jval_get(doc.root, STR("clusters")));
    const struct jval *user = jval_first(jval_get(doc.root, STR("users")));
    *ret_address = jval_str(jval_at(cluster, "cluster.server"));
    *ret_token = jval_str(jval_at(user, "user.token"));
    return ret_address->n > 0 ? 0
                              : err_set(err, ERR_INVALID,
                                        "the kubeconfig names no server of a "
                                        "cluster");
}

static struct api *sim_dialer_dial(struct dialer *dialer, const struct dialer_spec *spec,
                                   struct err *err)
{
    struct sandbox_dialer *d = dialer_of(dialer);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str address = STR_NONE;
    struct str token = STR_NONE;
    if (dialer_read(spec->kubeconfig, &tmp, &address, &token, err) < 0) {
        return NULL;
    }
    struct phonebook_entry *entry = phonebook_find(d->book, address);
    if (entry != NULL) {
        entry->dialled++;
        if (entry->refusal != NULL) {
            (void)err_set(err, ERR_INVALID, "%s", entry->refusal); /* the code is not returned */
            return NULL;
        }
        entry->open++;
    }
    struct dialer_line *line = ALLOC_NEW(struct dialer_line);
    line->entry = entry;
    line->api = entry != NULL ? door_new(d->view, entry->server, entry->faults)
                              : door_new(d->view, NULL, &d->book->nowhere);
    door_set_token(line->api, spec->token.n > 0 ? spec->token : token);
    list_add(&d->lines, &line->link);
    d->open++;
    return line->api;
}

static void dialer_line_free(struct sandbox_dialer *d, struct dialer_line *line)
{
    if (line->entry != NULL) {
        line->entry->open--;
    }
    list_del(&line->link);
    door_free(line->api);
    alloc_free(line);
    d->open--;
}

static void sim_dialer_hang_up(struct dialer *dialer, struct api *api)
{
    struct sandbox_dialer *d = dialer_of(dialer);
    struct dialer_line *found = NULL;
    LIST_EACH (&d->lines, link) {
        struct dialer_line *line = CONTAINER_OF(link, struct dialer_line, link);
        found = line->api == api ? line : found;
    }
    ASSERT(found != NULL);
    dialer_line_free(d, found);
}

static const struct dialer_ops dialer_ops = { .dial = sim_dialer_dial,
                                              .hang_up = sim_dialer_hang_up };

struct dialer *sandbox_dialer_new(struct loop *view, struct phonebook *book)
{
    struct sandbox_dialer *d = ALLOC_NEW(struct sandbox_dialer);
    d->dialer.ops = &dialer_ops;
    d->view = view;
    d->book = book;
    list_init(&d->lines);
    return &d->dialer;
}

void sandbox_dialer_free(struct dialer *dialer)
{
    if (dialer == NULL) {
        return;
    }
    struct sandbox_dialer *d = dialer_of(dialer);
    LIST_EACH (&d->lines, link) {
        dialer_line_free(d, CONTAINER_OF(link, struct dialer_line, link));
    }
    alloc_free(d);
}

uint32_t sandbox_dialer_open(struct dialer *dialer)
{
    return dialer_of(dialer)->open;
}

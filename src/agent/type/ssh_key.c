/*
 * sshKey: a key that opens an account, in the account's authorized_keys.
 *
 * The folders on the way are the account's own, so whoever has it can put anything there at any
 * time. Nothing is followed that he may have made: links only if root made them, and what is
 * written is a new file in a folder that is held open, given to him afterwards.
 */
#include "agent/accounts.h"
#include "agent/authorized_keys.h"
#include "agent/type/edit.h"
#include "agent/type/path.h"
#include "agent/type/type.h"

#define FOLDER_MODE 0700u
#define FILE_MODE 0600u

static const struct field fields[] = {
    { "user", FIELD_TEXT, .required = true, .help = "whose account it opens" },
    { "key", FIELD_TEXT, .required = true,
      .help = "the public key on one line, as ssh-keygen prints it" },
    { "options", FIELD_TEXT,
      .help = "what stands before it, such as `restrict`; nothing: what is there stays" },
    { "exclusive", FIELD_BOOL, .initial = "false", .help = "the account has no other key" },
    { "state", FIELD_CHOICE, .initial = "present", .choices = "present|absent",
      .help = "whether it is there" },
};

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    struct str user = resource_value(r, "user")->text;
    const struct field_value *options = resource_value(r, "options");
    struct authorized_keys_edit *edit = ARENA_NEW(p->out, struct authorized_keys_edit);
    if (!account_name_is_good(user)) {
        return err_set(err, ERR_INVALID, "field 'user': found '" STR_FMT "', want %s",
                       STR_ARG(str_sub(user, 0, 64)), ACCOUNT_NAME_WANTED);
    }
    if (authorized_key_parse(resource_value(r, "key")->text, p->out, &edit->key, err) < 0) {
        return err_wrap(err, "field 'key'");
    }
    if (options->given && !authorized_options_are_good(options->text)) {
        return err_set(err, ERR_INVALID,
                       "field 'options': found '" STR_FMT "', want options of sshd with commas "
                       "between, such as restrict,pty",
                       STR_ARG(str_sub(options->text, 0, 64)));
    }
    edit->key.options = options->text;
    edit->options_given = options->given;
    edit->absent = resource_is_absent(r);
    edit->exclusive = resource_value(r, "exclusive")->truth;
    if (edit->absent && edit->exclusive) {
        return err_set(err, ERR_INVALID, "field 'exclusive': want it with 'state: present' only");
    }
    p->resource->prepared = edit;
    p->resource->id = arena_printf(p->out, "sshKey:" STR_FMT ":" STR_FMT, STR_ARG(user),
                                   STR_ARG(str_sub(edit->key.blob, 0, 128)));
    resource_uses(p, "user", user);
    return 0;
}

/* ── the account's files ───────────────────────────────────────────────────────────────────── */

struct keys {
    struct root root; /* the machine's, in which the account's folders are good */
    struct account account;
    bool account_exists;
    struct path_state folder;
    struct path_state file;
    struct str text;
};

static void keys_done(struct keys *k)
{
    root_place_done(&k->folder.place);
    root_place_done(&k->file.place);
}

static int find_account(struct resource_call *call, struct keys *k, struct err *err)
{
    struct str passwd = STR("");
    bool exists;
    struct str user = resource_value(call->resource, "user")->text;
    int r = root_slurp(call->root, STR("/etc/passwd"), 0, call->tmp, &passwd, &exists, err);
    k->account_exists = r == 0 && exists && account_find(passwd, user, &k->account);
    if (k->account_exists && field_check_path(k->account.home, err) < 0) {
        return err_wrap(err, "home of '" STR_FMT "'", STR_ARG(user));
    }
    return r;
}

static int check_file(const struct keys *k, struct err *err)
{
    const struct stat *st = &k->file.st;
    /* A second name may be of a file that is not the account's. */
    bool good = !k->file.exists || (S_ISREG(st->st_mode) && st->st_nlink == 1 &&
                                    (st->st_uid == 0 || st->st_uid == k->account.uid));
    return good ? 0
                : err_set(err, ERR_DENIED,
                          "'" STR_FMT "' is a link, has a second name or belongs to somebody else",
                          STR_ARG(k->file.place.path));
}

/* Whoever calls it calls keys_done. */
static int look(struct resource_call *call, struct keys *k, struct err *err)
{
    *k = (struct keys){ .root = *call->root,
                        .folder = { .place = ROOT_PLACE_NONE },
                        .file = { .place = ROOT_PLACE_NONE },
                        .text = STR("") };
    int r = find_account(call, k, err);
    if (r < 0 || !k->account_exists) {
        return r;
    }
    struct root *machine = call->root;
    struct str folder = arena_printf(call->tmp, STR_FMT "/.ssh", STR_ARG(k->account.home));
    k->root.owner = k->account.uid;
    call->root = &k->root;
    r = path_look(call, folder, 0, &k->folder, err);
    r = r < 0
            ? r
            : path_look(call, arena_printf(call->tmp, STR_FMT "/authorized_keys", STR_ARG(folder)),
                        0, &k->file, err);
    call->root = machine;
    r = r < 0 ? r : check_file(k, err);
    return r == 0 && k->file.exists ? root_read(&k->file.place, call->tmp, &k->text, err) : r;
}

/* A crash between making it and giving it away leaves one that the account cannot enter. */
static bool folder_is_closed(const struct keys *k)
{
    return k->folder.exists && k->folder.st.st_uid != k->account.uid &&
           (k->folder.st.st_mode & S_IXOTH) == 0;
}

static int fail_account(struct resource_call *call, struct err *err)
{
    return err_set(err, ERR_NOTFOUND, "field 'user': there is no '" STR_FMT "' in /etc/passwd",
                   STR_ARG(resource_value(call->resource, "user")->text));
}

static int make_folder(struct resource_call *call, struct keys *k, struct err *err)
{
    if (k->folder.place.dir < 0) {
        return err_set(err, ERR_NOTFOUND, "there is no home '" STR_FMT "'",
                       STR_ARG(k->account.home));
    }
    int r = k->folder.exists ? 0 : root_mkdir(&k->root, &k->folder.place, FOLDER_MODE, err);
    r = r < 0 ? r
              : root_give_folder(&k->root, &k->folder.place, k->account.uid, k->account.gid,
                                 FOLDER_MODE, err);
    if (r < 0) {
        return r;
    }
    keys_done(k);
    return look(call, k, err);
}

static int write_text(struct resource_call *call, struct keys *k, struct str text, struct err *err)
{
    int r = !k->folder.exists || folder_is_closed(k) ? make_folder(call, k, err) : 0;
    if (r < 0 || str_eq(text, k->text)) {
        return r;
    }
    struct root_file file = { .content = text,
                              .uid = k->account.uid,
                              .gid = k->account.gid,
                              .mode = k->file.exists ? k->file.st.st_mode & 0777 : FILE_MODE,
                              .keep_xattrs = k->file.exists };
    return root_replace(&k->root, &k->file.place, &file, err);
}

/* ── the five functions ────────────────────────────────────────────────────────────────────── */

/* `*ret_nothing`: there is no account that could have the key, and it is not to be there. */
static int look_for_edit(struct resource_call *call, struct keys *k, bool *ret_nothing,
                         struct err *err)
{
    const struct authorized_keys_edit *edit = call->resource->prepared;
    int r = look(call, k, err);
    *ret_nothing = r == 0 && !k->account_exists && edit->absent;
    return r < 0 || k->account_exists || *ret_nothing ? r : fail_account(call, err);
}

static int check(struct resource_call *call, struct err *err)
{
    CLEANUP(keys_done)
    struct keys k;
    bool nothing;
    int r = look_for_edit(call, &k, &nothing, err);
    if (r < 0 || nothing) {
        return r;
    }
    path_compare_content(call, k.text,
                         authorized_keys_edit(call->resource->prepared, k.text, call->tmp));
    if (folder_is_closed(&k)) {
        resource_differs(call, "folder", STR("closed"), STR("open"));
    }
    return 0;
}

static int apply(struct resource_call *call, struct err *err)
{
    CLEANUP(keys_done)
    struct keys k;
    bool nothing;
    int r = look_for_edit(call, &k, &nothing, err);
    return r < 0 || nothing
               ? r
               : write_text(call, &k,
                            authorized_keys_edit(call->resource->prepared, k.text, call->tmp), err);
}

static int save(struct resource_call *call, struct original *ret, struct err *err)
{
    const struct authorized_keys_edit *edit = call->resource->prepared;
    struct edit_original o = { 0 };
    CLEANUP(keys_done)
    struct keys k;
    int r = look(call, &k, err);
    o.file = k.file.exists;
    o.had = r == 0 && authorized_keys_find(&edit->key, k.text, &o.text);
    edit_save(call, &o, ret);
    ret->data = edit->exclusive ? k.text : STR("");
    return r;
}

static int restore(struct resource_call *call, const struct original *original, struct err *err)
{
    const struct authorized_keys_edit *edit = call->resource->prepared;
    struct edit_original o;
    CLEANUP(keys_done)
    struct keys k = { .folder = { .place = ROOT_PLACE_NONE },
                      .file = { .place = ROOT_PLACE_NONE } };
    int r = edit_load(call, original, &o, err);
    r = r < 0 ? r : look(call, &k, err);
    if (r < 0 || !k.account_exists || !k.folder.exists) {
        return r; /* with the account or its folder the key is gone */
    }
    struct str text =
        authorized_keys_restore(&edit->key, o.had ? o.text : STR(""),
                                original != NULL ? original->data : STR(""), k.text, call->tmp);
    return write_text(call, &k, text, err);
}

const struct resource_type resource_type_ssh_key = {
    .name = "sshKey",
    .fields = FIELD_TABLE(fields),
    .help = "a key that opens an account by ssh, in its ~/.ssh/authorized_keys",
    .example = "user: backup, key: ssh-ed25519 "
               "AAAAC3NzaC1lZDI1NTE5AAAAIJ0mJmZp0gq2zkPpB8jYk0mVr8pH7o3E8r2M0w1c5x7Q ops, "
               "options: restrict",
    .prepare = prepare,
    .check = check,
    .apply = apply,
    .save = save,
    .restore = restore,
    .watch = { { WATCH_PATH, .path = "/etc/passwd" }, { .kind = WATCH_CLOCK } },
};

#include "agent/kernel_tables.h"

#include "agent/fstab.h"
#include "agent/text_edit.h"

/* ── modules ───────────────────────────────────────────────────────────────────────────────── */

static char plain(char c)
{
    return c == '-' ? '_' : c;
}

bool kernel_module_same(struct str a, struct str b)
{
    bool same = a.n == b.n;
    for (size_t i = 0; i < a.n && same; i++) {
        same = plain(a.p[i]) == plain(b.p[i]);
    }
    return same;
}

bool kernel_module_find(struct str modules, struct str name, struct kernel_module *ret)
{
    struct str raw;
    while (text_next_line(&modules, &raw)) {
        struct str rest = text_chomp(raw);
        struct str word;
        struct str size;
        struct str users;
        struct kernel_module found = { 0 };
        if (fstab_next_word(&rest, &word) && kernel_module_same(word, name) &&
            fstab_next_word(&rest, &size) && fstab_next_word(&rest, &users) &&
            str_to_u32(users, &found.users)) {
            found.name = word;
            *ret = found;
            return true;
        }
    }
    return false;
}

bool kernel_module_is_builtin(struct str builtin, struct str name)
{
    struct str raw;
    while (text_next_line(&builtin, &raw)) {
        struct str line = str_trim(raw);
        size_t slash = str_rfind_char(line, '/');
        struct str file = slash == SIZE_MAX ? line : str_sub(line, slash + 1, line.n - slash - 1);
        if (str_cut_suffix(file, STR(".ko"), &file) && kernel_module_same(file, name)) {
            return true;
        }
    }
    return false;
}

/* ── swap ──────────────────────────────────────────────────────────────────────────────────── */

bool kernel_swap_next(struct str *rest, struct arena *out, struct str *ret_path)
{
    struct str raw;
    while (text_next_line(rest, &raw)) {
        struct str line = text_chomp(raw);
        struct str path;
        if (fstab_next_word(&line, &path) && path.p[0] == '/') {
            *ret_path = fstab_unescape(path, out);
            return true; /* the first line has names of columns */
        }
    }
    return false;
}

/* ── mounts ────────────────────────────────────────────────────────────────────────────────── */

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" (proc(5)). */
static bool read_mount(struct str line, struct arena *out, struct str path,
                       struct kernel_mount *ret)
{
    struct str words[6];
    struct str word;
    struct str device;
    uint32_t n = 0;
    while (n < ARRAY_LEN(words) && fstab_next_word(&line, &words[n])) {
        n++;
    }
    if (n < ARRAY_LEN(words) || !str_eq(fstab_unescape(words[4], out), path)) {
        return false;
    }
    struct kernel_mount mount = { .path = path, .options = words[5] };
    do {
        if (!fstab_next_word(&line, &word)) {
            return false;
        }
    } while (!str_eq(word, STR("-")));
    if (!fstab_next_word(&line, &mount.type) || !fstab_next_word(&line, &device)) {
        return false;
    }
    mount.device = fstab_unescape(device, out);
    (void)fstab_next_word(&line, &mount.super_options); /* empty without */
    *ret = mount;
    return true;
}

bool kernel_mount_find(struct str mountinfo, struct str path, struct arena *out,
                       struct kernel_mount *ret)
{
    struct str raw;
    bool found = false;
    while (text_next_line(&mountinfo, &raw)) {
        found = read_mount(text_chomp(raw), out, path, ret) || found;
    }
    return found;
}

bool kernel_options_have(struct str options, struct str option)
{
    struct str word;
    while (str_split_next(&options, ',', &word)) {
        if (str_eq(word, option)) {
            return true;
        }
    }
    return false;
}

#include "agent/dpkg_status.h"

#include "agent/fstab.h"
#include "agent/text_edit.h"

/* "install ok installed": the error flag between means nothing since long ago. */
static void read_status(struct str value, struct dpkg_package *ret)
{
    struct str flag;
    (void)fstab_next_word(&value, &ret->want); /* empty without */
    (void)fstab_next_word(&value, &flag);
    (void)fstab_next_word(&value, &ret->state);
}

static void read_line(struct str line, struct dpkg_package *ret)
{
    struct str key;
    struct str value;
    if (line.n == 0 || line.p[0] == ' ' || line.p[0] == '\t' ||
        !str_cut(line, STR(":"), &key, &value)) {
        return; /* the rest of a longer value */
    }
    value = str_trim(value);
    if (str_eq(key, STR("Package"))) {
        ret->name = value;
    } else if (str_eq(key, STR("Architecture"))) {
        ret->arch = value;
    } else if (str_eq(key, STR("Version"))) {
        ret->version = value;
    } else if (str_eq(key, STR("Status"))) {
        read_status(value, ret);
    }
}

bool dpkg_next(struct str *rest, struct dpkg_package *ret)
{
    struct dpkg_package p = { 0 };
    struct str raw;
    while (text_next_line(rest, &raw)) {
        struct str line = text_chomp(raw);
        if (line.n > 0) {
            read_line(line, &p);
        }
        if ((line.n == 0 || rest->n == 0) && p.name.n > 0 && p.state.n > 0) {
            *ret = p;
            return true;
        }
        if (line.n == 0) {
            p = (struct dpkg_package){ 0 };
        }
    }
    return false;
}

bool dpkg_is_installed(const struct dpkg_package *p)
{
    return str_eq(p->state, STR("installed"));
}

bool dpkg_find(struct str status, struct str name, struct dpkg_package *ret)
{
    struct str bare;
    struct str arch;
    struct dpkg_package p;
    bool found = false;
    (void)str_cut(name, STR(":"), &bare, &arch); /* any architecture without one */
    while (dpkg_next(&status, &p)) {
        if (str_eq(p.name, bare) && (arch.n == 0 || str_eq(arch, p.arch)) &&
            (!found || dpkg_is_installed(&p))) {
            *ret = p;
            found = true;
        }
    }
    return found;
}

bool dpkg_is_interrupted(struct str status)
{
    static const struct str states[] = {
        STR_INIT("half-installed"),   STR_INIT("unpacked"),         STR_INIT("half-configured"),
        STR_INIT("triggers-awaited"), STR_INIT("triggers-pending"),
    };
    struct dpkg_package p;
    while (dpkg_next(&status, &p)) {
        for (size_t i = 0; i < ARRAY_LEN(states); i++) {
            if (str_eq(p.state, states[i])) {
                return true;
            }
        }
    }
    return false;
}

static bool is_of(struct str text, const char *more)
{
    bool good = true;
    for (size_t i = 0; i < text.n && good; i++) {
        char c = text.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               str_find_char(str_from(more), c) != SIZE_MAX;
    }
    return good;
}

bool dpkg_name_is_good(struct str name)
{
    struct str bare;
    struct str arch;
    bool both = str_cut(name, STR(":"), &bare, &arch);
    /* apt-get takes a dash at the end for "remove it". */
    return bare.n >= 2 && bare.n <= 128 && is_of(bare, "+-.") && is_of(str_sub(bare, 0, 1), "") &&
           bare.p[bare.n - 1] != '-' && (!both || (arch.n > 0 && arch.n <= 32 && is_of(arch, "-")));
}

bool dpkg_version_is_good(struct str version)
{
    bool good = version.n > 0 && version.n <= 128;
    for (size_t i = 0; i < version.n && good; i++) {
        char c = version.p[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               str_find_char(STR(".+-~:"), c) != SIZE_MAX;
    }
    return good && version.p[0] != '-';
}

bool apt_would_install(struct str output, struct str name)
{
    struct str raw;
    struct str bare;
    struct str arch;
    (void)str_cut(name, STR(":"), &bare, &arch); /* any architecture without one */
    while (text_next_line(&output, &raw)) {
        struct str rest = text_chomp(raw);
        struct str word;
        struct str found;
        if (fstab_next_word(&rest, &word) && str_eq(word, STR("Inst")) &&
            fstab_next_word(&rest, &word)) {
            (void)str_cut(word, STR(":"), &found, &word); /* it names others than the machine's */
            if (str_eq(found, bare)) {
                return true;
            }
        }
    }
    return false;
}

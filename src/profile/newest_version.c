/* The newest of many versions. */
#include "profile/newest_version.h"

void newest_version_done(struct newest_version *n)
{
    buf_done(&n->text);
    *n = (struct newest_version){ 0 };
}

void newest_version_reset(struct newest_version *n)
{
    buf_reset(&n->text);
    n->holders = 0;
}

static void newest_version_put(struct newest_version *n, struct str text)
{
    struct err err = { 0 };
    buf_reset(&n->text);
    buf_add(&n->text, text);
    int r = semver_parse(buf_str(&n->text), &n->version, &err);
    ASSERT(r == 0); /* it was read before */
    n->holders = 1;
}

bool newest_version_add(struct newest_version *n, struct str text)
{
    struct err err = { 0 };
    struct semver version;
    if (semver_parse(text, &version, &err) < 0) {
        return false;
    }
    int order = n->text.n == 0 ? 1 : semver_cmp(&version, &n->version);
    if (order == 0) {
        n->holders++;
    } else if (order > 0) {
        newest_version_put(n, text);
    }
    return order > 0;
}

void newest_version_remove(struct newest_version *n, struct str text)
{
    struct err err = { 0 };
    struct semver version;
    if (n->holders > 0 && semver_parse(text, &version, &err) == 0 &&
        semver_cmp(&version, &n->version) == 0) {
        n->holders--;
    }
}

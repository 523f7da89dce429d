#include "format/instance_names.h"

int instance_names_unknown(const struct instance_names *names, struct str name, struct err *err)
{
    struct str near = names->closest != NULL ? names->closest(names->ctx, name) : STR_NONE;
    bool has = near.n > 0;
    return err_set(err, ERR_NOTFOUND,
                   "the requested %s instance \"" STR_FMT
                   "\" is not known to the registry%s" STR_FMT "%s",
                   names->kind, STR_ARG(name), has ? "; did you mean \"" : "", STR_ARG(near),
                   has ? "\"?" : "");
}

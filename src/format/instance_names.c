#include "format/instance_names.h"

int instance_names_unknown(const struct instance_names *names, struct str name, struct err *err)
{
    return err_set(err, ERR_NOTFOUND,
                   "the requested %s instance \"" STR_FMT "\" is not known to the registry",
                   names->kind, STR_ARG(name));
}

#include "kinds/crd.h"

#include "format/yaml.h"

size_t crd_count(void)
{
    return crds_count + operation_crds_count;
}

const struct asset *crd_at(size_t index)
{
    ASSERT(index < crd_count());
    return index < crds_count ? &crds[index] : &operation_crds[index - crds_count];
}

const struct jval *crd_object(const struct asset *crd, struct arena *out)
{
    struct ydoc doc;
    struct err err = { 0 };
    int r = ydoc_parse(asset_text(crd), out, &doc, &err);
    ASSERT(r == 0); /* it was built in, and the tests have read it */
    return doc.root;
}

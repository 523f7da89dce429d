#include "kinds/crd.h"

#include "format/yaml.h"

const struct jval *crd_object(const struct asset *crd, struct arena *out)
{
    struct ydoc doc;
    struct err err = { 0 };
    int r = ydoc_parse(asset_text(crd), out, &doc, &err);
    ASSERT(r == 0); /* it was built in, and the tests have read it */
    return doc.root;
}

#include "cmd/sandbox_kubeconfig.h"

#include "base/base64.h"
#include "base/buf.h"
#include "host/pki.h"

static void add_data(struct buf *text, const char *key, struct str pem, struct arena *tmp)
{
    struct str data = base64_encode(tmp, pem);
    buf_printf(text, "    %s: " STR_FMT "\n", key, STR_ARG(data));
}

struct str kubeconfig_file_text(struct str server, const struct pki *pki, struct arena *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text,
               "apiVersion: v1\n"
               "kind: Config\n"
               "current-context: sandbox\n"
               "contexts:\n"
               "- name: sandbox\n"
               "  context:\n"
               "    cluster: sandbox\n"
               "    user: admin\n"
               "clusters:\n"
               "- name: sandbox\n"
               "  cluster:\n"
               "    server: " STR_FMT "\n",
               STR_ARG(server));
    if (pki != NULL) {
        add_data(&text, "certificate-authority-data", pki->ca_cert, &tmp);
    }
    buf_add(&text, STR("users:\n- name: admin\n"));
    if (pki != NULL) {
        buf_add(&text, STR("  user:\n"));
        add_data(&text, "client-certificate-data", pki->client_cert, &tmp);
        add_data(&text, "client-key-data", pki->client_key, &tmp);
    } else {
        buf_add(&text, STR("  user: {}\n"));
    }
    return arena_str(out, buf_str(&text));
}
